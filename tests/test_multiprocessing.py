"""weft.multiprocessing: handles through queues, pipes, pools and arguments, in every start method."""

from __future__ import annotations

import array
import fcntl
import os
import resource
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

import weft
import weft.multiprocessing as mp
from weft import nn

METHODS = ("fork", "spawn", "forkserver")
STRATEGIES = sorted(mp.get_all_sharing_strategies())
PATIENCE = 120  # seconds: what takes longer hangs


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A test that hangs is ended by a signal, so that no run does."""

    def stop(*_: Any) -> None:
        raise TimeoutError("the test hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    for child in mp.active_children():
        child.kill()
        child.join()


@pytest.fixture(params=STRATEGIES)
def strategy(request: Any) -> Iterator[str]:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


class Marked(weft.Tensor):
    pass


def through(value: Any) -> Any:
    return ForkingPickler.loads(ForkingPickler.dumps(value))


# ---- one process: what a handle carries ----


def test_a_handle_is_small(strategy: str) -> None:
    x = weft.UntypedStorage._new_shared(1 << 24)
    big = weft.empty(0).set_(x).view(1024, -1)
    for value in (big, big.t()[5:], x, big.as_subclass(Marked), nn.Parameter(big)):
        data = ForkingPickler.dumps(value)
        assert len(data) < 1024
        ForkingPickler.loads(data)


def test_what_comes_back_is_the_same_memory(strategy: str) -> None:
    x = weft.arange(6.0).reshape(2, 3)
    y, z = through((x, x[1]))
    assert y.untyped_storage() is x.untyped_storage() is z.untyped_storage()
    assert z.tolist() == [3, 4, 5] and y.is_shared()
    assert through(x.untyped_storage()) is x.untyped_storage()
    assert through(x.storage()).data_ptr() == x.data_ptr()


def test_kinds_of_tensors(strategy: str) -> None:
    leaf = weft.ones(3, requires_grad=True)
    assert through(leaf).requires_grad and through(leaf).is_leaf
    parameter = through(nn.Parameter(weft.ones(2), requires_grad=False))
    assert type(parameter) is nn.Parameter and not parameter.requires_grad
    marked = weft.ones(2).as_subclass(Marked)
    marked.note = 3  # type: ignore[attr-defined]
    assert type(through(marked)) is Marked and through(marked).note == 3
    assert through(weft.empty(0, 4)).shape == (0, 4)
    meta = through(nn.Linear(2, 3, device="meta")).weight
    assert meta.is_meta and type(meta) is nn.Parameter and meta.stride() == (2, 1)
    assert through(weft.tensor(5)).item() == 5
    assert through(weft.arange(5)[::-2]).tolist() == [4, 2, 0]
    with pytest.raises(RuntimeError, match="send: expected a leaf tensor"):
        ForkingPickler.dumps(leaf * 2)
    assert through((leaf * 2).detach()).tolist() == [2, 2, 2]
    module = nn.Linear(2, 2)
    again = through(module)
    assert again.weight.data_ptr() == module.weight.data_ptr()


def test_read_only_arrives_read_only(strategy: str) -> None:
    array = __import__("numpy").ones(3)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        through(weft.from_numpy(array)).add_(1)


def test_a_pickle_is_loaded_once() -> None:
    mp.set_sharing_strategy("file_descriptor")
    data = ForkingPickler.dumps(weft.ones(3))
    ForkingPickler.loads(data)
    with pytest.raises(RuntimeError, match="every pickle of a shared tensor can be loaded once"):
        ForkingPickler.loads(data)


def test_mapped_files_are_sent_by_path(tmp_path: Any) -> None:
    path = tmp_path / "mapped"
    path.write_bytes(bytes(range(16)))
    storage = weft.UntypedStorage.from_file(str(path), True, 16)
    again = through(storage)
    again[0] = 99
    assert storage[0] == 99 and path.read_bytes()[0] == 99
    data = ForkingPickler.dumps(storage)
    path.unlink()
    path.write_bytes(bytes(16))
    with pytest.raises(RuntimeError, match="got another one"):
        ForkingPickler.loads(data)


# ---- processes ----


def _exchange(requests: Any, answers: Any, argument: Any, connection: Any) -> None:
    x, view = requests.get()
    same = view.untyped_storage() is x.untyped_storage()
    view += 1
    argument.mul_(2)
    fresh = weft.full((3,), 7.0)
    answers.put((same, x.is_shared(), x.sum().item()))
    answers.put((x, fresh))
    connection.send(weft.full((2,), 8.0))


@pytest.mark.parametrize("method", METHODS)
def test_queues_pipes_and_arguments(method: str, strategy: str) -> None:
    context = mp.get_context(method)
    requests, answers = context.Queue(), context.Queue()
    ours, theirs = context.Pipe()
    x = weft.zeros(4, 5)
    argument = weft.ones(3).share_memory_()
    child = context.Process(target=_exchange, args=(requests, answers, argument, theirs))
    child.start()
    requests.put((x, x[1:3]))
    assert answers.get(timeout=PATIENCE) == (True, True, 10)
    again, fresh = answers.get(timeout=PATIENCE)
    assert again.untyped_storage() is x.untyped_storage() and x.sum().item() == 10
    assert fresh.tolist() == [7, 7, 7] and fresh.is_shared()
    assert ours.recv().tolist() == [8, 8]  # sent last by a process that ends
    assert argument.tolist() == [2, 2, 2]
    child.join(PATIENCE)
    assert child.exitcode == 0


def _double(x: weft.Tensor) -> weft.Tensor:
    return x.mul_(2)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pool(method: str, strategy: str) -> None:
    with mp.get_context(method).Pool(2) as pool:
        tensors = [weft.full((100,), float(i)) for i in range(20)]
        results = pool.map(_double, tensors)
    assert [r[0].item() for r in results] == [2 * i for i in range(20)]
    assert all(r.untyped_storage() is t.untyped_storage() for r, t in zip(results, tensors))


def _train(index: int, module: nn.Module, done: Any) -> None:
    with weft.no_grad():
        module.weight[index] = index + 1.0
    done.put(index)


def test_spawn_shares_a_module() -> None:
    module = nn.Linear(2, 3).share_memory()
    done = mp.get_context("spawn").SimpleQueue()
    assert mp.spawn(_train, (module, done), nprocs=3) is None
    assert sorted(done.get() for _ in range(3)) == [0, 1, 2]
    assert module.weight.tolist() == [[1, 1], [2, 2], [3, 3]]


def _fail(index: int, how: str) -> None:
    if index == 1:
        if how == "raise":
            raise ValueError("not " + "\N{WINKING FACE}" * 200_000)  # more than a pipe holds
        if how == "exit":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(PATIENCE)


@pytest.mark.parametrize("method", METHODS)
def test_spawn_tells_how_a_process_failed(method: str) -> None:
    def start(how: str) -> Any:
        return mp.start_processes(_fail, (how,), nprocs=2, start_method=method)

    text = r"(?s)Process 1 terminated.*Traceback .*, in _fail\n.*\N{WINKING FACE}"
    with pytest.raises(mp.ProcessRaisedException, match=text) as raised:
        start("raise")
    assert len(str(raised.value)) < 50_000
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with exit") as info:
        start("exit")
    assert (info.value.error_index, info.value.exit_code) == (1, 7)
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with signal SIGKILL"):
        start("kill")


def _obey(index: int) -> None:
    pass


def test_context_of_spawn() -> None:
    context = mp.spawn(_obey, nprocs=2, join=False)
    assert isinstance(context, mp.SpawnContext) and len(context.pids()) == 2
    while not context.join(timeout=PATIENCE):
        pass
    assert all(process.exitcode == 0 for process in context.processes)


def test_exceptions_can_be_pickled() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(mp.ProcessExitedException("m", 1, 2, 3, "SIGKILL")))
    assert (error.error_index, error.pid, error.exit_code, error.signal_name) == (
        1, 2, 3, "SIGKILL",
    )  # fmt: skip


# ---- fork in the middle of things ----


def _fork(body: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            os._exit(0 if body() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_child_offers_what_it_inherited(strategy: str) -> None:
    x = weft.ones(3).share_memory_()
    data = ForkingPickler.dumps(x)  # the parent's server runs
    assert _fork(lambda: through(x).data_ptr() == x.data_ptr()) == 0
    assert _fork(lambda: ForkingPickler.loads(data).data_ptr() == x.data_ptr()) == 0


def test_memory_of_a_parent_stays_for_its_child(strategy: str) -> None:
    tensors = [weft.full((1000,), float(i)).share_memory_() for i in range(20)]
    ready, go = os.pipe()

    def body() -> bool:
        os.read(ready, 1)
        return all(t.tolist() == [i] * 1000 for i, t in enumerate(tensors))

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            os._exit(0 if body() else 1)
        finally:
            os._exit(2)
    del tensors[:]
    others = [weft.full((1000,), -1.0).share_memory_() for _ in range(20)]
    os.write(go, b"x")
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0 and others[0][0].item() == -1
    os.close(ready)
    os.close(go)


# ---- many, few descriptors, large ones ----


def run(program: str, *arguments: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    """A program of its own, in a session that is killed as a whole when it takes too long."""
    command = [sys.executable, "-c", program, *arguments]
    if shell:
        command = ["bash", "-c", f'{shell}; exec "$0" "$@"', *command]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=PATIENCE - 20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_well(program: str, *arguments: str, shell: str = "") -> str:
    done = run(program, *arguments, shell=shell)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stdout, done.stderr)
    return done.stdout.strip()


_MANY = """
import sys, weft, weft.multiprocessing as mp
def send(queue, count):
    for i in range(count):
        queue.put(weft.full((2,), i))
