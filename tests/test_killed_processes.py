"""kill -9 of anybody, in every order, and processes that end early: no leak, no hang, no riddle."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from shm_support import PrivateShm

STRATEGIES = ("file_descriptor", "file_system")
PATIENCE = 100  # seconds: what takes longer hangs

_SCRIPTS = Path(tempfile.mkdtemp(prefix="weft-killed-"))
atexit.register(shutil.rmtree, _SCRIPTS, ignore_errors=True)

_PRELUDE = """
import os, signal, sys, time
import weft
import weft.multiprocessing as mp
STRATEGY = sys.argv[1]
mp.set_sharing_strategy(STRATEGY)
"""


def start(program: str, *arguments: str, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
    """In a session of its own; from a file, so that spawn and forkserver can import it."""
    script = _SCRIPTS / f"program_{zlib.crc32(program.encode()):08x}.py"
    if not script.exists():
        script.write_text(_PRELUDE + program)
    command = [*prefix, sys.executable, str(script), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def kill_session(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def finish(process: subprocess.Popen[str]) -> str:
    """What it printed; it must end well, in time, and without a word of complaint."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        kill_session(process)
    assert process.returncode == 0 and not err, (process.returncode, out, err)
    return out.strip()


def files_of_weft() -> list[str]:
    """Of any process on this machine: those of a test beside this one have no names either."""
    return [name for name in os.listdir("/dev/shm") if "weft" in name or "torch" in name]


def memory_of_weft(session: int) -> list[int]:
    """Processes of the session that live and have shared memory of weft."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == session and "memfd:weft" in _read(f"/proc/{name}/maps"):
                found.append(int(name))
        except OSError:
            pass
    return found


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


# ---- every order ----

# creator -> user, by a queue; tracker and server: the helpers that the standard library starts. main asks and kills,
# and is killed last. The user's second thread waits for a message that never comes; the others go on using the lock.
_ORDERS = """
import threading

def answer(pipe, kept, lock):
    while True:
        pipe.recv()
        with lock:
            pipe.send(sum(t.sum().item() for t in kept))

def create(pipe, queue, idle, lock):
    mp.set_sharing_strategy(STRATEGY)
    kept = [weft.full((1000,), float(i)) for i in range(5)]
    for tensor in kept:
        queue.put(tensor)
    pipe.send("sent")
    answer(pipe, kept, lock)

def use(pipe, queue, idle, lock):
    kept = [queue.get() for _ in range(5)]
    threading.Thread(target=idle.get, daemon=True).start()
    pipe.send("got")
    answer(pipe, kept, lock)

def ask(pipe):
    pipe.send("sum")
    assert pipe.poll(60), "no answer"
    return pipe.recv()

def main():
    from multiprocessing import forkserver, resource_tracker
    context = mp.get_context(sys.argv[2])
    queue, idle, lock = context.Queue(), context.Queue(), context.Lock()
    pipes, pids = {}, {}
    for name, target in (("creator", create), ("user", use)):
        pipes[name], theirs = context.Pipe()
        process = context.Process(target=target, args=(theirs, queue, idle, lock), daemon=True)
        process.start()
        pids[name] = process.pid
    pids["tracker"] = resource_tracker._resource_tracker._pid
    pids["server"] = forkserver._forkserver._forkserver_pid
    for pipe in pipes.values():
        assert pipe.poll(60)
        pipe.recv()
    assert "/dev/shm/" not in open("/proc/self/maps").read()
    for name in sys.argv[3].split():
        os.kill(pids[name], signal.SIGKILL)
        pipes.pop(name, None)
        for pipe in pipes.values():
            assert ask(pipe) == 10000
        assert lock.acquire(timeout=60)
        lock.release()
    idle.put(weft.ones(3))
    assert idle.get(timeout=60).sum() == 3
    print("killed", flush=True)
    time.sleep(100)
main() if __name__ == "__main__" else None
"""

_ROLES = {
    "fork": ("creator", "user"),
    "spawn": ("creator", "user", "tracker"),
    "forkserver": ("creator", "user", "tracker", "server"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("method", _ROLES)
def test_every_order_of_kills(strategy: str, method: str, private_shm: PrivateShm) -> None:
    prefix, names = private_shm
    orders = [" ".join(order) for order in itertools.permutations(_ROLES[method])]
    for some in (orders[i : i + 6] for i in range(0, len(orders), 6)):  # at once
        running = [start(_ORDERS, strategy, method, order, prefix=prefix) for order in some]
        try:
            for process in running:
                assert process.stdout is not None and process.stderr is not None
                line = process.stdout.readline()
                if line != "killed\n":
                    kill_session(process)
                    raise AssertionError((line, process.stderr.read()))
                process.kill()
            end = time.monotonic() + 5
            while names() or any(memory_of_weft(p.pid) for p in running):
                assert time.monotonic() < end, (names(), [p.pid for p in running])
                time.sleep(0.05)
        finally:
            for process in running:
                kill_session(process)
                process.communicate()


# ---- all at once ----

_ALL = """
def work(queue, ready):
    mp.set_sharing_strategy(STRATEGY)
    kept = [weft.ones(1000).share_memory_() for _ in range(100)]
    queue.put(kept[0])
    ready.put(1)
    time.sleep(100)

