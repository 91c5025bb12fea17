"""Many Python threads at once: forward passes, scripts, backward, and last references give what they
give alone. `python -X dev` and builds without the interpreter lock run the same tests."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import pytest

import weft
import weft.nn.functional as F
from weft import nn

pytestmark = pytest.mark.threads

THREADS = 6
ROUNDS = 12


def at_once(body: Callable[[int], Any]) -> list[Any]:
    """body(thread) on several threads that start together; their results."""
    results: list[Any] = [None] * THREADS
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(thread: int) -> None:
        try:
            start.wait(60)
            results[thread] = body(thread)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(t,)) for t in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


class Net(nn.Module):
    """Convolutions, norms, attention-like products, dropout off."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.rows = nn.Linear(8 * 16, 32)
        self.last = nn.LayerNorm(32)
        self.out = nn.Linear(32, 5)

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = self.last(F.gelu(self.rows(x.flatten(1))))
        scores = weft.softmax(x @ x.t(), 1)
        return self.out(scores @ x)


def inputs(seed: int) -> weft.Tensor:
    return weft.randn(4, 3, 8, 8, generator=weft.Generator().manual_seed(seed))


def trained() -> Net:
    weft.manual_seed(0)
    return Net()


def scripted() -> nn.Module:
    return weft.jit.script(trained().eval())


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("build", [lambda: trained().eval(), scripted])
def test_forward_passes_of_one_module(build: Callable[[], nn.Module], grad: bool) -> None:
    """The first calls, which compile, are made by all threads at once too."""
    alone = trained().eval()
    with weft.set_grad_enabled(grad):
        expected = [alone(inputs(t)) for t in range(THREADS)]
    model = build()

    def run(thread: int) -> list[weft.Tensor]:
        with weft.set_grad_enabled(grad):
            return [model(inputs(thread)) for _ in range(ROUNDS)]

    for results, right in zip(at_once(run), expected):
        for result in results:
            assert result.allclose(right, rtol=1e-4, atol=1e-5)


def test_modes_belong_to_their_thread() -> None:
    def run(thread: int) -> list[bool]:
        seen = []
        for _ in range(ROUNDS):
            with weft.set_grad_enabled(thread % 2 == 0):
                x = weft.ones(2, requires_grad=True) * 2
                seen.append(x.requires_grad)
        return seen

    for thread, seen in enumerate(at_once(run)):
        assert seen == [thread % 2 == 0] * ROUNDS


def test_backward_into_shared_parameters() -> None:
    """Gradients of all threads are added up, none is lost."""
    model = trained().eval()
    loss_of = [lambda t=t: model(inputs(t)).pow(2).sum() for t in range(THREADS)]
    for loss in loss_of:
        loss().backward()
    expected = [p.grad.clone() * ROUNDS for p in model.parameters()]
    model.zero_grad()
    at_once(lambda t: [loss_of[t]().backward() for _ in range(ROUNDS)])
    for parameter, right in zip(model.parameters(), expected):
        scale = right.abs().max().item() + 1e-6
        assert (parameter.grad - right).abs().max().item() < 1e-3 * scale


def test_backward_through_one_graph() -> None:
    x = weft.ones(100, requires_grad=True)
    shared = (x * 2).exp()

    def run(thread: int) -> None:
        for _ in range(ROUNDS):
            (shared * (thread + 1)).sum().backward(retain_graph=True)

    at_once(run)
    total = 2 * weft.exp(weft.tensor(2.0)) * ROUNDS * sum(range(1, THREADS + 1))
    assert x.grad.allclose(total.expand(100), rtol=1e-4)


