"""What test_fork.py runs in processes of its own: threads at work, forks, and children that do it all.

`python fork_support.py NAME` runs one of the scenarios; it ends with 0 when every child did its work.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import weft
import weft.nn.functional as F

CHILD_SECONDS = 60  # generous: a child needs some hundred milliseconds on a quiet machine


@weft.jit.script
def scripted(x: weft.Tensor, times: int) -> weft.Tensor:
    y = x
    for _i in range(times):
        y = (y * 0.5 + x).sigmoid()
    return y


@weft.jit.script
def later(x: weft.Tensor) -> weft.Tensor:
    return x * 2 + 1


@weft.jit.script
def forked(x: weft.Tensor) -> weft.Tensor:
    one = weft.jit.fork(later, x)
    two = weft.jit.fork(later, x + 1)
    return weft.jit.wait(one) + weft.jit.wait(two)


def matmul() -> float:
    a = weft.arange(160 * 160.0).view(160, 160) / 1e4
    return (a @ a.t()).sum().item()


def blas() -> float:
    """Through OpenBLAS on every machine: complex products, and LAPACK."""
    a = weft.eye(96, dtype=weft.complex128) * 2
    b = weft.linalg.inv(weft.eye(64, dtype=weft.float64) * 4)
    return (a @ a).real.sum().item() + b.sum().item()


def conv() -> float:
    return F.conv2d(weft.ones(4, 8, 24, 24), weft.ones(8, 8, 3, 3), padding=1).sum().item()


def sums() -> float:
    return weft.ones(400_000).sum().item() + weft.ones(300, 500).sum(0).sum().item()


def backward() -> float:
    x = weft.ones(200, 100, requires_grad=True)
    ((x * 3) @ weft.ones(100, 50)).relu().sum().backward()
    return x.grad.sum().item()


SHARED = weft.ones(64, requires_grad=True)


def backward_of_shared() -> float:
    """Many threads add gradients into one leaf."""
    (SHARED * 2).sum().backward()
    return 0.0


def script() -> float:
    return round(scripted(weft.ones(3000), 4).sum().item(), 2)


def futures() -> float:
    return forked(weft.ones(1000)).sum().item()


def draws() -> float:
    x = weft.randn(5000)
    y = weft.rand(100, generator=weft.Generator().manual_seed(1))
    return float(x.isfinite().all()) + float((y < 1).all())


def blocks() -> float:
    kept = [weft.empty(n) for n in (3, 300, 30_000, 3_000_000)]
    kept[3][0] = 1
    return kept[3][0].item()


WORK: list[Callable[[], float]] = [
    matmul, blas, conv, sums, backward, backward_of_shared, script, futures, draws, blocks,
]  # fmt: skip


def everything(expected: dict[str, float]) -> None:
    for work in WORK:
        with weft.enable_grad():  # off where hooks run
            found = work()
        assert found == expected[work.__name__], (work.__name__, found, expected[work.__name__])


def fresh_script() -> None:
    """A program that this process compiles itself, to native code where that is possible."""
    scope: dict[str, Any] = {"weft": weft}
    function = weft.jit.script(_fresh)
    for _ in range(4):
        assert function(weft.ones(2000)).sum().item() == 2000 * 7, scope


def _fresh(x: weft.Tensor) -> weft.Tensor:
    return (x + 1) * 3 + x


def in_child(body: Callable[[], Any]) -> int:
    """Forks; the child runs body and leaves. Its process id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(CHILD_SECONDS + 20)  # should nobody be left to kill it
    try:
        body()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def reap(child: int) -> None:
    """Waits for a child; one that hangs is killed and is a failure."""
    end = time.monotonic() + CHILD_SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, f"child ended with {status:#x}"
            return
        if time.monotonic() > end:
            os.kill(child, signal.SIGABRT)  # says where it is
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("child hangs")
        time.sleep(0.002)


class Threads:
    """Threads that work until the block ends."""

    def __init__(self, works: list[Callable[[], float]]) -> None:
        self.failed: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(w,)) for w in works]

    def _run(self, work: Callable[[], float]) -> None:
        try:
            while not self._stop.is_set():
                work()
        except BaseException as error:
            self.failed.append(error)

    def __enter__(self) -> Threads:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(CHILD_SECONDS)
            assert not thread.is_alive(), "a thread hangs"
        assert not self.failed, self.failed


def expected() -> dict[str, float]:
    return {work.__name__: work() for work in WORK}


# ---- scenarios ----


def storm() -> None:
    """Forks in the middle of everything."""
    known = expected()
    with Threads(WORK):
        for _ in range(60):
            reap(in_child(lambda: everything(known)))


def together() -> None:
    """Several children at a time, made by several threads, with children of their own."""
    known = expected()

    def generations() -> None:
        everything(known)
        reap(in_child(lambda: everything(known)))

    def some() -> float:
        reap(in_child(generations))
        return 0.0

    with Threads([matmul, backward, script, draws]):
        makers = [threading.Thread(target=lambda: [some() for _ in range(5)]) for _ in range(3)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join(5 * CHILD_SECONDS)
            assert not maker.is_alive()


def compiling() -> None:
    """Children compile programs while the parent's threads compile theirs."""

    def compile_one() -> float:
        source = weft.jit.script(_other)
        return source(weft.ones(10)).sum().item()

    with Threads([compile_one, script]):
        for _ in range(15):
            reap(in_child(fresh_script))


def _other(x: weft.Tensor) -> weft.Tensor:
    return (x * 2 - 1).relu() + x


def hooks() -> None:
    """Forks inside of hooks and of a backward written in Python; both sides go on."""
    known = expected()
    parent = os.getpid()
    children: list[int] = []

    def split(grad: weft.Tensor) -> weft.Tensor:
        if os.getpid() == parent:
            children.append(in_child(lambda: everything(known)))
        return grad * 2

    class Splits(weft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
            # This child goes on with the run of backward.
            child = os.fork()
            if child:
                children.append(child)
            return grad

    x = weft.ones(1000, requires_grad=True)
    y = x * 3
    y.register_hook(split)
    z = Splits.apply(y)
    (z + 1).sum().backward()
    assert x.grad.sum().item() == 6000
    if os.getpid() != parent:
        everything(known)
        os._exit(0)
    for child in children:
        reap(child)
    assert len(children) == 2


def allocator() -> None:
    """Forks inside of an allocator written in Python, in the middle of parallel regions too."""
    import ctypes

    from weft import memory

    known = expected()
    parent = os.getpid()
    children: list[int] = []
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    count = 0

    def allocate(nbytes: int) -> int:
        nonlocal count
        count += 1
        if os.getpid() == parent and count % 40 == 0 and len(children) < 8:
            children.append(in_child(lambda: everything(known)))
        return libc.aligned_alloc(64, (nbytes + 63) // 64 * 64)

    def free(block: int, nbytes: int) -> None:
        libc.free(block)

    made = memory.Allocator(allocate, free, name="forking")
    with memory.using(made):
        while len(children) < 8:
            for work in (conv, matmul, sums, backward, blas):
                assert work() == known[work.__name__]
        while children:
            reap(children.pop())


def leaving() -> None:
    """Children that end as programs do, atexit functions included."""
    known = expected()
    with Threads([script, matmul]):
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(CHILD_SECONDS + 20)
                everything(known)
                fresh_script()
                import atexit

                atexit._run_exitfuncs()
                os._exit(0)
            reap(child)


def lost_future() -> None:
    """A child does not wait for a call that runs on a thread of its parent."""
    with Threads([futures] * 4):
        known = futures()
        for _ in range(20):
            reap(in_child(lambda: futures() == known or os._exit(3)))


class SlowImports:
    """Makes the first import of each module of weft take a while."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.parent = os.getpid()

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name.startswith("weft."):
            self.seen.add(name)
            time.sleep(0.01 if os.getpid() == self.parent else 0)  # with the module's lock held


def importing() -> None:
    """Forks while another thread imports, for the first time, what the child needs as well."""
    slow: Any = SlowImports()
    sys.meta_path.insert(0, slow)

    def trace() -> float:
        with weft.enable_grad():
            traced = weft.jit.trace(lambda x: x * 2 + 1, weft.ones(3), check_trace=False)
        return traced(weft.ones(3)).sum().item()

    def others() -> float:
        import weft.utils.data as data
        from weft import multiprocessing, serialization

        assert multiprocessing.get_all_sharing_strategies() and serialization.save
        return float(len(list(data.DataLoader(range(4)))))

    for work, known in ((trace, 9.0), (others, 4.0)):
        before = len(slow.seen)
        thread = threading.Thread(target=work)
        thread.start()
        while len(slow.seen) == before:  # it is inside of its first import
            time.sleep(0.001)
        for _ in range(5):
            reap(in_child(lambda w=work, k=known: w() == k or os._exit(3)))
            time.sleep(0.01)
        thread.join(CHILD_SECONDS)
        assert not thread.is_alive() and work() == known


if __name__ == "__main__":
    faulthandler.enable()
    globals()[sys.argv[1]]()
