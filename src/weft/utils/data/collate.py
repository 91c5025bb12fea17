"""Collating: from a list of samples to one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import weft
from weft import Tensor


def default_collate(batch: list[Any]) -> Any:
    """Stacks tensors, arrays and numbers, going into dicts, tuples and lists.

    Tensors of one shape [*] become [len(batch), *]; floats become float64, integers int64; strings
    and bytes stay a list.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return weft.stack(batch, 0)
    if _is_numpy(first):
        return _collate_numpy(batch)
    if isinstance(first, float):
        return weft.tensor(batch, dtype=weft.float64)
    if isinstance(first, int):
        return weft.tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([s[key] for s in batch]) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequences(batch)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )


def _collate_numpy(batch: list[Any]) -> Any:
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(f"default_collate: expected numbers in an array, got {first.dtype}")
    return weft.stack([weft.as_tensor(item) for item in batch], 0)


def _collate_sequences(batch: list[Any]) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [default_collate(list(column)) for column in zip(*batch)]
    if isinstance(first, tuple):  # a plain tuple becomes a list, as in PyTorch
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _like(first, columns)


def default_convert(data: Any) -> Any:
    """Turns arrays into tensors inside one sample, without adding a batch dimension."""
    if isinstance(data, Tensor | str | bytes):
        return data
    if _is_numpy(data):
        return data if data.dtype.kind in "SUO" else weft.as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        converted = [default_convert(value) for value in data]
        if hasattr(data, "_fields"):
            return type(data)(*converted)
        return converted if isinstance(data, tuple) else _like(data, converted)
    return data


def _is_numpy(value: Any) -> bool:
    """Whether this is a NumPy array or scalar; NumPy itself need not have been imported."""
    return type(value).__module__ == "numpy"


def _like(original: Any, values: Any) -> Any:
    """`values` as the same kind of container; the plain one where that cannot be built so."""
    maker: Callable[[Any], Any] = type(original)
    try:
        return maker(values)
    except TypeError:
        return values
