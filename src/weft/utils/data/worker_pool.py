"""A loader's pool of worker processes, seen from the parent."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any, NoReturn
from weakref import WeakSet

from weft.multiprocessing import sharing  # noqa: F401  (tensors of data sets go as handles)
from weft.utils.data.channel import Channel, Closed, Message, channel_pair
from weft.utils.data.errors import LIMITS, describe_exit, explained, start_error
from weft.utils.data.transport import Receiver
from weft.utils.data.worker import EPOCH, GRACE, LAST_WORDS, TASK, Job, run_worker

_pools: WeakSet[WorkerPool] = WeakSet()


class WorkerPool:
    """Worker processes and the channels to them. One thread at a time."""

    def __init__(self, job: Job, context: Any) -> None:
        self.processes: list[Any] = []
        self._channels: list[Channel] = []
        self._receivers: list[Receiver] = []
        self._owner = os.getpid()
        _pools.add(self)
        method = context.get_start_method()
        if method == "fork":
            _prepare_fork()
        if method == "spawn":
            resource_tracker.ensure_running()  # when that starts it, it lets Ctrl-C through
        try:
            # A fork server would keep what is blocked for all its other children.
            with _without_interrupts() if method != "forkserver" else contextlib.nullcontext():
                for worker in range(job.num_workers):
                    self._start(job, context, worker)
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError) and error.errno in LIMITS:
                raise start_error(error.errno, job.num_workers, len(self.processes)) from error
            raise
        self._poller = select.poll()
        self._by_descriptor: dict[int, int] = {}
        for worker, (process, channel) in enumerate(zip(self.processes, self._channels)):
            for descriptor in (process.sentinel, channel.fileno()):
                self._poller.register(descriptor, select.POLLIN)
                self._by_descriptor[descriptor] = worker

    def _start(self, job: Job, context: Any, worker: int) -> None:
        mine, theirs = channel_pair()
        self._channels.append(Channel(mine))
        self._receivers.append(Receiver(self._channels[-1]))
        try:
            process = context.Process(target=run_worker, args=(job, worker, theirs), daemon=True)
            with explained(context.get_start_method()):
                process.start()
            self.processes.append(process)
        finally:
            theirs.close()

    # ---- telling ----

    def give(self, worker: int, number: int, index: Any) -> None:
        """Sends a worker the indices of a batch."""
        self._tell(worker, TASK, number, pickle.dumps(index, pickle.HIGHEST_PROTOCOL))

    def begin_epoch(self) -> None:
        """Lets every worker begin its data set anew."""
        for worker in range(len(self.processes)):
            self._tell(worker, EPOCH, 0, b"")

    def _tell(self, worker: int, kind: int, number: int, body: bytes) -> None:
        self._check_owner()
        try:
            self._channels[worker].send(kind, number, body)
        except Closed:
            self._report(worker)

    # ---- hearing ----

    def hear(self, first: int, timeout: float | None) -> tuple[int, Message] | None:
        """A message and whose it is, the first choice being a worker's; None after `timeout`.

        RuntimeError as soon as a process has ended and left nothing to read.
        """
        self._check_owner()
        for worker in [first, *(w for w, c in enumerate(self._channels) if c.has_begun())]:
            # What was read together with a message before wakes nobody again.
            if (message := self._hear_now(worker)) is not None:
                return worker, message
        ready = self._poller.poll(None if timeout is None else max(timeout, 0) * 1000)
        for worker in sorted({self._by_descriptor[descriptor] for descriptor, _ in ready}):
            message = self._hear_now(worker)
            if message is not None:
                return worker, message
            if not self.processes[worker].is_alive():
                # It may have sent its last message between the look and its end.
                if (message := self._hear_now(worker)) is not None:
                    return worker, message
                self._report(worker)
        return None

    def _hear_now(self, worker: int) -> Message | None:
        try:
            message = self._channels[worker].receive_now()
        except Closed:
            self._report(worker)
        if message is not None and message.kind == LAST_WORDS:
            self._report(worker, bytes(message.body).decode())
        return message

    def unpack(self, worker: int, message: Message) -> Any:
        """The batch in a worker's message."""
        return self._receivers[worker].unpack(message)

    def _report(self, worker: int, said: str = "") -> NoReturn:
        """Raises the error about a worker that has ended without being asked to."""
        self.processes[worker].join(GRACE)  # the socket may close before the process is gone
        dead = [process for process in self.processes if not process.is_alive()]
        for process in dead:
            process.join()
        pids = ", ".join(str(process.pid) for process in dead)
        told = "; ".join(describe_exit(process.pid, process.exitcode) for process in dead)
        text = f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {told}"
        if said:
            text += f"\nIts last error:\n{said}"
        raise RuntimeError(text)

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise RuntimeError(
                "DataLoader: expected its iterator in the process that made it, got it in a fork"
            )

    # ---- ending ----

    def stop(self) -> None:
        """Ends the workers: at once where they wait, else when their sample is done or late."""
        if self._owner != os.getpid():
            return
        for channel in self._channels:
            channel.close()
        deadline = time.monotonic() + GRACE + 1
        for process in self.processes:
            process.join(max(deadline - time.monotonic(), 0))
        for end in ("terminate", "kill"):
            stubborn = [process for process in self.processes if process.is_alive()]
            for process in stubborn:
                getattr(process, end)()
            for process in stubborn:
                process.join(1)

    def forget(self) -> None:
        """In a fork: these are not its channels."""
        for channel in self._channels:
            channel.forget()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C waits; in the workers until they know what to do then, so that they print nothing.

    Blocking does not suffice here: it may reach a thread of some library, which tells Python. So it
    is remembered, too.
    """
    came: list[Any] = []
    handler = signal.getsignal(signal.SIGINT)
    remembers = callable(handler) and threading.current_thread() is threading.main_thread()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if remembers:
        signal.signal(signal.SIGINT, lambda *told: came.append(told))
    try:
        yield
    finally:
        if remembers:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came and callable(handler):
            handler(*came[0])


def _prepare_fork() -> None:
    """Imports here, once and shared, what every worker would import for itself."""
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


# A forked process that kept the sockets would hide the end of the parent from the workers.
os.register_at_fork(after_in_child=_forget_all)
