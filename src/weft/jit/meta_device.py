"""What results look like on the device "meta", whose tensors have no elements.

The extension asks for operators that are written by hand (csrc/core/meta.h), once their arguments
are checked. The answer is the shape formula of the operator's row, the same that compiled programs
are planned by, with sizes that are all known.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._runtime.torch_function import DisableTorchFunction
from weft.jit import operator_facts, schemas
from weft.jit.passes.shape_call import compiled
from weft.jit.passes.shape_words import ABSENT, WORDS, Untold, broadcast


class Look(NamedTuple):
    """What a result looks like; strides None: it is contiguous."""

    sizes: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None = None


class _Sizes(tuple[int, ...]):
    """The sizes of a tensor in a formula, with its dtype and strides."""

    dtype: Any
    strides: tuple[int, ...]


class _Each(list[Any]):
    """The sizes of each result."""


def results(key: str, given: list[Any]) -> list[Look | int | None]:
    """What each result of the row `key` looks like, or the number of the argument that it is, or
    None where it is none; empty where the row does not tell. A tensor is given as (sizes, dtype,
    strides)."""
    operator = schemas.of(f"aten::{key}")
    if operator.args and operator.args[0].is_written:
        return [0]
    row = operator_facts.row(key)
    if row is None or not row.shape:
        return []
    seen = {arg.name: _seen(value) for arg, value in zip(operator.args, given)}
    try:
        told = eval(compiled(row.shape), {"__builtins__": {}, **_WORDS}, seen)
    except (Untold, IndexError, ZeroDivisionError):
        return []
    shapes = told if isinstance(told, _Each) else [told] * len(operator.returns)
    dtypes = _dtypes(operator, row, seen, len(shapes))
    if dtypes is None or any(None in shape for shape in shapes if shape is not ABSENT):
        return []
    first = next(iter(seen.values()), ABSENT)
    if "keeps_layout" in row.tags:
        return [Look(tuple(shape), dtype, _kept(first)) for shape, dtype in zip(shapes, dtypes)]
    by_channels = "by_channels" in row.tags and _lie_by_channels(first)
    return [_look(shape, dtype, by_channels) for shape, dtype in zip(shapes, dtypes)]


def _look(shape: Any, dtype: Any, by_channels: bool) -> Look | None:
    if shape is ABSENT:
        return None
    strides = _strides(shape) if by_channels and len(shape) in (4, 5) else None
    return Look(tuple(shape), dtype, strides)


def _kept(first: _Sizes) -> tuple[int, ...]:
    """Dense strides in the order of those of an operand."""
    with DisableTorchFunction():
        like = _C._functions["empty_strided"](first, first.strides, device="meta")
        return _C._functions["empty_like"](like).stride()


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Of images or volumes whose channels lie beside each other."""
    lines = [math.prod(sizes[place + 1 :]) * sizes[1] for place in range(2, len(sizes))]
    return (math.prod(sizes[1:]), 1, *lines)


def _lie_by_channels(images: Any) -> bool:
    """Whether an operand has channels beside each other that are not alone in their places; of a
    list those with several."""
    if isinstance(images, list):
        several = [image for image in images if len(image) < 2 or image[1] > 1]
        return bool(several) and all(map(_lie_by_channels, several))
    if len(images) not in (4, 5) or images.strides != _strides(images):
        return False
    return images[1] > 1 and math.prod(images[2:]) > 1


def _seen(value: Any) -> Any:
    if value is None:
        return ABSENT
    if isinstance(value, list):
        return [_seen(item) for item in value]
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[1], _C.dtype):
        sizes = _Sizes(value[0])
        sizes.dtype, sizes.strides = value[1:]
        return sizes
    return value


def _dtypes(operator: Any, row: Any, seen: dict[str, Any], count: int) -> list[Any] | None:
    """The dtype of each result; None where nothing tells."""
    asked = seen.get("dtype", ABSENT)
    if asked is not ABSENT:
        return [asked] * count
    if row.dtypes:
        found = [_told(name, seen) for name in row.dtypes]
        return None if None in found else found
    if row.kind != "random":  # nothing is drawn for a tensor without elements
        probed = _probed(operator, list(seen.values()))
        if probed is not None:
            return probed
    return _common(seen, count)


def _probed(operator: Any, values: list[Any]) -> list[Any] | None:
    """The dtypes that the operator gives on the CPU for tensors of one element; None where it
    refuses those."""
    try:
        with DisableTorchFunction():
            result = operator.python(*map(_stand_in, values))
    except Exception:
        return None
    results = result if isinstance(result, tuple) else (result,)
    return [tensor.dtype for tensor in results]


def _stand_in(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_stand_in, value))
    if not isinstance(value, _Sizes):
        return None if value is ABSENT else value
    element = 1 if value.dtype.is_floating_point or value.dtype.is_complex else 0  # 0: an index
    return _C._functions["full"]([1] * len(value), element, dtype=value.dtype, device="cpu")


def _common(seen: dict[str, Any], count: int) -> list[Any] | None:
    """The dtype of all tensors, if they have one and it is no integer."""
    tensors = {value.dtype for value in seen.values() if isinstance(value, _Sizes)}
    if not tensors:
        return [_C.get_default_dtype()] * count
    (dtype, *others) = tensors
    inexact = dtype.is_floating_point or dtype.is_complex
    return [dtype] * count if inexact and not others else None


def _told(name: str, seen: dict[str, Any]) -> Any:
    """The dtype of an argument: a tensor, a list of them, or a number as all numbers together; or
    the one of that name."""
    if name == "real":  # that of the first tensor, without imaginary parts
        first = next(item for item in seen.values() if isinstance(item, _Sizes))
        return first.dtype.to_real()
    value = seen.get(name)
    if value is None:
        return getattr(_C, name, None)
    if isinstance(value, _Sizes):
        return value.dtype
    if isinstance(value, list):
        return functools.reduce(_C.promote_types, [item.dtype for item in value])
    numbers = [item for item in seen.values() if isinstance(item, (int, float, complex))]
    whole = all(isinstance(number, int) for number in numbers)
    return _C.int64 if whole else _C.get_default_dtype()


def _indexed(sizes: Any, indices: Any) -> Any:
    """The sizes of what indices take; how many elements a mask takes is not known."""
    if any(index is not ABSENT and index.dtype in (_C.bool, _C.uint8) for index in indices):
        raise Untold
    positions = [at for at, index in enumerate(indices) if index is not ABSENT]
    taken = broadcast(*(indices[at] for at in positions))
    kept = [size for at, size in enumerate(sizes) if at not in positions]
    together = positions == list(range(positions[0], positions[-1] + 1))
    first = positions[0] if together else 0
    return [*kept[:first], *taken, *kept[first:]]


_WORDS = {**WORDS, "each": lambda *shapes: _Each(shapes), "indexed": _indexed}
