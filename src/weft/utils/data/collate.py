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
        return _stack(batch)
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
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
            f"found {first.dtype}"
        )
    return _stack([weft.as_tensor(item) for item in batch])


# ---- in a worker: samples are copied straight to where the parent reads them ----

_DIRECT_BYTES = 1 << 14  # of one sample; for small ones stacking first is faster
_arena: Any = None


def use_arena(arena: Any) -> None:
    """Where batches lie from now on: `arena.empty(size, dtype)` gives memory, or None."""
    global _arena
    _arena = arena


def _stack(samples: list[Tensor]) -> Tensor:
    first = samples[0]
    if _arena is not None and first.nbytes >= _DIRECT_BYTES and _alike(samples):
        batch = _arena.empty((len(samples), *first.shape), first.dtype)
        if batch is not None:
            for place, sample in zip(batch, samples):
                place.copy_(sample)
            return batch
    return weft.stack(samples, 0)


def _alike(samples: list[Tensor]) -> bool:
    shape, dtype = samples[0].shape, samples[0].dtype
    return all(
        s.shape == shape and s.dtype is dtype and type(s) is Tensor and not s.requires_grad
        for s in samples
    )


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
