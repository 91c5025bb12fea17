"""Fetching: from what a sampler says to one batch, in this process or in a worker."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from weft.utils.data.collate import default_collate, stacks_tensors
from weft.utils.data.dataset import Subset, TensorDataset

Fetch = Callable[[Any], Any]


def make_fetch(
    dataset: Any,
    is_stream: bool,
    collates: bool,
    collate_fn: Callable[[Any], Any],
    drop_last: bool,
) -> Fetch:
    """A function from one item of the index sampler to one batch.

    is_stream: the data set is iterated over, as an IterableDataset. The indices only say how many
    samples are wanted; at its end the function raises EndOfStream.
    collates: the item is a list of indices, and collate_fn gets a list of samples; otherwise both
    are of one sample.
    """
    if is_stream:
        return _stream_fetch(dataset, collates, collate_fn, drop_last)
    if not collates:
        return lambda index: collate_fn(dataset[index])

    def fetch(indices: list[Any]) -> Any:
        if collate_fn is default_collate and stacks_tensors():
            source, chosen = _resolve(dataset, indices)
            if type(source) is TensorDataset and set(map(type, chosen)) <= {int}:
                return source._batch(chosen)
        many = getattr(dataset, "__getitems__", None)
        samples = many(indices) if many else [dataset[index] for index in indices]
        return collate_fn(samples)

    return fetch


class EndOfStream(Exception):
    """An IterableDataset has no more samples."""


def _stream_fetch(
    dataset: Any, collates: bool, collate_fn: Callable[[Any], Any], drop_last: bool
) -> Fetch:
    samples = iter(dataset)

    def one(_: Any) -> Any:
        for sample in samples:
            return collate_fn(sample)
        raise EndOfStream

    def many(keys: list[Any]) -> Any:
        batch = list(itertools.islice(samples, len(keys)))
        if not batch or (drop_last and len(batch) < len(keys)):
            raise EndOfStream
        return collate_fn(batch)

    return many if collates else one


def _resolve(dataset: Any, indices: Any) -> tuple[Any, Any]:
    """The data set below plain Subsets, and the indices in it."""
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    return dataset, indices
