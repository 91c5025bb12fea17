"""DataLoader: the batches of a data set, one epoch per iteration."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from weft.utils.data.collate import default_collate, default_convert
from weft.utils.data.dataset import IterableDataset, _DatasetKind
from weft.utils.data.iterators import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from weft.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from weft.utils.data.worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
_collate_fn_t = Callable[[list[Any]], Any]


class _InfiniteConstantSampler:
    """None, for ever: what a stream is asked with."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Yields batches of batch_size samples, put together by collate_fn.

    shuffle: a new random order each epoch, PyTorch's for the same seed. sampler, batch_sampler:
    an order, or batches, of one's own. batch_size=None: single samples, not collated.
    drop_last: leaves out a last batch that is not full. generator: where the order and the
    workers' seeds are drawn from.

    num_workers: how many processes load; 0 loads in this one. prefetch_factor: batches that each
    worker is ahead (2). persistent_workers: they stay between epochs. worker_init_fn: called in
    each worker with its number, after seeding. timeout: seconds to wait for a batch, 0 for ever.
    multiprocessing_context: a start method or a context of `multiprocessing`; data set and
    functions are pickled unless it is "fork". in_order=False gives batches as they are ready.
    pin_memory is accepted and has no effect without an accelerator. How batches travel is told in
    docs/data.md.

    Raises ValueError for arguments that exclude each other. Iterating raises what a worker
    raised, with the worker's traceback in the text, and RuntimeError when a worker died.

    >>> from weft.utils.data import DataLoader
    >>> [batch.tolist() for batch in DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    multiprocessing_context: Any
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        prefetch_factor = _checked_prefetch(num_workers, prefetch_factor)
        _check_workers(num_workers, timeout, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        stream = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if stream else _DatasetKind.Map
        if stream:
            _check_stream(shuffle, sampler, batch_sampler)
        _check_samplers(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._default_sampler(dataset, bool(shuffle), generator)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (
            default_collate if self._auto_collation else default_convert
        )
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None  # by len(), of a stream
        self._iterator: _BaseDataLoaderIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def _default_sampler(self, dataset: Any, shuffle: bool, generator: Any) -> Iterable[Any]:
        if isinstance(dataset, IterableDataset):
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(dataset, generator=generator)
        return SequentialSampler(dataset)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "multiprocessing_context":
            value = _checked_context(self.num_workers, value)
        elif self.__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after DataLoader is initialized")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """The number of batches of an epoch; of a stream what its data set tells."""
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        samples = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return samples
        full, rest = divmod(samples, self.batch_size)
        return full if self.drop_last or not rest else full + 1

    def __iter__(self) -> Iterator[Any]:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than there are processors for this process."""
        if self.num_workers == 0:
            return
        affinity = getattr(os, "sched_getaffinity", None)
        most = len(affinity(0)) if affinity else os.cpu_count()
        if most is not None and self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {most}: more may be slower.",
                stacklevel=3,
            )


_FIXED = frozenset(
    ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
)


# ---- checks of arguments; the texts are those that programs know from PyTorch ----


def _check_workers(num_workers: int, timeout: float, persistent_workers: bool) -> None:
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _checked_prefetch(num_workers: int, prefetch_factor: int | None) -> int | None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 "
            "to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        return 2
    if prefetch_factor is not None and prefetch_factor < 1:  # with 0 nothing would be loaded
        raise ValueError(
            f"prefetch_factor option should be non-negative and not 0, got {prefetch_factor}"
        )
    return prefetch_factor


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"sampler": sampler, "batch_sampler": batch_sampler}
    if shuffle not in (None, False):
        given = {"shuffle": shuffle}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def _check_samplers(
    batch_size: int | None, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                "sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _checked_context(num_workers: int, context: Any) -> Any:
    if context is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0),"
            f" but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context