def main():
    context = mp.get_context(sys.argv[1])
    queue = context.Queue()
    count = int(sys.argv[2])
    child = context.Process(target=send, args=(queue, count))
    child.start()
    kept = [queue.get(timeout=60) for _ in range(count)]
    child.join()
    assert child.exitcode == 0
    assert all(t.tolist() == [i, i] for i, t in enumerate(kept))
    print(len(kept))
main() if __name__ == "__main__" else None
"""


def test_ten_thousand_tensors_with_few_descriptors() -> None:
    assert run_well(_MANY, "fork", "10000", shell="ulimit -n 256") == "10000"


def _fetch_big(queue: Any, answers: Any) -> None:
    for _ in range(3):
        x = queue.get()
        with weft.no_grad():
            x[-1] = 5
        answers.put((type(x).__name__, x.nbytes, x.requires_grad))


def big() -> weft.Tensor:
    """A gigabyte in a sparse file: no page of it is touched."""
    file = os.memfd_create("weft-test", os.MFD_CLOEXEC)
    os.ftruncate(file, 1 << 30)
    storage = weft.UntypedStorage._new_shared_fd_cpu(file, 1 << 30)
    os.close(file)
    return weft.empty(0).set_(storage)


@pytest.mark.parametrize("method", METHODS)
def test_a_gigabyte_through_a_pipe(method: str) -> None:
    """A tensor, a parameter and its gradient: what goes through the pipe does not depend on sizes."""
    x, parameter = big(), nn.Parameter(big())
    parameter.grad = big()
    context = mp.get_context(method)
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    in_pipe = []
    for tensor in (x, parameter, parameter.grad):
        queue.put(tensor)
        waiting = array.array("i", [0])
        fcntl.ioctl(queue._reader.fileno(), termios.FIONREAD, waiting)
        in_pipe.append(waiting[0] - sum(in_pipe))
    assert all(0 < count < 1024 for count in in_pipe), in_pipe
    child = context.Process(target=_fetch_big, args=(queue, answers))
    child.start()
    told = [answers.get() for _ in range(3)]
    assert told == [
        ("Tensor", 1 << 30, False),
        ("Parameter", 1 << 30, True),
        ("Tensor", 1 << 30, False),
    ]
    assert x[-1].item() == parameter[-1].item() == parameter.grad[-1].item() == 5
    child.join(PATIENCE)


def test_a_receiver_without_descriptors_says_so() -> None:
    context = mp.get_context("fork")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=_full_receiver, args=(queue, answers))
    child.start()
    queue.put(weft.ones(3))
    text = answers.get()
    child.join(PATIENCE)
    assert "receive: expected a free file descriptor for a tensor, got none of the " in text
    assert "(ulimit -n); raise the limit, or call set_sharing_strategy('file_system')" in text


def _full_receiver(queue: Any, answers: Any) -> None:
    from weft.multiprocessing import descriptors

    connect = descriptors._connection

    def connect_and_fill(address: bytes) -> Any:
        connection = connect(address)  # it has its socket; then nothing is free any more
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (lowest, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        return connection

    descriptors._connection = connect_and_fill  # type: ignore[assignment]
    try:
        queue.get()
        answers.put("arrived")
    except RuntimeError as error:
        answers.put(str(error))


_AT_END = """
import os, sys, weft, weft.multiprocessing as mp
from multiprocessing import util

