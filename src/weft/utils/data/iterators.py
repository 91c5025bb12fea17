"""One pass over a data set, in this process or by workers."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weft.utils.data.dataset import _DatasetKind
from weft.utils.data.errors import raise_packed
from weft.utils.data.fetch import EndOfStream, make_fetch
from weft.utils.data.sampler import draw_seed
from weft.utils.data.worker import BATCH, END, FAILURE, Job
from weft.utils.data.worker_pool import WorkerPool

if TYPE_CHECKING:
    from weft.utils.data.channel import Message
    from weft.utils.data.dataloader import DataLoader


class _BaseDataLoaderIter:
    """What both kinds of passes have in common: the order, and counting what is given out."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        # Not the loader: it may hold this iterator, whose workers end with the last reference.
        self._num_workers = loader.num_workers
        self._told_length = loader._IterableDataset_len_called
        self._dataset = loader.dataset
        self._index_sampler = loader._index_sampler
        self._sampler_iter: Iterator[Any] = iter(loader._index_sampler)
        # Drawn without workers too, as PyTorch does: what is drawn afterwards is the same.
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )

    def _reset(self, loader: DataLoader[Any]) -> None:
        self._told_length = loader._IterableDataset_len_called
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        told = self._told_length
        if told is not None and self._num_yielded > told:
            self._warn_of_length(told)
        return batch

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _warn_of_length(self, told: int) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {told} (when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched."
        )
        if self._num_workers > 0:
            text += (
                " With workers, the data set may give every worker all samples: see the example "
                "in IterableDataset's documentation."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __reduce__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected not to be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in this process, when asked."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout:
            raise ValueError(
                f"DataLoader: expected timeout=0 with num_workers=0, got {loader.timeout}"
            )
        self._fetch = make_fetch(
            loader.dataset,
            loader._dataset_kind == _DatasetKind.Iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def _next_data(self) -> Any:
        index = next(self._sampler_iter)
        try:
            return self._fetch(index)
        except EndOfStream:
            pass
        raise StopIteration


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads in workers, prefetch_factor batches of each ahead of the one that is given out.

    Batch n goes to the next worker in turn; results wait in `_arrived` until theirs is the number
    to be given out. A worker whose stream has ended gets no more, and its numbers are left out.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._persistent = loader.persistent_workers
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        assert loader.prefetch_factor is not None
        self._prefetch_factor = loader.prefetch_factor
        self._first_number = 0  # of this epoch: what comes for a smaller one is late
        self._sent = 0
        job = Job(
            loader.dataset,
            loader._dataset_kind == _DatasetKind.Iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
            loader.worker_init_fn,
            loader.num_workers,
            self._base_seed,
            loader.prefetch_factor,
            os.getpid(),
        )
        context = loader.multiprocessing_context
        context = multiprocessing.get_context() if context is None else context
        self._pool = WorkerPool(job, context)
        self._stop = weakref.finalize(self, self._pool.stop)
        self._begin()

    @property
    def _workers(self) -> list[Any]:
        return self._pool.processes

    def _begin(self) -> None:
        self._expected = self._first_number = self._sent
        self._owner: dict[int, int] = {}  # number: worker, of what was sent and not given out
        self._arrived: dict[int, Message] = {}
        self._active = [True] * self._num_workers
        self._pending = [0] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._give_next()

    def _reset(self, loader: DataLoader[Any]) -> None:
        """The next epoch of persistent workers; what they still do for the last one is dropped."""
        super()._reset(loader)
        for number in sorted(self._arrived):
            self._let_go(self._owner[number], self._arrived[number])
        self._pool.begin_epoch()
        self._begin()

    def _shutdown_workers(self) -> None:
        self._stop()

    # ---- giving ----

    def _give_next(self) -> None:
        worker = self._next_worker()
        if worker is None:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        self._pool.give(worker, self._sent, index)
        self._owner[self._sent] = worker
        self._pending[worker] += 1
        self._sent += 1

    def _next_worker(self) -> int | None:
        for _ in range(self._num_workers):
            worker = next(self._turns)
            if self._active[worker] and (
                self._in_order or self._pending[worker] < self._prefetch_factor
            ):
                return worker
        return None

    # ---- taking ----

    def _next_data(self) -> Any:
        deadline = time.monotonic() + self._timeout if self._timeout else None
        while (number := self._ready()) is None:
            if not self._owner:
                if not self._persistent:
                    self._stop()
                raise StopIteration
            self._hear(deadline)
        self._expected = number + 1 if self._in_order else self._expected
        worker, message = self._owner.pop(number), self._arrived.pop(number)
        self._give_next()
        if message.kind == FAILURE:
            raise_packed(*pickle.loads(message.body))
        return self._pool.unpack(worker, message)

    def _ready(self) -> int | None:
        """The number to be given out now, once it is there."""
        if not self._in_order:
            return next(iter(self._arrived), None)
        while self._expected < self._sent:
            worker = self._owner.get(self._expected)
            if self._expected in self._arrived:
                return self._expected
            if worker is not None and self._active[worker]:
                return None
            self._owner.pop(self._expected, None)
            self._expected += 1
        return None

    def _hear(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        heard = self._pool.hear(self._owner.get(self._expected, 0), left)
        if heard is None:
            return
        worker, message = heard
        if message.number < self._first_number:
            self._let_go(worker, message)
            return
        self._pending[worker] -= 1
        if message.kind != END:
            self._arrived[message.number] = message
            return
        if self._active[worker]:
            self._active[worker] = False
            self._owner = {
                n: w for n, w in self._owner.items() if w != worker or n in self._arrived
            }
            self._give_next()

    def _let_go(self, worker: int, message: Message) -> None:
        """Gives the buffers of a batch back that nobody wants."""
        if message.kind == BATCH:
            self._pool.unpack(worker, message)
