"""What rules of algebra ask of values: dtypes and sizes found by the shape pass, constant lists."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft.jit.ir import Value
from weft.jit.passes.patterns import Match


def dtype(value: Value) -> Any:
    """The dtype of a tensor, or None if it is not known."""
    return value.shape.dtype if value.shape is not None else None


def numbered(number: int) -> Any:
    """The dtype of TorchScript's number, or None if it has none."""
    return next((each for each in _C._dtypes if each._number == number), None)


def rank(value: Value) -> int | None:
    """The number of dimensions of a tensor, or None if it is not known."""
    return value.shape.rank if value.shape is not None else None


def size(value: Value, dim: int) -> int | None:
    """The size of a dimension if it is a known number."""
    sizes = value.shape.sizes if value.shape is not None else None
    if sizes is None or not -len(sizes) <= dim < len(sizes):
        return None
    found = sizes[dim]
    return found if isinstance(found, int) else None


def numel(value: Value) -> int | None:
    """The number of elements if it is known."""
    if value.shape is None or value.shape.sizes is None:
        return None
    known = [size for size in value.shape.sizes if isinstance(size, int)]
    return math.prod(known) if len(known) == len(value.shape.sizes) else None


def is_floating(value: Value) -> bool | None:
    """Whether a tensor has a floating dtype, or None if that is not known."""
    known = dtype(value)
    return None if known is None else known.is_floating_point


def is_float_tensor(found: Match) -> bool:
    """Whether x is known to have a floating dtype."""
    return is_floating(found.values["x"]) is True


def has_dtype(found: Match, name: str) -> bool:
    """Whether x is known to have the dtype of a constant."""
    known = dtype(found.values["x"])
    return known is not None and known == found.const(name)


def same_dtype(found: Match) -> bool:
    """Whether x and y are known to have one dtype."""
    known = dtype(found.values["x"])
    return known is not None and known == dtype(found.values["y"])


def is_same_again(found: Match) -> bool:
    """Whether x is what the same operator, with the same constants, has made already."""
    before = found.values["x"].node
    if before is None or before.kind != found.root.kind:
        return False
    pairs = zip(before.inputs[1:], found.root.inputs[1:])
    return all(a.is_constant and b.is_constant and a.constant == b.constant for a, b in pairs)


def has_sizes(found: Match, name: str) -> bool:
    """Whether x is known to have the sizes of a constant list."""
    shape, wanted = found.values["x"].shape, found.const(name)
    if shape is None or not shape.is_static or wanted is None:
        return False
    return list(shape.sizes or ()) == list(wanted)


def same_count(found: Match, first: str, second: str) -> bool:
    """Whether two constant lists of sizes, none of them -1, have as many elements."""
    a, b = found.const(first), found.const(second)
    return min([0, *a, *b]) >= 0 and math.prod(a) == math.prod(b)


def is_inverse(found: Match, first: str, second: str) -> bool:
    """Whether the second permutation undoes the first."""
    p, q = found.const(first), found.const(second)
    if len(p) != len(q):
        return False
    p, q = [d % len(p) for d in p], [d % len(q) for d in q]
    return [p[d] for d in q] == list(range(len(p)))


def is_identity(found: Match, name: str) -> bool:
    """Whether a permutation leaves every dimension of x where it is."""
    order = found.const(name)
    return rank(found.values["x"]) == len(order) and [d % len(order) for d in order] == list(
        range(len(order))
    )
