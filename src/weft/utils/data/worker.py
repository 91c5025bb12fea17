"""The worker process: takes indices, sends batches, and ends when the parent is gone."""

from __future__ import annotations

import gc
import importlib.util
import os
import pickle
import random
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from typing import Any, NamedTuple

from weft import _C
from weft._runtime import lazy
from weft.utils.data import collate, fetch
from weft.utils.data.buffer_pool import BufferPool
from weft.utils.data.channel import Channel, Closed
from weft.utils.data.errors import pack_error
from weft.utils.data.transport import send_batch

# Kinds of messages, to the worker and from it.
TASK, EPOCH = 1, 2
BATCH, FAILURE, END, LAST_WORDS = 1, 2, 3, 4

GRACE = 5.0  # seconds a sample may still take when nobody wants it any more


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info` tells: the worker's number of how many, its seed, its data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


Failure = tuple[Any, str]  # class and text of an exception

_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """About this worker process of a DataLoader; None in a process that is none.

    An IterableDataset uses it to take its share of the samples, for every worker has a copy of
    the data set.

    >>> get_worker_info() is None
    True
    """
    return _worker_info


class Job(NamedTuple):
    """What all workers of a loader get."""

    dataset: Any
    is_stream: bool
    collates: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    worker_init_fn: Callable[[int], None] | None
    num_workers: int
    base_seed: int
    prefetch_factor: int
    parent: int  # process


def run_worker(job: Job, worker: int, end: socket.socket) -> None:
    """The life of a worker; the target of its process."""
    gc.freeze()  # a collection would write to every inherited object, and so copy its page
    _watch(job.parent, end)
    channel = Channel(end)
    try:
        _Worker(job, worker, channel).run()
    except Closed:
        pass  # the parent does not want anything any more
    except BaseException as error:
        text = "".join(traceback.format_exception(error))
        try:
            channel.send(LAST_WORDS, worker, text.encode(errors="replace"))
        except Closed:
            return
        if isinstance(error, SystemExit):
            raise
        sys.exit(1)  # without printing: the parent tells


class _Worker:
    def __init__(self, job: Job, worker: int, channel: Channel) -> None:
        self._job = job
        self._channel = channel
        self._worker = worker
        self._pool = BufferPool(job.prefetch_factor + 2)
        self._fetch: fetch.Fetch | None = None
        self._init_failure: Failure | None = None
        self._failure: Failure | None = None  # why there is nothing to fetch with

    def run(self) -> None:
        self._prepare()
        while True:
            message = self._channel.receive()
            if message.kind == EPOCH:
                self._begin_epoch()
            else:
                self._work(message.number, pickle.loads(message.body))

    def _prepare(self) -> None:
        global _worker_info
        job, seed = self._job, self._job.base_seed + self._worker
        _C.set_num_threads(1)
        _seed_everything(seed, job.base_seed, self._worker)
        _worker_info = WorkerInfo(self._worker, job.num_workers, seed, job.dataset)
        collate.use_pool(self._pool)
        try:
            if job.worker_init_fn is not None:
                job.worker_init_fn(self._worker)
        except Exception as error:
            self._init_failure = pack_error(error, self._worker)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        job = self._job
        self._ended = False
        self._failure = self._init_failure
        if self._failure is not None:
            return
        try:
            self._fetch = fetch.make_fetch(*job[:5])
        except Exception as error:
            self._failure = pack_error(error, self._worker)

    def _work(self, number: int, index: Any) -> None:
        if self._ended:
            self._channel.send(END, number)
        elif self._failure is not None:
            self._ended = self._job.is_stream  # else samples were lost
            self._tell_failure(number, self._failure)
        else:
            self._fetch_and_send(number, index)

    def _fetch_and_send(self, number: int, index: Any) -> None:
        assert self._fetch is not None
        try:
            send_batch(self._channel, BATCH, number, self._fetch(index), self._pool)
        except fetch.EndOfStream:
            self._ended = True
            self._channel.send(END, number)
        except Closed:
            raise
        except Exception as error:
            self._pool.abandon()
            self._tell_failure(number, pack_error(error, self._worker))

    def _tell_failure(self, number: int, failure: Failure) -> None:
        self._channel.send(FAILURE, number, pickle.dumps(failure))


def _watch(parent: int, end: socket.socket) -> None:
    """Ends the process when nobody waits for it: the loop may be deep in the data set's code.

    Ctrl-C reaches the workers too, but it is the parent that decides what becomes of them; the
    worker only remembers that nobody has the patience to wait for its sample.
    """
    # Not a thread of Python's, which would cost each worker a third of a megabyte.
    direct = os.getppid() == parent  # not with a fork server
    _C._watch_parent(parent, direct, end.fileno(), GRACE)
    signal.signal(signal.SIGINT, lambda number, frame: _C._set_watch_patience(0.0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The words by which NumPy is seeded in a worker."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    sequence = lazy.value("numpy.random", "SeedSequence")(words)
    return [int(word) for word in sequence.generate_state(4)]


def _seed_everything(seed: int, base_seed: int, worker: int) -> None:
    """The seeds that PyTorch gives its workers, so that random augmentations are the same."""
    random.seed(seed)
    _C.manual_seed(seed)

    def seed_numpy(numbers: Any) -> None:
        numbers.seed(_generate_state(base_seed, worker))

    if (numbers := sys.modules.get("numpy.random")) is not None:
        seed_numpy(numbers)
    else:
        sys.meta_path.insert(0, _AfterImport("numpy.random", seed_numpy))


class _AfterImport(MetaPathFinder):
    """Calls a function with a module once it has been imported: importing it may be needless."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_tell(module: Any) -> None:
                execute(module)
                self._then(module)

            spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec
