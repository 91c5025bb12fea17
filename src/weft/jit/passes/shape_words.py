"""The words of shape formulas: what `shape=` of a row of the operator table is written in.

Sizes are tuples of numbers, symbols, and None for a size that is not known; `Untold` is raised
where the rank does not follow. An argument that is a number is None where it is not known, and
ABSENT where the program gives None. A word may assume that the operator does not raise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from weft.jit.ir.value import Dim

Sizes = Sequence[Dim]


class Untold(Exception):
    """The rank of a result is not known."""


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


class _Unranked:
    """Sizes, or a list, of which nothing is known."""

    def __getitem__(self, at: Any) -> None:
        if isinstance(at, slice):
            self._fail()

    def _fail(self, *_: object) -> NoReturn:
        raise Untold

    __iter__ = __len__ = _fail


ABSENT: Any = _Absent()
UNRANKED: Any = _Unranked()
_LAST = 2**63 - 1


def place(dim: object, rank: int) -> int | None:
    """A dimension, counted from 0; None if it is not known or not in range."""
    if not isinstance(dim, int) or not -rank <= dim < max(rank, 1):
        return None
    return dim % max(rank, 1)


def wrapped_dims(dims: Any, rank: int) -> set[int]:
    """The dimensions of a list, of one int, or all of them for ABSENT; not of an empty list:
    operators differ about that."""
    if dims is ABSENT:
        return set(range(rank))
    found = [place(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims or UNRANKED)]
    known = {dim for dim in found if dim is not None}
    if None in found:
        raise Untold
    return known


def same(*sizes: Dim) -> Dim:
    """The size that all of these are: a number if one is known."""
    numbers = [size for size in sizes if isinstance(size, int)]
    return numbers[0] if numbers else next((size for size in sizes if size is not None), None)


def broadcast(*shapes: Sizes) -> Sizes:
    """The sizes that all of these broadcast to.

    >>> broadcast((2, 1, "n"), (None, "n"))
    [2, None, 'n']
    """
    known = [tuple(shape) for shape in shapes if shape is not ABSENT]
    ranks = range(max(map(len, known)), 0, -1)
    return [_broadcast([s[-at] for s in known if at <= len(s)]) for at in ranks]


def _broadcast(sizes: list[Dim]) -> Dim:
    others = {size for size in sizes if size != 1}
    if not others:
        return 1
    numbers = [size for size in others if isinstance(size, int)]
    if numbers:
        return numbers[0]  # all others are the same, or 1
    return others.pop() if len(others) == 1 else None


def rank(sizes: Sizes) -> int:
    """How many dimensions there are."""
    return len(sizes)


# ---- one dimension ----


def extent(sizes: Sizes, dim: Dim) -> Dim:
    """The size at `dim`."""
    at = place(dim, len(sizes))
    return sizes[at] if at is not None and sizes else None


def pieces(size: Dim, each: Dim) -> Dim:
    """How many pieces of a size there are, the last of which may be smaller."""
    if not isinstance(size, int) or not isinstance(each, int) or min(size, each) < 1:
        return None
    return -(-size // each)


def resized(sizes: Sizes, dim: Dim, size: Dim) -> Sizes:
    """With another size at `dim`."""
    at = place(dim, len(sizes))
    if not sizes or at is None:
        return [None] * len(sizes)
    return [*sizes[:at], size, *sizes[at + 1 :]]


def without(sizes: Sizes, dim: Dim) -> Sizes:
    """Without the dimension `dim`."""
    at = place(dim, len(sizes))
    return [None] * (len(sizes) - 1) if at is None else [*sizes[:at], *sizes[at + 1 :]]


def inserted(sizes: Sizes, dim: Dim, size: Dim = 1) -> Sizes:
    """With a new dimension at `dim`."""
    at = place(dim, len(sizes) + 1)
    return [None] * (len(sizes) + 1) if at is None else [*sizes[:at], size, *sizes[at:]]


def sliced(sizes: Sizes, dim: Dim, start: Any, end: Any, step: Any) -> Sizes:
    """What x[start:end:step] along `dim` leaves."""
    at = place(dim, len(sizes))
    bounds = (start, end, step)
    if at is None or not sizes or not all(b is ABSENT or isinstance(b, int) for b in bounds):
        return resized(sizes, dim, None)
    size = sizes[at]
    if start in (ABSENT, 0) and end in (ABSENT, _LAST) and step == 1:
        return sizes
    if not isinstance(size, int) or step <= 0:
        return resized(sizes, dim, None)
    given = slice(*(None if bound is ABSENT else bound for bound in bounds))
    return resized(sizes, dim, len(range(*given.indices(size))))


# ---- several dimensions ----


def reduced(sizes: Sizes, dims: Any, keepdim: Any = False) -> Sizes:
    """One element for each row along `dims`."""
    gone = wrapped_dims(dims, len(sizes))
    if keepdim is None:
        raise Untold
    kept = [1 if at in gone else size for at, size in enumerate(sizes)]
    return kept if keepdim else [size for at, size in enumerate(sizes) if at not in gone]


def squeezed(sizes: Sizes, dims: Any = ABSENT) -> Sizes:
    """Without those of `dims` that have size 1."""
    gone = wrapped_dims(dims, len(sizes)) if sizes else set()
    if not all(isinstance(sizes[at], int) for at in gone):
        raise Untold
    return [size for at, size in enumerate(sizes) if at not in gone or size != 1]


def swapped(sizes: Sizes, dim0: Dim, dim1: Dim) -> Sizes:
    """Two dimensions exchanged."""
    a, b = place(dim0, len(sizes)), place(dim1, len(sizes))
    if a is None or b is None:
        return [None] * len(sizes)
    result = list(sizes)
    if sizes:
        result[a], result[b] = sizes[b], sizes[a]
    return result


def permuted(sizes: Sizes, order: Sequence[Any]) -> Sizes:
    """The dimensions in another order."""
    known = sizes is not UNRANKED and None not in order and len(order) == len(sizes)
    return [sizes[dim] for dim in order] if known else [None] * len(order)


def viewed(sizes: Sizes, wanted: Sizes) -> Sizes:
    """As many elements in other sizes, one of which may be -1."""
    wanted = list(wanted)
    if wanted.count(-1) != 1:
        return wanted
    rest = [size for size in wanted if size != -1]
    inferred = None if sizes is UNRANKED else _quotient(list(sizes), rest)
    return [inferred if size == -1 else size for size in wanted]


def flattened(sizes: Sizes, start: Dim, end: Dim) -> Sizes:
    """The dimensions from `start` to `end` as one."""
    first, last = place(start, len(sizes)), place(end, len(sizes))
    if first is None or last is None:
        raise Untold
    if not sizes:
        return [1]
    return [*sizes[:first], _quotient(list(sizes[first : last + 1]), []), *sizes[last + 1 :]]


def _quotient(sizes: list[Dim], rest: list[Dim]) -> Dim:
    """The product of some sizes divided by that of others; None if it is not known."""
    for size in list(rest):  # a symbol cancels out
        if isinstance(size, str) and size in sizes:
            sizes.remove(size)
            rest.remove(size)
    numbers = [size for size in rest if isinstance(size, int)]
    if len(numbers) != len(rest) or 0 in numbers:
        return None
    above = [size for size in sizes if isinstance(size, int)]
    others = [size for size in sizes if not isinstance(size, int)]
    if not others:
        return math.prod(above) // math.prod(numbers)
    return others[0] if len(others) == 1 and math.prod(above) == math.prod(numbers) else None


def expanded(sizes: Sizes, wanted: Sizes) -> Sizes:
    """Repeated to other sizes; -1 keeps one."""
    wanted = list(wanted)
    before = [None] * len(wanted) if sizes is UNRANKED else [None, *sizes][-len(wanted) :]
    before = [None] * (len(wanted) - len(before)) + before
    return [old if size == -1 else size for size, old in zip(wanted, before)]


# ---- lists of tensors ----


def joined(shapes: Sequence[Sizes], dim: Dim) -> Sizes:
    """Behind each other along `dim`. (Empty tensors of rank 1, which count for nothing, do not
    match the others.)"""
    first, *_ = shapes = [tuple(shape) for shape in shapes]
    if not first or any(len(shape) != len(first) for shape in shapes):
        raise Untold
    at = place(dim, len(first))
    if at is None:
        return [None] * len(first)
    along = [shape[at] for shape in shapes]
    numbers = [size for size in along if isinstance(size, int)]
    merged = [same(*sizes) for sizes in zip(*shapes)]
    return resized(merged, at, sum(numbers) if len(numbers) == len(along) else None)


def stacked(shapes: Sequence[Sizes], dim: Dim) -> Sizes:
    """Beside each other along a new dimension `dim`."""
    shapes = [tuple(shape) for shape in shapes]
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise Untold
    return inserted([same(*sizes) for sizes in zip(*shapes)], dim, len(shapes))


# ---- products, windows ----


def matmul(first: Sizes, second: Sizes) -> Sizes:
    """The product of the last two dimensions; a vector is a row on the left, a column on the
    right."""
    first, second = tuple(first), tuple(second)
    if not first or not second:
        raise Untold
    columns = second[-1:] if len(second) > 1 else ()
    return [*broadcast(first[:-2], second[:-2]), *first[-2:-1], *columns]


def solved(matrices: Sizes, sides: Sizes) -> Sizes:
    """The solutions of systems with these right sides: vectors, or matrices of columns."""
    if None in (*matrices, *sides):
        raise Untold
    if len(sides) == 1 or tuple(sides) == tuple(matrices[:-1]):
        return matrices[:-1]
    return [*broadcast(matrices[:-2], sides[:-2]), *sides[-2:]]


def convolved(sizes: Sizes, weight: Sizes, stride: Any, padding: Any, dilation: Any) -> Sizes:
    """What a convolution with filters gives."""
    spatial = len(weight) - 2
    size = _window(sizes[-spatial:], weight[2:], stride, padding, dilation)
    return [*sizes[: -spatial - 1], weight[0], *size]


def pooled(
    sizes: Sizes, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> Sizes:
    """What pooling of images gives."""
    stride = kernel if stride is ABSENT or stride == () else stride
    size = _window(sizes[-2:], kernel, stride, padding, dilation, ceil_mode=ceil_mode)
    return [*sizes[:-2], *size]


def _window(sizes: Sizes, *numbers: Any, ceil_mode: Any = False) -> list[Dim]:
    """Sizes after a window of kernel, stride, padding, dilation has gone over them. `ceil_mode`: a
    last window may reach beyond the end, if it begins before it."""
    result: list[Dim] = []
    for at, size in enumerate(sizes):
        known = [number for given in numbers if (number := _entry(given, at)) is not None]
        if not isinstance(size, int) or len(known) < len(numbers) or ceil_mode is None:
            result.append(None)
        else:
            kernel, stride, padding, dilation = known
            span = size + 2 * padding - dilation * (kernel - 1) - 1
            count = span // stride + 1
            if ceil_mode and span % stride and count * stride < size + padding:
                count += 1
            result.append(count)
    return result


def _entry(given: Any, at: int) -> int | None:
    if isinstance(given, (list, tuple)):
        given = given[0] if len(given) == 1 else given[at] if at < len(given) else None
    return given if isinstance(given, int) else None


# ---- others ----


def padded(sizes: Sizes, pad: Any) -> Sizes:
    """With as many more at the beginnings and the ends as `pad` says, from the last dimension
    on."""
    result = list(sizes)
    for at in range(len(pad) // 2):
        size, both = result[-1 - at], (pad[2 * at], pad[2 * at + 1])
        known = isinstance(size, int) and None not in both
        result[-1 - at] = size + sum(both) if known else None
    return result


def counted(start: Any, end: Any, step: Any) -> Sizes:
    """As many as there are from start on, before end, a step apart."""
    known = all(isinstance(number, (int, float)) for number in (start, end, step))
    return [max(math.ceil((end - start) / step), 0) if known else None]


def halved(sizes: Sizes, dim: Dim) -> Sizes:
    """With the half of a symmetric spectrum along `dim`."""
    size = extent(sizes, dim)
    return resized(sizes, dim, size // 2 + 1 if isinstance(size, int) else None)


def diagonals(sizes: Sizes, offset: Any, dim1: Dim, dim2: Dim) -> Sizes:
    """Matrices at two new dimensions, with rows of these sizes on a diagonal."""
    first, second = place(dim1, len(sizes) + 1), place(dim2, len(sizes) + 1)
    if first is None or second is None or not sizes:
        return [None] * (len(sizes) + 1)
    known = isinstance(sizes[-1], int) and isinstance(offset, int)
    size = sizes[-1] + abs(offset) if known else None
    outer = inserted(sizes[:-1], min(first, second), size)
    return inserted(outer, max(first, second), size)


def triangle(rows: Any, columns: Any, offset: Any, upper: bool) -> Any:
    """How many elements of a matrix lie on the diagonal and above it, or below it."""
    if not all(isinstance(number, int) for number in (rows, columns, offset)):
        return None
    if upper:
        return rows * columns - triangle(rows, columns, offset - 1, False)
    begin = min(max(-offset, 0), rows)  # the first row that has elements
    end = min(max(columns - offset - 1, begin), rows)  # the first row that has all
    return (end - begin) * (2 * offset + begin + end + 1) // 2 + (rows - end) * columns


def smaller(first: Dim, second: Dim) -> Dim:
    """The smaller one of two sizes."""
    return min(first, second) if isinstance(first, int) and isinstance(second, int) else None


def indexed(sizes: Sizes, indices: Any) -> Sizes:
    """What an index per dimension takes: not known, for an index may be a mask."""
    raise Untold


def each(*shapes: Sizes) -> NoReturn:
    """Results of several sizes, which only the device "meta" asks for."""
    raise Untold


WORDS: dict[str, Any] = {
    word.__name__: word
    for word in (
        *(broadcast, convolved, counted, diagonals, each, expanded, extent, flattened, halved),
        *(indexed, inserted, joined, matmul, padded, permuted, pieces, pooled, rank, reduced),
        *(resized, same, sliced, smaller, solved, squeezed, stacked, swapped, triangle, viewed),
        without,
    )
} | {"unknown": None, "absent": ABSENT}
