"""The thread that compiles while the program goes on: fusion groups to native code, and the graphs
of long functions to optimised ones.

A group runs on its operators' kernels until its native code is there; no call ever waits for the
compiler. What could not be compiled stays as it is (`failures` lists why).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._kernels.target import is_aarch64, is_x86
from weft._runtime import lazy
from weft._runtime.fork_lock import ForkLock

# Composes and compiles. The thread waits for it, not a program's first result.
images = lazy.module("weft.jit.native.images")

RUNS_BEFORE = 2  # runs of a group before it is worth native code

failures: list[str] = []
compiled: list[str] = []  # names of images made or loaded, in order
_lock = threading.Lock()
_thread: threading.Thread | None = None
_stopping = False
_jobs: deque[_Job] = deque()


def available() -> bool:
    """Whether groups can be compiled here: llvmlite is installed and the machine is known."""
    return _is_known() and bool(images.llvm.is_installed())


def _is_known() -> bool:
    """Whether there are images for this machine: x86-64, or AArch64 with Linux."""
    return is_x86() or (is_aarch64() and sys.platform == "linux")


def start() -> None:
    """Starts compiling in the background; called when the first program is made.

    WEFT_JIT_NATIVE=0 keeps to the operators' kernels.
    """
    global _thread
    if _thread is not None and _thread.is_alive():
        return
    if not _usable or not _is_known() or os.environ.get("WEFT_JIT_NATIVE") == "0":
        return
    with _lock:
        if _thread is not None and _thread.is_alive():
            return
        _thread = threading.Thread(target=_serve, name="weft-compiler", daemon=True)
        _thread.start()
    _C._fused_compile_after(RUNS_BEFORE)


def stop() -> None:
    """Ends the thread; groups without native code stay as they are."""
    global _thread, _stopping
    thread, _thread = _thread, None
    if thread is None:
        return
    _C._fused_compile_after(None)
    _stopping = True
    while thread.is_alive():
        _C._fused_wake()
        thread.join(0.05)
    _stopping = False


# Python ends threads that hold C++ frames by force, which C++ does not survive.
atexit.register(stop)


def _lost() -> None:
    """No native code is made any more: some lock of LLVM's may be taken for good."""
    global _usable
    _usable = False


def _after_fork_in_child() -> None:
    """The child has no compiling thread: start one when the next program is made."""
    global _thread, _lock
    _thread, _lock = None, threading.Lock()
    _jobs.clear()
    _C._fused_compile_after(None)


_usable = True
_busy = ForkLock(_lost)  # held while a group is compiled: LLVM has locks of its own
os.register_at_fork(after_in_child=_after_fork_in_child)


class _Job:
    """Work for the thread; what it raises is raised again by work in the caller's thread."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work, self.is_over, self.process = work, False, os.getpid()

    def run(self) -> None:
        with contextlib.suppress(Exception):
            self.work()
        self.is_over = True


def submit(work: Callable[[], object]) -> _Job | None:
    """Has the thread do some work; None if there is no thread."""
    start()
    if _thread is None:
        return None
    job = _Job(work)
    _jobs.append(job)
    _C._fused_wake()
    return job


def is_over(job: _Job | None) -> bool:
    """Whether nobody works on a job: it is done, or the thread is another process's."""
    return job is None or job.is_over or job.process != os.getpid()


class _Stopped(Exception):
    pass


def raise_if_stopping(*_: object) -> None:
    """Ends a job of the thread when Python ends."""
    if _stopping and threading.current_thread() is not threading.main_thread():
        raise _Stopped


def _serve() -> None:
    while True:
        if _jobs:
            _jobs.popleft().run()
            continue
        request = _C._fused_requests(1.0)
        if request is not None:
            with _busy:
                serve(*request)
        elif _stopping:
            return


def serve(group: Any, compute: Any, masks: int, ints: int = 0) -> bool:
    """Compiles (or finds on disk) and installs native code; False where that is not possible."""
    try:
        name = str(compute).removeprefix("weft.").removeprefix("torch.")
        group.install(compute, masks, _image(group, name, masks, ints), ints)
        return True
    except Exception as error:  # the program runs on without native code
        failures.append(f"{type(error).__name__}: {error}")
        return False


def _image(group: Any, compute: str, masks: int, ints: int = 0) -> bytes:
    isa = _C._isa() if is_x86() else 0
    return image_for(group, compute, masks, ints, ("v2", "v3", "v4")[isa] if is_x86() else "neon")


def image_for(group: Any, compute: str, masks: int, ints: int, level: str) -> bytes:
    """The native code of a group for a level of x86-64 (v2, v3, v4) or AArch64 (neon): from disk,
    or made."""
    name, made = images.find_or_make(group, compute, masks, ints, level)
    compiled.append(name)
    return made


def wait(group: Any, compute: Any, masks: int = 0, seconds: float = 10.0) -> bool:
    """Waits until the group has native code for these dtypes; False when the time is over."""
    end = time.monotonic() + seconds
    while not group.has_native(compute, masks):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True
