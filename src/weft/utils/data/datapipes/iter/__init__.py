"""The steps of streams, each a method of IterDataPipe too."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft import _C
from weft.utils.data.collate import default_collate
from weft.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from weft.utils.data.worker import get_worker_info


class IterableWrapper(IterDataPipe):
    """A stream of what an iterable holds; each pass has a deep copy of it.

    >>> from weft.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([3, 1]))
    [3, 1]
    """

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            with contextlib.suppress(TypeError):  # a generator is used as it is
                source = copy.deepcopy(source)
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]


class _Step(IterDataPipe):
    """A stream made of one other."""

    def __init__(self, datapipe: Iterable[Any]) -> None:
        self.datapipe = datapipe

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


def _chosen(sample: Any, columns: Any) -> tuple[Any, ...]:
    """The arguments of a function of some columns of a sample (None: of the sample)."""
    if columns is None:
        return (sample,)
    return (
        tuple(sample[c] for c in columns)
        if isinstance(columns, list | tuple)
        else (sample[columns],)
    )


@functional_datapipe("map")
class Mapper(_Step):
    """fn of each sample, or of its columns `input_col`; the result replaces the sample, or its
    column `output_col` (-1: is added). Of `input_col` alone: replaces that one."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("map: expected input_col beside output_col, got None")
        super().__init__(datapipe)
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def __iter__(self) -> Iterator[Any]:
        return map(self._apply, self.datapipe)

    def _apply(self, sample: Any) -> Any:
        result = self.fn(*_chosen(sample, self.input_col))
        if self.input_col is None:
            return result
        place = self.output_col
        if place is None:
            several = isinstance(self.input_col, list | tuple)
            place = self.input_col[0] if several else self.input_col
        if isinstance(sample, dict):
            return {**sample, place: result}
        items = list(sample)
        if place == -1:
            items.append(result)
        else:
            items[place] = result
        return tuple(items) if isinstance(sample, tuple) else items


@functional_datapipe("filter")
class Filter(_Step):
    """The samples for which filter_fn, of the sample or its columns `input_col`, is true."""

    def __init__(
        self, datapipe: Iterable[Any], filter_fn: Callable[..., bool], input_col: Any = None
    ) -> None:
        super().__init__(datapipe)
        self.filter_fn, self.input_col = filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        return filter(self._is_kept, self.datapipe)

    def _is_kept(self, sample: Any) -> bool:
        kept = self.filter_fn(*_chosen(sample, self.input_col))
        if not isinstance(kept, bool):
            raise ValueError(f"filter: expected a bool from filter_fn, got {kept!r}")
        return kept

    def __len__(self) -> int:
        raise TypeError("filter: expected a stream with a length, got one that is filtered")


@functional_datapipe("batch")
class Batcher(_Step):
    """Lists of batch_size samples; the last may be shorter, or is left out."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = list,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch: expected batch_size of at least 1, got {batch_size}")
        super().__init__(datapipe)
        self.batch_size, self.drop_last, self.wrapper_class = batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = super().__len__()
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("collate")
class Collator(_Step):
    """Each batch as one tensor, or as collate_fn makes it."""

    def __init__(
        self, datapipe: Iterable[Any], collate_fn: Callable[[Any], Any] = default_collate
    ) -> None:
        super().__init__(datapipe)
        self.collate_fn = collate_fn

    def __iter__(self) -> Iterator[Any]:
        return map(self.collate_fn, self.datapipe)


@functional_datapipe("shuffle")
class Shuffler(_Step):
    """The samples in random order, drawn from a buffer of buffer_size of them.

    A pass is seeded by weft's generator, so that manual_seed repeats it.
    """

    def __init__(self, datapipe: Iterable[Any], *, buffer_size: int = 10000) -> None:
        if buffer_size < 1:
            raise ValueError(f"shuffle: expected buffer_size of at least 1, got {buffer_size}")
        super().__init__(datapipe)
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        draws = random.Random(int(_C.empty((), dtype=_C.int64).random_().item()))
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            at = draws.randint(0, len(buffer) - 1)
            chosen, buffer[at] = buffer[at], sample
            yield chosen
        while buffer:
            yield buffer.pop(draws.randint(0, len(buffer) - 1))


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """One stream after the other."""

    def __init__(self, *datapipes: Iterable[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for each in self.datapipes:
            yield from each

    def __len__(self) -> int:
        return sum(len(each) for each in self.datapipes)  # type: ignore[arg-type, misc]


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of one sample of each stream, until the shortest ends."""

    def __init__(self, *datapipes: Iterable[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes)

    def __len__(self) -> int:
        return min(len(each) for each in self.datapipes)  # type: ignore[arg-type]


@functional_datapipe("sharding_filter")
class ShardingFilter(_Step):
    """In a worker of a DataLoader, the worker's share: every n-th sample of n workers."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        if info is None:
            return iter(self.datapipe)
        return (s for i, s in enumerate(self.datapipe) if i % info.num_workers == info.id)

    def __len__(self) -> int:
        info, count = get_worker_info(), super().__len__()
        return count if info is None else len(range(info.id, count, info.num_workers))
