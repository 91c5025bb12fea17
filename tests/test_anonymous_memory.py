"""Locks, queues, shared values and managers of weft.multiprocessing: they work as the standard library's and have no
names, so that nothing stays of them when all of their processes are killed."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import queue as plain_queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shm_support import PrivateShm

import weft
import weft.multiprocessing as mp

METHODS = ("fork", "spawn", "forkserver")
PATIENCE = 120  # seconds: what takes longer hangs

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
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


# ---- as the standard library's, in one process ----


def in_thread(body: Callable[[], Any]) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(body())
        except Exception as error:
            found.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def kind_of_failure(body: Callable[[], Any]) -> Any:
    try:
        return body()
    except Exception as error:
        return type(error)


def story(make: Any) -> list[Any]:
    """What the primitives of a context answer in all of their states."""
    told: list[Any] = []
    lock = make.Lock()
    told += [
        lock.acquire(),
        lock.acquire(False),
        lock.acquire(True, 0.01),
        lock.acquire(timeout=-1),
    ]
    told += [in_thread(lock.release), kind_of_failure(lock.release), lock._semlock._is_zero()]
    with lock:
        told.append(in_thread(lambda: lock.acquire(block=False)))
    again = make.RLock()
    told += [again.acquire(), again.acquire(), again._semlock._count(), again._semlock._is_mine()]
    told += [in_thread(again.release), in_thread(lambda: again.acquire(False))]
    told += [again.release(), again.release(), kind_of_failure(again.release)]
    told.append(in_thread(lambda: (again.acquire(False), again.release())))
    some = make.Semaphore(2)
    told += [some.acquire(False), some.acquire(False), some.acquire(False), some.get_value()]
    told += [some.release(), some.release(), some.release(), some.get_value()]
    few = make.BoundedSemaphore(2)
    told += [few.acquire(), few.release(), kind_of_failure(few.release), few.get_value()]
    told += [few._semlock.kind, few._semlock.maxvalue, lock._semlock.maxvalue]
    event = make.Event()
    told += [
        event.is_set(),
        event.wait(0.01),
        event.set(),
        event.wait(),
        event.clear(),
        event.is_set(),
    ]
    condition = make.Condition()
    told += [kind_of_failure(condition.notify), kind_of_failure(condition.wait)]
    with condition:
        told += [condition.wait(0.01), condition.notify_all(), condition.wait_for(lambda: 5)]
    queue = make.Queue(2)
    told += [queue.empty(), queue.full(), kind_of_failure(queue.get_nowait)]
    told += [kind_of_failure(lambda: queue.get(timeout=0.01)), queue.put(1), queue.put((2, "x"))]
    told += [
        queue.full(),
        kind_of_failure(lambda: queue.put(3, False)),
        queue.get(),
        queue.get(timeout=9),
    ]
    told += [queue.qsize(), queue.close(), queue.join_thread(), kind_of_failure(queue.get)]
    simple = make.SimpleQueue()
    told += [simple.empty(), simple.put([1]), simple.empty(), simple.get(), simple.close()]
    joinable = make.JoinableQueue()
    told += [joinable.put(1), joinable.get(), joinable.task_done(), joinable.join()]
    told += [kind_of_failure(joinable.task_done)]
    value, array = make.Value("i", 3), make.Array("d", [1.0, 2.0])
    with value.get_lock():
        value.value += 1
    told += [
        value.value,
        list(array),
        make.RawValue(ctypes.c_int, 7).value,
        len(make.RawArray("b", 9)),
    ]
    barrier = make.Barrier(2)
    told += [
        sorted([in_thread(lambda: None) or 0]),
        barrier.parties,
        barrier.n_waiting,
        barrier.broken,
    ]
    told += [repr(lock), repr(again), repr(some), repr(few)]
    return told


def test_as_the_standard_library() -> None:
    assert story(mp.get_context("fork")) == story(multiprocessing.get_context("fork"))


def test_values_of_semaphores() -> None:
    for make in (mp.Semaphore, mp.BoundedSemaphore):
        assert not make(0).acquire(False)
        with pytest.raises(ValueError, match=r"semaphore: expected a .* from 0 to .*, got -1"):
            make(-1)
    with pytest.raises(ValueError, match="semaphore: expected a limit from 0 to 2147483647"):
        mp.BoundedSemaphore(1 << 31)


def test_classes_are_those_of_the_standard_library() -> None:
    from multiprocessing import queues, synchronize

    context = mp.get_context("spawn")
    for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier"):
        made = getattr(context, name)(*[2] * (name == "Barrier"))
        assert isinstance(made, getattr(synchronize, name)), name
    for name in ("Queue", "JoinableQueue", "SimpleQueue"):
        assert isinstance(getattr(context, name)(), getattr(queues, name)), name


def test_contexts() -> None:
    for method in METHODS:
        context = mp.get_context(method)
        assert context.get_start_method() == method and context.get_context() is context
        assert context.get_context("spawn") is mp.get_context("spawn")
        assert context.Process is multiprocessing.get_context(method).Process
    with pytest.raises(ValueError, match="cannot find context for 'x'"):
        mp.get_context("x")
    # One default for both: what is chosen here is chosen there.
    assert mp.get_context().get_start_method() == multiprocessing.get_start_method()
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("spawn", force=True)
    try:
        assert mp.get_context() is mp.get_context("spawn") and mp.get_start_method() == "spawn"
    finally:
        multiprocessing.set_start_method(before, force=True)


def test_many_locks_need_few_descriptors() -> None:
    context = mp.get_context("spawn")
    before = len(os.listdir("/proc/self/fd"))
    locks = [context.Lock() for _ in range(1000)]
    assert len(os.listdir("/proc/self/fd")) <= before + 1000 // 64 + 2
    assert len({lock._semlock.handle for lock in locks}) == 1000
    assert all(lock.acquire(False) for lock in locks)
    del locks
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_a_lock_is_no_file_to_be_pickled() -> None:
    import pickle

    with pytest.raises(RuntimeError, match="should only be shared between processes through inher"):
        pickle.dumps(mp.Lock())


# ---- between processes ----


def _take_part(rank: int, things: dict[str, Any]) -> None:
    for _ in range(200):
        with things["lock"], things["again"], things["again"]:
            things["raw"].value += 1  # without a lock of its own: lost where two are inside
        with things["value"].get_lock():
            things["value"].value += 1
    assert things["some"].acquire(timeout=60)
    things["barrier"].wait(60)
    with things["condition"]:
        things["ready"].release()
        assert things["condition"].wait(60)
    assert things["event"].wait(60)
    number = things["joinable"].get(timeout=60)
    things["queue"].put((rank, number, weft.full((3,), float(rank))))
    things["joinable"].task_done()
    things["simple"].put(os.getpid())


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_between_processes(method: str) -> None:
    context = mp.get_context(method)
    names = ["Lock", "RLock", "Event", "Condition", "Queue", "JoinableQueue", "SimpleQueue"]
    keys = ["lock", "again", "event", "condition", "queue", "joinable", "simple"]
    things: dict[str, Any] = {key: getattr(context, name)() for key, name in zip(keys, names)}
    things |= {"some": context.Semaphore(3), "ready": context.Semaphore(0)}
    things |= {"barrier": context.Barrier(4), "value": context.Value("i", 0)}
    things["raw"] = context.RawValue("i", 0)
    work = [context.Process(target=_take_part, args=(i, things)) for i in range(3)]
    for process in work:
        process.start()
    things["barrier"].wait(60)
    for _ in range(3):
        assert things["ready"].acquire(timeout=60)
    with things["condition"]:  # who waits has given it back
        things["condition"].notify_all()
    things["event"].set()
    for i in range(3):
        things["joinable"].put(i)
    got = sorted((things["queue"].get(timeout=60) for _ in range(3)), key=lambda item: item[0])
    assert [rank for rank, _, _ in got] == [0, 1, 2] and sorted(n for _, n, _ in got) == [0, 1, 2]
    assert [tensor.tolist() for _, _, tensor in got] == [[float(i)] * 3 for i in range(3)]
    things["joinable"].join()
    assert sorted(things["simple"].get() for _ in range(3)) == sorted(p.pid for p in work)
    for process in work:
        process.join(60)
        assert process.exitcode == 0
    assert things["raw"].value == things["value"].value == 600
    assert things["some"].get_value() == 0 and things["lock"].acquire(False)


def test_a_lock_made_for_forks_goes_to_other_children_too() -> None:
    """The standard library refuses that."""
    lock, done = mp.get_context("fork").Lock(), mp.get_context("fork").SimpleQueue()
    child = mp.get_context("spawn").Process(target=_release, args=(lock, done))
    lock.acquire()
    child.start()
    assert done.get() == "released" and lock.acquire(timeout=60)
    child.join()


def _release(lock: Any, done: Any) -> None:
    lock.release()
    done.put("released")


def test_a_child_has_taken_nothing() -> None:
    context = mp.get_context("fork")
    again = context.RLock()
    other = context.Lock()  # the child's next lock is not the parent's next one
    with again:
        child = os.fork()
        if child == 0:
            fine = not again._semlock._is_mine() and not again.acquire(timeout=0.05)
            mine = context.Lock()
            mine.acquire()
            os._exit(0 if fine else 1)
        next_one = context.Lock()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next_one.acquire(False) and other.acquire(False)


def test_threads_run_while_one_waits() -> None:
    lock = mp.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    assert sum(range(100_000)) == 4999950000  # the interpreter's lock is free
    lock.release()
    thread.join(60)
    assert not thread.is_alive()


WAITS = {
    "Lock": "acquire", "RLock": "acquire", "Event": "wait", "Condition": "wait", "Queue": "get", "SimpleQueue": "get",
}  # fmt: skip


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_a_wait(what: str) -> None:
    made = getattr(mp.get_context("fork"), what)()
    if what == "Condition":
        made.acquire()
    if what.endswith("Lock"):
        in_thread(made.acquire)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            getattr(made, WAITS[what])()
    finally:
        signal.signal(signal.SIGINT, before)
        timer.join()


def test_a_handler_that_returns_does_not_end_a_wait() -> None:
    lock, calls = mp.Lock(), []
    lock.acquire()
    before = signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    begin = time.monotonic()
    try:
        assert not lock.acquire(timeout=0.6)
    finally:
        signal.signal(signal.SIGUSR1, before)
        timer.join()
    assert calls == [1] and time.monotonic() - begin >= 0.6


# ---- killed ----


def _wait_in(queue: Any, ready: Any) -> None:
    ready.set()
    queue.get()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_a_reader_that_is_killed_keeps_nobody_from_reading(kind: str, method: str) -> None:
    """With the standard library's queues all others wait for ever."""
    context = mp.get_context(method)
    queue, ready = getattr(context, kind)(), context.Event()
    child = context.Process(target=_wait_in, args=(queue, ready), daemon=True)
    child.start()
    assert ready.wait(60)
    time.sleep(0.3)  # it waits for a message now
    child.kill()
    child.join()
    queue.put("for the next one")
    assert queue.get() == "for the next one"


