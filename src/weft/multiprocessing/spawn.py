"""spawn and start_processes: a function in several processes, whose failures reach the caller.

A child that raises sends its traceback through a pipe; one that dies is known by its exit code.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

# A pipe holds 64 KB without a reader; a child that reports must not wait for one.
_MOST_BYTES = 32_000
_GRACE = 30.0  # seconds between asking the others to end and killing them


class ProcessException(Exception):
    """A process that was started did not end well."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised; the message has its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended with an exit code other than 0, or by a signal."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        args = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), args


def _end_with_parent(parent: int, direct: bool) -> None:
    """Interrupts this process when the one that called spawn dies."""
    if direct:
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGINT)
        if os.getppid() != parent:  # it died before that call
            os.kill(os.getpid(), signal.SIGINT)
        return
    caller = multiprocessing.parent_process()
    assert caller is not None

    def watch() -> None:
        caller.join()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="weft-parent", daemon=True).start()


def _run(
    fn: Callable[..., Any],
    index: int,
    args: tuple[Any, ...],
    report: Connection,
    parent: int,
    direct: bool,
) -> None:
    try:
        _end_with_parent(parent, direct)
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent ended, or was interrupted itself
    except Exception:
        report.send(_shortened(traceback.format_exc()))
        sys.exit(1)


def _shortened(text: str) -> str:
    """Both ends of a long text: a traceback begins with the place and ends with the message."""
    data = text.encode("utf-8", "replace")
    if len(data) <= _MOST_BYTES:
        return text
    half = _MOST_BYTES // 2
    first, last = (part.decode("utf-8", "ignore") for part in (data[:half], data[-half:]))
    return f"{first}\n... {len(data) - 2 * half} bytes ...\n{last}"


class ProcessContext:
    """The processes of one `start_processes`, in order."""

    def __init__(self, processes: list[Any], reports: list[Connection]) -> None:
        self.processes = processes
        self.reports = reports
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Process ids, by index."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for one or more to end; True when all have ended well, so call it in a loop.

        Once one did not end well the others are asked to end (SIGTERM), killed after
        `grace_period` seconds (30 without one), and ProcessRaisedException or
        ProcessExitedException is raised. False when `timeout` seconds pass, or some are left.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if failed is None and self.processes[index].exitcode != 0:
                failed = index
        if failed is None:
            return not self.sentinels
        self._end_all(_GRACE if grace_period is None else grace_period)
        raise self._failure(failed)

    def _end_all(self, grace: float) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + grace
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()

    def _failure(self, index: int) -> ProcessException:
        process, report = self.processes[index], self.reports[index]
        if report.poll():
            try:
                text = report.recv()
            except (EOFError, OSError):
                text = None
            if text is not None:
                message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
                return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code >= 0:
            message = f"process {index} terminated with exit code {code}"
            return ProcessExitedException(message, index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        message = f"process {index} terminated with signal {name}"
        return ProcessExitedException(message, index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """A ProcessContext under the name it has for `spawn`."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) in `nprocs` processes.

    With `join`, waits for all; the first that fails ends the others and raises. Without, returns a
    ProcessContext. The processes are interrupted when the caller dies.
    """
    return _start(ProcessContext, fn, args, nprocs, join, daemon, start_method)


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """start_processes with new interpreters: fn must be importable by its name."""
    return _start(SpawnContext, fn, args, nprocs, join, daemon, start_method)


def _start(
    kind: type[ProcessContext],
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    nprocs: int,
    join: bool,
    daemon: bool,
    start_method: str,
) -> ProcessContext | None:
    mp: Any = multiprocessing.get_context(start_method)
    processes, reports = [], []
    for index in range(nprocs):
        ours, theirs = mp.Pipe(duplex=False)
        # A process of the fork server is the server's child, not ours.
        work = (fn, index, args, theirs, os.getpid(), start_method != "forkserver")
        process = mp.Process(target=_run, args=work, daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        reports.append(ours)
    context = kind(processes, reports)
    if not join:
        return context
    while not context.join():
        pass
    return None
