"""Data sets: things with samples, by index or in a stream."""

from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from weft import _C
from weft._C import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index; a subclass defines __getitem__ and, for most samplers, __len__.

    A subclass may define `__getitems__(indices)`, which returns the list of samples at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__}: expected __getitem__, got none")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class _DatasetKind:
    """How samples are found: by index or in a stream."""

    Map = 0
    Iterable = 1


class IterableDataset(Dataset[T_co]):
    """Samples in a stream; a subclass defines __iter__.

    Every worker of a DataLoader has a copy, so __iter__ should give its worker's share only:

    >>> from weft.utils.data import DataLoader, IterableDataset, get_worker_info
    >>> class Numbers(IterableDataset):
    ...     def __iter__(self):
    ...         info = get_worker_info()
    ...         return iter(range(10) if info is None else range(info.id, 10, info.num_workers))
    >>> [batch.tolist() for batch in DataLoader(Numbers(), batch_size=5)]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: expected __iter__, got none")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple of the i-th entries of tensors with equal first size."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.size(0) for tensor in tensors]
        if len(set(sizes)) > 1:
            raise ValueError(f"TensorDataset: expected equal first sizes, got {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _batch(self, indices: Sequence[int]) -> list[Tensor]:
        """What collating the samples at `indices` gives, by one look-up per tensor."""
        index = _C.tensor(indices)
        return [tensor[index] for tensor in self.tensors]


class StackDataset(Dataset[T_co]):
    """Sample i is the tuple (or, from keywords, the dict) of the i-th samples of data sets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            got = "both" if args else "none"
            raise ValueError(f"StackDataset: expected positional or keyword data sets, got {got}")
        self.datasets: Any = kwargs or args
        sizes = [len(dataset) for dataset in (kwargs.values() if kwargs else args)]
        if len(set(sizes)) > 1:
            raise ValueError(f"StackDataset: expected equal lengths, got {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        named = isinstance(self.datasets, dict)
        columns = []
        for dataset in self.datasets.values() if named else self.datasets:
            columns.append(_samples(dataset, indices))
            if len(columns[-1]) != len(indices):  # its samples would go with those of others
                raise ValueError(
                    f"{type(dataset).__name__}.__getitems__: expected {len(indices)} samples, "
                    f"got {len(columns[-1])}"
                )
        samples = zip(*columns)
        return [dict(zip(self.datasets, sample)) for sample in samples] if named else list(samples)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The samples of several data sets, one set after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: expected at least one data set, got none")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise TypeError("ConcatDataset: expected sets with an index, got an IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        return list(itertools.accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        size, kind = len(self), ValueError if index < 0 else IndexError  # which ends iterating
        if not -size <= index < size:
            raise kind(f"ConcatDataset: expected an index in [-{size}, {size}), got {index}")
        position = index % size
        part = bisect_right(self.cumulative_sizes, position)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][position - start]


class ChainDataset(IterableDataset[Any]):
    """The samples of several streams, one stream after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    f"ChainDataset: expected IterableDatasets, got {type(dataset).__name__}"
                )
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of a data set at the given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if type(self).__getitem__ is not Subset.__getitem__:  # a subclass does more with a sample
            return [self[i] for i in indices]
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _samples(dataset: Any, indices: list[Any]) -> list[Any]:
    """The samples at the indices, at once where the data set can."""
    fetch = getattr(dataset, "__getitems__", None)
    return fetch(indices) if fetch else [dataset[index] for index in indices]


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Any = None
) -> list[Subset]:
    """Cuts a data set at random into parts of the given lengths, or shares that add up to 1.

    What rounding the shares leaves over goes, one sample each, to the first parts.
    """
    total = len(dataset)
    sizes = _sizes(lengths, total)
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _C.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]


def _sizes(lengths: Sequence[int | float], total: int) -> list[int]:
    if not math.isclose(sum(lengths), 1) or sum(lengths) > 1:
        return [int(length) for length in lengths]
    for number, share in enumerate(lengths):
        if not 0 <= share <= 1:
            raise ValueError(
                f"random_split: expected shares between 0 and 1, got {share} at {number}"
            )
    sizes = [math.floor(total * share) for share in lengths]
    for number in range(total - sum(sizes)):
        sizes[number % len(sizes)] += 1
    for number, size in enumerate(sizes):
        if size == 0:
            warnings.warn(
                f"Length of split at index {number} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return sizes