def main():
    context = mp.get_context("fork")
    queue, ready = context.SimpleQueue(), context.SimpleQueue()
    for _ in range(2):
        context.Process(target=work, args=(queue, ready), daemon=True).start()
    kept = [queue.get(), queue.get(), ready.get(), ready.get()]
    print("ready", flush=True)
    time.sleep(100)
main()
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_at_once(strategy: str) -> None:
    process = start(_ALL, strategy)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(memory_of_weft(process.pid)) == 3
    kill_session(process)
    process.communicate()
    end = time.monotonic() + 5
    while memory_of_weft(process.pid) or files_of_weft():
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- those who wait for the dead ----

_DEAD_SENDER = """
def send(queue, connection):
    mp.set_sharing_strategy(STRATEGY)
    queue.put(weft.ones(3))
    connection.recv()

def main():
    context = mp.get_context("fork")
    queue = context.Queue()
    ours, theirs = context.Pipe()
    child = context.Process(target=send, args=(queue, theirs))
    child.start()
    while queue.empty():
        time.sleep(0.01)
    child.kill()
    child.join()
    begin = time.monotonic()
    try:
        queue.get(timeout=60)
    except RuntimeError as error:
        print(error)
    assert time.monotonic() - begin < 30
main()
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tensor_of_a_dead_sender_raises(strategy: str) -> None:
    text = finish(start(_DEAD_SENDER, strategy))
    assert "keep the sender alive until the tensor has arrived" in text


_STOPPED_SENDER = """
def main():
    from weft.multiprocessing import descriptors
    descriptors._PATIENCE = 1
    context = mp.get_context("fork")
    queue = context.Queue()
    def send():
        queue.put(weft.ones(3))
        time.sleep(100)
    child = context.Process(target=send)
    child.start()
    while queue.empty():
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    try:
        queue.get(timeout=60)
    except RuntimeError as error:
        print(error)
    child.kill()
    child.join()
main()
"""


def test_a_sender_that_is_stopped_raises() -> None:
    text = finish(start(_STOPPED_SENDER, "file_descriptor"))
    assert "got no answer within 1 seconds" in text


_DEAD_RECEIVERS = """
def take(queue):
    tensors = [queue.get() for _ in range(3)]
    os.kill(os.getpid(), signal.SIGKILL)

def main():
    context = mp.get_context("fork")
    queue = context.Queue()
    for _ in range(4):
        child = context.Process(target=take, args=(queue,))
        child.start()
        for i in range(3):
            queue.put(weft.full((1000,), float(i)))
        child.join(60)
        assert child.exitcode == -9
    x = weft.ones(3)
    queue.put(x)
    assert queue.get(timeout=60).data_ptr() == x.data_ptr()
    del x
    import gc; gc.collect()
    time.sleep(0.1)
    print(weft._C._shared_count())
main()
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_receivers_that_die_keep_nothing(strategy: str) -> None:
    assert finish(start(_DEAD_RECEIVERS, strategy)) == "0"


# ---- ends with tensors under way ----

_UNDELIVERED = """
from weft.multiprocessing import sharing

def send(queue):
    sharing._LINGER = 0.5
    for i in range(10):
        queue.put(weft.full((1000,), float(i)))

def main():
    context = mp.get_context(sys.argv[2])
    queue = context.Queue()
    child = context.Process(target=send, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0, child.exitcode
    queue.put(weft.ones(3))     # ours, which nobody gets
    kept = weft.ones(10).share_memory_()
main() if __name__ == "__main__" else None
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ends_with_undelivered_tensors(strategy: str, method: str) -> None:
    assert finish(start(_UNDELIVERED, strategy, method)) == ""


_LATE = """
def send(queue):
    mp.set_sharing_strategy(STRATEGY)
    for i in range(10):
        queue.put(weft.full((1000,), float(i)))

def main():
    context = mp.get_context(sys.argv[2])
    queue = context.Queue()
    child = context.Process(target=send, args=(queue,))
    child.start()
    while queue.empty():
        time.sleep(0.01)
    time.sleep(1)  # it has nothing left to do but to wait for us
    print([queue.get(timeout=60)[0].item() for _ in range(10)])
    child.join(60)
    assert child.exitcode == 0
main() if __name__ == "__main__" else None
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_that_has_done_waits_for_its_receiver(strategy: str, method: str) -> None:
    assert finish(start(_LATE, strategy, method)) == str([float(i) for i in range(10)])


_PARENT_DIES = """
def send(queue, ready):
    mp.set_sharing_strategy(STRATEGY)
    queue.put(weft.ones(3))
    ready.put(1)

def main():
    context = mp.get_context("fork")
    queue, ready = context.Queue(), context.SimpleQueue()
    for _ in range(2):
        context.Process(target=send, args=(queue, ready)).start()
    ready.get(), ready.get()
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
main()
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_children_end_after_their_parent_was_killed(strategy: str) -> None:
    process: Any = start(_PARENT_DIES, strategy)
    assert process.stdout.readline() == "ready\n"
    process.wait(60)
    end = time.monotonic() + 30
    while memory_of_weft(process.pid):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.communicate()
