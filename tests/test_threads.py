"""Many Python threads at once: forward passes, scripts, backward, and last references give what they
give alone. `python -X dev` and builds without the interpreter lock run the same tests."""

from __future__ import annotations

import gc
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


FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.skipif(not FREE_THREADED, reason="needs a Python without the interpreter lock")
def test_the_interpreter_lock_comes_back_on() -> None:
    """The extension does not claim to work without the lock: importing it turns the lock on."""
    code = "import sys, weft; print(sys._is_gil_enabled())"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"