def test_functions_written_in_python_run_on_all_threads() -> None:
    class Twice(weft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
            (x,) = ctx.saved_tensors
            return grad * 2 + 0 * x

    x = weft.ones(50, requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(1))
    at_once(lambda t: [Twice.apply(x).sum().backward() for _ in range(ROUNDS)])
    assert x.grad.tolist() == [2.0 * THREADS * ROUNDS] * 50 and len(seen) == THREADS * ROUNDS


def test_last_references_go_on_any_thread() -> None:
    before = weft.memory.stats()["bytes_in_use"]
    for _ in range(5):
        x = weft.ones(300, requires_grad=True)
        piles: list[list[Any]] = [[] for _ in range(THREADS)]
        y = x
        for _ in range(60):
            y = (y * 1.01).view(3, 100).view(300)
            for pile in piles:
                pile += [y, y[3:5], y.grad_fn, y.untyped_storage()]
        del x, y, pile
        at_once(lambda t, piles=piles: piles[t].clear())
    gc.collect()
    assert weft.memory.stats()["bytes_in_use"] < before + (1 << 20)


def test_scripts_are_compiled_by_all_threads() -> None:
    def chain(x: weft.Tensor, n: int) -> weft.Tensor:
        y = x
        for i in range(n):
            y = (y * 0.5 + x * float(i)).relu()
        return y

    x = weft.ones(500)
    expected = chain(x, 6)

    def run(thread: int) -> weft.Tensor:
        mine = weft.jit.script(chain)
        for _ in range(ROUNDS):
            result = mine(x, 6)
        return result

    for result in at_once(run):
        assert result.allclose(expected)


CACHED = """
import sys, threading, weft

@weft.jit.script
def chain(x, n: int):
    for i in range(n):
        x = (x * 0.5 + float(i)).relu()
    return x

def run():
    try:
        start.wait(60)
        results.append(chain(weft.ones(3, requires_grad=is_second), 4).tolist())
    except BaseException as error:
        results.append(error)

is_second = len(sys.argv) > 1
sys.setswitchinterval(1e-6)
start, results = threading.Barrier(6), []
threads = [threading.Thread(target=run) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all(each == results[0] and type(each) is list for each in results), results
"""


def test_functions_found_on_disk_are_compiled_once(tmp_path: Any) -> None:
    """Threads that call such a function in a way that has no program there compile it at once."""
    (tmp_path / "chain.py").write_text(CACHED)
    known = {**os.environ, "WEFT_CACHE": str(tmp_path / "cache")}
    for argument in ([], ["second"]):
        command = [sys.executable, str(tmp_path / "chain.py"), *argument]
        done = subprocess.run(command, env=known, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_draws_are_dealt_out() -> None:
    """One generator, many threads: no number twice, none lost."""
    generator = weft.Generator().manual_seed(7)
    kept = at_once(lambda t: [weft.rand(64, generator=generator) for _ in range(ROUNDS)])
    found = sorted(weft.cat([x for pile in kept for x in pile]).tolist())
    alone = weft.Generator().manual_seed(7)
    assert found == sorted(weft.rand(64 * ROUNDS * THREADS, generator=alone).tolist())


def test_one_tensor_is_one_object_on_all_threads() -> None:
    holder = nn.Linear(3, 3)
    x = holder.weight.view(9)

    def run(thread: int) -> set[int]:
        return {id(holder.weight) for _ in range(100)} | {id(x._base) for _ in range(100)}

    for seen in at_once(run):
        assert seen == {id(holder.weight)}


def test_saving_and_loading_at_once(tmp_path: Any) -> None:
    state = trained().state_dict()

    def run(thread: int) -> bool:
        path = tmp_path / f"{thread}.pt"
        for _ in range(4):
            weft.save(state, path)
            loaded = weft.load(path, mmap=thread % 2 == 0)
            if any(not loaded[name].equal(value) for name, value in state.items()):
                return False
        return True

    assert all(at_once(run))


# ---- objects that one thread drops while another asks for them ----


def test_objects_are_dropped_and_found_at_once() -> None:
    """A wrapper with state lives on while only C++ holds its tensor; others are made anew."""
    base = nn.Parameter(weft.ones(9))
    base.mark = "kept"
    views = [base.view(3, 3) for _ in range(THREADS)]
    plain = weft.ones(9)
    plains = [plain.view(3, 3) for _ in range(THREADS)]
    del base, plain

    def run(thread: int) -> bool:
        return all(
            views[thread]._base.mark == "kept" and plains[thread]._base.shape == (9,)
            for _ in range(400)
        )

    assert all(at_once(run))
    assert isinstance(views[0]._base, nn.Parameter)


def test_nodes_are_dropped_and_found_at_once() -> None:
    leaf = weft.ones(3, requires_grad=True)
    loss = (leaf * 2).exp().sum()

    def run(thread: int) -> set[str]:
        names = set()
        for _ in range(200):
            node = loss.grad_fn
            while node is not None:
                names.add(node.name())
                assert (node.metadata is node.metadata) and hash(node) == hash(node)
                node = node.next_functions[0][0] if node.next_functions else None
        return names

    seen = at_once(run)
    assert seen[0] == {
        "SumBackward0", "ExpBackward0", "MulBackward0", "torch::autograd::AccumulateGrad"
    } and all(names == seen[0] for names in seen)  # fmt: skip


def test_contexts_are_read_while_graphs_go() -> None:
    contexts: list[Any] = []

    class Kept(weft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
            ctx.save_for_backward(x)
            contexts.append(ctx)
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
            return grad

    results = [Kept.apply(weft.ones(4, requires_grad=True)) for _ in range(60 * THREADS)]

    def run(thread: int) -> int:
        alive = 0
        for i, ctx in enumerate(contexts):
            if i % THREADS == thread:
                results[i] = None
            try:
                alive += ctx.saved_tensors[0].sum().item() == 4
            except RuntimeError as error:
                assert "freed" in str(error)
        return alive

    assert all(0 <= alive <= len(contexts) for alive in at_once(run))
    assert not any(result is not None for result in results)


def test_lists_change_while_operators_read_them() -> None:
    sizes, parts, chosen = [2, 3], [weft.ones(2), weft.ones(2)], [0, 1]

    def run(thread: int) -> None:
        for i in range(150):
            if thread % 2:
                sizes[:] = [2, 3] if i % 2 else [3, 2, 1, 1, 1]
                parts[:] = [weft.ones(2)] * (1 + i % 4)
                chosen[:] = [0] * (1 + i % 5)
                continue
            assert weft.ones(6).reshape(sizes).numel() == 6
            assert weft.cat(parts).sum().item() % 2 == 0
            try:  # which walk over a list twice
                assert weft.tensor(chosen).sum().item() <= 1
                assert weft.ones(3)[chosen].min().item() == 1
            except ValueError as error:
                assert "expected a sequence of length" in str(error)

    at_once(run)


def test_first_calls_at_once() -> None:
    """What is made by the first call of a process is made once, or the same."""
    code = (
        "import threading, weft, numpy as np\n"
        "start = threading.Barrier(8); seen = []\n"
        "def run():\n"
        "    x = weft.ones(3, 3); start.wait()\n"
        "    top = x.max(1)\n"
        "    seen.append((type(top), np.asarray(x.numpy()).sum(), weft.nn.functional.relu(x).sum().item(),\n"
        "                 weft.from_numpy(np.ones(2)).tolist(), str(x.to_sparse().coalesce().indices().shape)))\n"
        "threads = [threading.Thread(target=run) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(seen), len(set(map(str, seen))), len({each[0] for each in seen}))"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.split() == ["8", "1", "1"], done.stderr


def test_rows_are_found_at_once() -> None:
    """By threads that compile: each row of the table is one object, whoever asks first."""
    code = (
        "import threading\n"
        "from weft._ops import table\n"
        "import importlib\n"
        "table.importing.trusted = True\n"
        "importlib.import_module('weft._ops.unary')\n"
        "names = list(table._deferred)[:40]; start = threading.Barrier(8); seen = []\n"
        "def run():\n"
        "    start.wait(); seen.append([table.find(name) for name in names])\n"
        "threads = [threading.Thread(target=run) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(names), sum(len({id(row) for row in rows}) == 1 and rows[0] is not None\n"
        "                      for rows in zip(*seen)))"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.split() == ["40", "40"], done.stderr


FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.skipif(not FREE_THREADED, reason="needs a Python without the interpreter lock")
def test_the_interpreter_lock_stays_off() -> None:
    """The extension claims to work without the lock where Python has what it needs for that: from 3.14 on."""
    code = "import sys, weft; print(sys._is_gil_enabled())"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(sys.version_info < (3, 14))
