"""DataLoader: the batches of a data set, one epoch per iteration, in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.utils.data.collate import default_collate, default_convert
from weft.utils.data.dataset import IterableDataset, Subset, TensorDataset
from weft.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler, draw_seed


class DataLoader:
    """Yields batches of batch_size samples, put together by collate_fn.

    shuffle: a new random order each epoch, PyTorch's for the same seed. sampler, batch_sampler:
    an order, or batches, of one's own. batch_size=None: single samples, not collated.
    drop_last: leaves out a last batch that is not full. The arguments that concern worker
    processes are accepted; num_workers above 0 raises.
    """

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
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader: expected no shuffle, sampler or batch_sampler with an "
                "IterableDataset, got one"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: expected drop_last=False with batch_size=None, got True")
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        if sampler is None and not self._iterable:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        if batch_sampler is None and batch_size is not None and not self._iterable:
            assert sampler is not None
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        collates = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if collates else default_convert)

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        if not self._iterable:
            counted = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(counted)  # type: ignore[arg-type]
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        full, rest = divmod(samples, self.batch_size)
        return full if self.drop_last or not rest else full + 1

    def __iter__(self) -> Iterator[Any]:
        # PyTorch draws a seed for its workers here even when there are none; drawing it too
        # keeps the random stream that follows the same.
        draw_seed(self.generator)
        if self._iterable:
            return self._stream()
        if self.batch_sampler is not None:
            return map(self._fetch, self.batch_sampler)
        assert self.sampler is not None
        return (self.collate_fn(self.dataset[index]) for index in self.sampler)

    def _fetch(self, indices: list[int]) -> Any:
        dataset = self.dataset
        if self.collate_fn is default_collate:
            source, chosen = _resolve(dataset, indices)
            if type(source) is TensorDataset:
                return source._batch(chosen)
        fetch = getattr(dataset, "__getitems__", None)
        samples = fetch(indices) if fetch else [dataset[index] for index in indices]
        return self.collate_fn(samples)

    def _stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)


def _resolve(dataset: Any, indices: Any) -> tuple[Any, Any]:
    """The data set below plain Subsets, and the indices in it."""
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    return dataset, indices


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(f"DataLoader: expected num_workers of at least 0, got {num_workers}")
    if num_workers > 0:
        raise NotImplementedError(
            f"DataLoader: expected num_workers=0, got {num_workers}; loading in worker processes "
            "needs weft.multiprocessing, which does not exist yet"
        )
    if timeout < 0:
        raise ValueError(f"DataLoader: expected timeout of at least 0, got {timeout}")
    if prefetch_factor is not None or persistent_workers:
        raise ValueError(
            "DataLoader: expected no prefetch_factor or persistent_workers with num_workers=0, "
            "got one"
        )