def send(queue, back):
    queue.put(weft.ones(3))
    back.get()

def sockets():
    names = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return sum(os.path.exists(name) and os.readlink(name).startswith("socket:") for name in names)

def main():
    before = sockets()
    context = mp.get_context("fork")
    queue, back = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=send, args=(queue, back))
    child.start()
    x = queue.get()
    back.put(weft.zeros(2))
    child.join()
    print(sockets() - before)
    util.Finalize(None, lambda: print(sockets() - before), exitpriority=-9999)
main()
"""


def test_no_socket_is_open_at_the_end() -> None:
    during, end = run_well(_AT_END).split()
    assert int(during) >= 2 and end == "0"


# ---- threads ----


def test_storages_move_while_operators_use_them() -> None:
    """The feeder thread of a queue moves a storage; operators at work on it keep the old block."""
    import threading

    weights = weft.ones(256, 256)
    work: list[weft.Tensor] = []
    moved = 0

    def feed() -> None:
        nonlocal moved
        while not done.is_set():
            while work:
                work.pop().share_memory_()
                weft.full((512, 256), -1.0)  # takes a block that was freed too early
                moved += 1

    done = threading.Event()
    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        for _ in range(100):
            x = weft.ones(512, 256)
            work.append(x)
            assert (x @ weights == 256).all() and (x + x == 2).all()
    finally:
        done.set()
        feeder.join()
    assert moved > 0


# ---- as PyTorch ----


@pytest.mark.parity
def test_names_of_pytorch() -> None:
    import inspect

    theirs = pytest.importorskip("torch.multiprocessing")
    others = {
        "torch",
        "sys",
        "multiprocessing",
        "ENV_VAR_PARALLEL_START",
    }  # not of the module's own
    names = {name for name in dir(theirs) if not name.startswith("_")} - others
    assert not {name for name in names if not hasattr(mp, name)}
    for name in ("spawn", "start_processes"):
        expected = list(inspect.signature(getattr(theirs, name)).parameters)
        assert list(inspect.signature(getattr(mp, name)).parameters) == expected
    assert theirs.get_all_sharing_strategies() == mp.get_all_sharing_strategies()
    for name in ("ProcessRaisedException", "ProcessExitedException"):
        ours = inspect.signature(getattr(mp, name)).parameters
        assert list(ours) == list(inspect.signature(getattr(theirs, name)).parameters)


@pytest.mark.parity
def test_states_of_pytorch() -> None:
    torch: Any = pytest.importorskip("torch")

    def states(lib: Any) -> list[Any]:
        x = lib.zeros(4)
        view = x[1:]
        found = [x.is_shared(), x.share_memory_().is_shared(), view.is_shared()]
        found.append(lib.empty(0).share_memory_().is_shared())
        module = lib.nn.BatchNorm1d(2)
        module(lib.randn(3, 2)).sum().backward()
        module.share_memory()
        found += [t.is_shared() for t in (*module.parameters(), *module.buffers())]
        found.append(module.weight.grad.is_shared())
        found.append(lib.UntypedStorage._new_shared(8).is_shared())
        return found

    assert states(weft) == states(torch)
