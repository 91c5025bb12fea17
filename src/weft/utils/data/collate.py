"""Collating: from a list of samples to one batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor

CollateMap = dict[Any, Callable[..., Any]]


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors, arrays and numbers, going into dicts, tuples and lists.

    Tensors of one shape [*] become [len(batch), *]; floats become float64, integers int64; strings
    and bytes stay as they are. Mappings and lists stay of their class, tuples become lists, named
    tuples stay. `default_collate_fn_map` says what is done with which class, and may be changed.

    >>> from weft.utils.data import default_collate
    >>> default_collate([("a", 1, [0.5]), ("b", 2, [1.5])])
    [('a', 'b'), tensor([1, 2]), [tensor([0.5000, 1.5000], dtype=torch.float64)]]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """What `default_collate` does, with functions of one's own for some classes.

    collate_fn_map: by class, or tuple of classes, a function of a batch of such samples and, as
    `collate_fn_map`, of this map. The class itself is looked for before its bases. Containers that
    the map does not name are gone into. TypeError for anything else.
    """
    first = batch[0]
    if collate_fn_map is not None:
        function = collate_fn_map.get(type(first))
        for kind, candidate in collate_fn_map.items() if function is None else ():
            if isinstance(first, kind):
                function = candidate
                break
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {
            key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
            for key in first
        }
        return _like(first, columns)
    if isinstance(first, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise _no_batch_of(type(first))


class _NumPyKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return _is_numpy(value) and not isinstance(value, str | bytes)


class _NumPy(metaclass=_NumPyKind):
    """NumPy's arrays and numbers; NumPy itself need not have been imported."""


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return _stack(batch)


def collate_numpy_array_fn(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Any:
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise _no_batch_of(first.dtype)
    return _stack([_C.as_tensor(item) for item in batch])


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return _C.tensor(batch, dtype=_C.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return _C.tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    _NumPy: collate_numpy_array_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
_UNCHANGED = dict(default_collate_fn_map)


def stacks_tensors() -> bool:
    """Whether nobody has told `default_collate` to do anything else with tensors or containers."""
    return default_collate_fn_map == _UNCHANGED


def _no_batch_of(kind: Any) -> TypeError:
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {kind}"
    )


# ---- in a worker: samples are copied straight to where the parent reads them ----

_DIRECT_BYTES = 1 << 14  # of one sample; for small ones stacking first is faster
_pool: Any = None


def use_pool(pool: Any) -> None:
    """Where batches lie from now on: `pool.empty(size, dtype)` gives memory, or None."""
    global _pool
    _pool = pool


def _stack(samples: Sequence[Tensor]) -> Tensor:
    first = samples[0]
    if _pool is not None and first.nbytes >= _DIRECT_BYTES and _alike(samples):
        batch = _pool.empty((len(samples), *first.shape), first.dtype)
        if batch is not None:
            for place, sample in zip(batch, samples):
                place.copy_(sample)
            return batch
    return _C.stack(samples, 0)


def _alike(samples: Sequence[Tensor]) -> bool:
    shape, dtype = samples[0].shape, samples[0].dtype
    return all(
        s.shape == shape and s.dtype is dtype and type(s) is Tensor and not s.requires_grad
        for s in samples
    )


def _collate_sequences(batch: Sequence[Any], collate_fn_map: CollateMap | None) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
    if isinstance(first, tuple):  # a plain tuple becomes a list, as in PyTorch
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _like(first, columns)


def default_convert(data: Any) -> Any:
    """Turns arrays into tensors inside one sample, without adding a batch dimension."""
    if isinstance(data, Tensor | str | bytes):
        return data
    if _is_numpy(data):
        return data if data.dtype.kind in "SUO" else _C.as_tensor(data)
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
    """`values` as the same kind of container; the plain one where that cannot be built so.

    A copy is filled where the class allows: it keeps what else the original has, such as the
    default of a defaultdict.
    """
    try:
        if isinstance(original, MutableMapping):
            filled: Any = copy.copy(original)
            filled.update(values)
            return filled
        if isinstance(original, MutableSequence):
            filled = copy.copy(original)
            for place, value in enumerate(values):
                filled[place] = value
            return filled
        return type(original)(values)
    except TypeError:
        return values