def test_readers_share_what_comes() -> None:
    context = mp.get_context("fork")
    for queue in (context.Queue(), context.SimpleQueue()):
        answers = context.SimpleQueue()

        def read(queue: Any = queue, answers: Any = answers) -> None:
            got = []
            while (item := queue.get()) is not None:
                got.append(item)
            answers.put(got)

        readers = [context.Process(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for item in [*range(300), None, None, None]:
            queue.put(item)
        assert sorted(item for _ in readers for item in answers.get()) == list(range(300))
        for reader in readers:
            reader.join(60)


def test_get_with_timeout_while_others_read() -> None:
    queue = mp.get_context("fork").Queue()
    begin = time.monotonic()
    with pytest.raises(plain_queue.Empty):
        queue.get(timeout=0.2)
    assert 0.15 < time.monotonic() - begin < 20


def _square(x: int) -> int:
    return x * x


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_goes_on_after_idle_workers_are_killed(method: str) -> None:
    with mp.get_context(method).Pool(2) as pool:
        assert pool.map(_square, range(10)) == [i * i for i in range(10)]
        for _ in range(2):
            time.sleep(0.3)  # they wait for a task now
            for process in list(pool._pool):  # type: ignore[attr-defined]
                os.kill(process.pid, signal.SIGKILL)
            # A size of chunks, since Python divides by the number of workers, which is 0 for a moment.
            assert pool.map_async(_square, range(10), 1).get(60) == [i * i for i in range(10)]


_EVERYTHING = """
import sys, time
import weft, weft.multiprocessing as mp

def work(things, ready):
    things["lock"].acquire()
    things["queue"].put(weft.ones(3))
    things["value"].value += 1
    things["list"].append(1)
    ready.put(1)
    time.sleep(1000)

def square(x):
    return x * x

def main():
    context = mp.get_context(sys.argv[1])
    names = ("Lock", "RLock", "Event", "Condition", "Semaphore", "BoundedSemaphore", "Queue",
             "JoinableQueue", "SimpleQueue")
    things = {name.lower(): getattr(context, name)() for name in names}
    things |= {"barrier": context.Barrier(2), "value": context.Value("i", 0)}
    things |= {"array": context.Array("d", 100_000), "raw": context.RawArray("d", 10)}
    manager = context.Manager()
    things["list"] = manager.list()
    ready = context.SimpleQueue()
    child = context.Process(target=work, args=(things, ready))
    child.start()
    pool = context.Pool(1)
    assert pool.map(square, [3]) == [9] and ready.get() == 1 and things["queue"].get().sum() == 3
    assert things["value"].value == 1 and list(things["list"]) == [1]
    print("ready", flush=True)
    time.sleep(1000)

main() if __name__ == "__main__" else None
"""


@pytest.mark.parametrize("method", METHODS)
def test_nothing_stays_of_anything(method: str, tmp_path: Path, private_shm: PrivateShm) -> None:
    """All kinds at once, all processes killed at once, the resource tracker and the manager too."""
    prefix, names = private_shm
    script = tmp_path / "everything.py"
    script.write_text(_EVERYTHING)
    temporary = Path(tempfile.mkdtemp(prefix="w"))  # a short path: it will hold sockets
    process = subprocess.Popen(
        [*prefix, sys.executable, str(script), method],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        if process.stdout.readline() != "ready\n":
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(process.stderr.read())
        assert names() == set()  # not even while all of it is in use
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert names() == set()
    # What the standard library names: the folder of the socket to its fork server.
    left = sorted(path.relative_to(temporary).parts[-1][:5] for path in temporary.rglob("*"))
    shutil.rmtree(temporary)
    sockets = ("liste", "sock-")  # the latter from Python 3.14 on
    folders = [name for name in left if name not in sockets]
    assert (len(left), folders) == ((2, ["pymp-"]) if method == "forkserver" else (0, []))


@pytest.mark.parametrize("method", METHODS)
def test_a_manager_ends_with_its_family(method: str, tmp_path: Path) -> None:
    script = tmp_path / "manager.py"
    script.write_text(
        f"""if True:
        import os, signal, time
        import weft.multiprocessing as mp
        if __name__ == "__main__":
            manager = mp.get_context({method!r}).Manager()
            print(manager._process.pid, flush=True)
            time.sleep(1000)
        """
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    manager = int(process.stdout.readline())
    process.kill()
    process.communicate()
    end = time.monotonic() + 20
    while os.path.exists(f"/proc/{manager}/exe") and os.path.islink(f"/proc/{manager}/exe"):
        with contextlib.suppress(OSError), open(f"/proc/{manager}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":
                break
        assert time.monotonic() < end, "the manager's process is still there"
        time.sleep(0.05)
