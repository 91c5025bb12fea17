"""Views: other sizes and orders of the same elements, and tensors put together."""

from __future__ import annotations

from typing import Any

from weft._runtime.public import weft
from weft.onnx._elements import common
from weft.onnx._memory import replaced
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping

_LAST = 9223372036854775807  # where a slice ends that goes to the end


mapping("view", "reshape", "_unsafe_view")(lambda g, x, sizes: g.reshape(x, sizes))


@mapping("flatten.using_ints")
def _flatten(g: Any, x: Symbol, start: int = 0, end: int = -1) -> Any:
    sizes = x.shape
    if not sizes:
        return g.reshape(x, [1])
    first, last = g.dim(x, start), g.dim(x, end)
    count: Any = 1
    for each in sizes[first : last + 1]:
        count = count * each
    merged = -1 if isinstance(count, Symbol) else count
    return g.reshape(x, [*sizes[:first], merged, *sizes[last + 1 :]])


@mapping("unflatten.int")
def _unflatten(g: Any, x: Symbol, dim: int, sizes: Any) -> Any:
    dim = g.dim(x, dim)
    held = x.shape
    return g.reshape(x, [*held[:dim], *sizes, *held[dim + 1 :]])


@mapping("permute")
def _permute(g: Any, x: Symbol, dims: Any) -> Any:
    order = [g.dim(x, d) for d in dims]
    return x if order == sorted(order) else g.op("Transpose", x, perm=order)


@mapping("transpose.int", "swapaxes", "swapdims")
def _transpose(g: Any, x: Symbol, a: int, b: int) -> Any:
    order = list(range(x.rank))
    if order:
        a, b = g.dim(x, a), g.dim(x, b)
        order[a], order[b] = order[b], order[a]
    return _permute(g, x, order)


mapping("t", "numpy_T")(lambda g, x: _permute(g, x, list(range(x.rank))[::-1]))
mapping("mT", "mH", "adjoint")(lambda g, x: _transpose(g, x, -2, -1))


@mapping("movedim")
def _movedim(g: Any, x: Symbol, source: Any, destination: Any) -> Any:
    given, wanted = g.dims(x, source), g.dims(x, destination)
    order = [d for d in range(x.rank) if d not in given]
    for place, dim in sorted(zip(wanted, given)):
        order.insert(place, dim)
    return _permute(g, x, order)


@mapping("squeeze")
def _squeeze(g: Any, x: Symbol, dims: Any = None) -> Any:
    given = range(x.rank) if dims is None else g.dims(x, dims) if x.sizes else []
    kept = [d for d in given if isinstance(x.sizes, tuple) and x.sizes[d] == 1]
    unknown = [d for d in given if x.sizes is not None and not isinstance(x.sizes[d], int)]
    if unknown and dims is not None:
        kept = sorted({*kept, *unknown})  # as the example had it
    return g.squeeze(x, *kept)


mapping("unsqueeze")(lambda g, x, dim: g.unsqueeze(x, dim if dim >= 0 else dim + x.rank + 1))


@mapping("select.int")
def _select(g: Any, x: Symbol, dim: int, index: Any) -> Any:
    place = index if isinstance(index, Symbol) else g.constant(index)
    return g.op("Gather", x, place, axis=g.dim(x, dim))


@mapping("slice.Tensor")
def _slice(
    g: Any, x: Symbol, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    start, end = 0 if start is None else start, _LAST if end is None else end
    if not isinstance(start, Symbol) and start == 0 and not isinstance(end, Symbol) and step == 1:
        size = x.sizes[g.dim(x, dim)] if x.sizes is not None else None
        if end == _LAST or (isinstance(size, int) and end >= size):
            return x
    return g.op("Slice", x, [start], [end], [g.dim(x, dim)], [step])


@mapping("narrow")
def _narrow(g: Any, x: Symbol, dim: int, start: Any, length: Any) -> Any:
    made = g.op("Slice", x, [start], [start + length], [g.dim(x, dim)])
    sizes = list(made.sizes) if made.sizes is not None else None
    if sizes is not None and isinstance(length, int):
        sizes[g.dim(x, dim)] = length
        made.sizes = tuple(sizes)
    return made


@mapping("expand")
def _expand(g: Any, x: Symbol, sizes: Any, implicit: bool = False) -> Any:
    held = x.shape
    ahead = len(sizes) - len(held)
    full = [
        held[i - ahead] if isinstance(each, int) and each == -1 else each
        for i, each in enumerate(sizes)
    ]
    return g.expand(x, full)


@mapping("repeat")
def _repeat(g: Any, x: Symbol, repeats: Any) -> Any:
    ahead = len(repeats) - x.rank
    x = g.reshape(x, [1] * ahead + x.shape) if ahead > 0 else x
    return g.op("Tile", x, list(repeats))


mapping("tile")(lambda g, x, dims: _repeat(g, x, [1] * (x.rank - len(dims)) + list(dims)))


@mapping("repeat_interleave.self_int")
def _repeat_interleave(g: Any, x: Symbol, repeats: int, dim: Any = None, size: Any = None) -> Any:
    x, dim = (g.flat(x), 0) if dim is None else (x, g.dim(x, dim))
    wide = g.unsqueeze(x, dim + 1)
    sizes = x.shape
    grown = g.expand(wide, [*sizes[: dim + 1], repeats, *sizes[dim + 1 :]])
    return g.reshape(grown, [*sizes[:dim], sizes[dim] * repeats, *sizes[dim + 1 :]])


@mapping("diagonal")
def _diagonal(g: Any, x: Symbol, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    a, b = g.dim(x, dim1), g.dim(x, dim2)
    x = _permute(g, x, [d for d in range(x.rank) if d not in (a, b)] + [a, b])
    rows, columns = x.shape[-2:]
    count = _least(g, rows if offset >= 0 else rows + offset, columns - max(offset, 0))
    steps = g.call("arange", count)
    steps = steps if isinstance(steps, Symbol) else g.constant(steps)
    first, second = (steps + max(-offset, 0)), (steps + max(offset, 0))
    indices = first * g.symbol(columns) + second
    flat = g.reshape(x, [*x.shape[:-2], -1])
    return g.op("Gather", flat, indices, axis=x.rank - 2)


def _least(g: Any, a: Any, b: Any) -> Any:
    known = not isinstance(a, Symbol) and not isinstance(b, Symbol)
    return max(min(a, b), 0) if known else g.number("min", a, b)


@mapping("unfold")
def _unfold(g: Any, x: Symbol, dim: int, size: int, step: int) -> Any:
    dim = g.dim(x, dim)
    count = (x.size(dim) - size) // step + 1
    starts = g.call("mul.Scalar", g.call("arange", count), step)
    indices = g.unsqueeze(g.symbol(starts), 1) + g.constant(weft.arange(size))
    made = g.op("Gather", x, indices, axis=dim)
    order = [d for d in range(x.rank + 1) if d != dim + 1] + [dim + 1]
    return _permute(g, made, order)


@mapping("as_strided")
def _as_strided(g: Any, x: Symbol, sizes: Any, strides: Any, offset: Any = None) -> Any:
    """Elements by their place in a contiguous x; views of views are not told apart from it."""
    indices = g.constant(weft.as_strided(weft.arange(_span(sizes, strides)), sizes, strides))
    return g.op("Gather", g.flat(x), indices + (offset or 0), axis=0)


def _span(sizes: Any, strides: Any) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))


def _scatter_into(name: str, key: str) -> None:
    """A copy with the elements of a view replaced."""

    @mapping(name)
    def run(g: Any, x: Symbol, source: Symbol, *args: Any) -> Any:
        return replaced(x, lambda each: g.call(key, each, *args), source)


_scatter_into("select_scatter", "select.int")
_scatter_into("slice_scatter", "slice.Tensor")
_scatter_into("diagonal_scatter", "diagonal")


@mapping("diag_embed")
def _diag_embed(g: Any, x: Symbol, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    size = x.size(-1) + abs(offset)
    rank = x.rank + 1
    a, b = dim1 % rank, dim2 % rank
    sizes = x.shape[:-1]
    for place in sorted((a, b)):
        sizes.insert(place, size)
    zeros = g.symbol(g.call("zeros", sizes, x.dtype))
    return replaced(zeros, lambda each: g.call("diagonal", each, offset, a, b), x)


@mapping("diff")
def _diff(
    g: Any, x: Symbol, n: int = 1, dim: int = -1, before: Any = None, after: Any = None
) -> Any:
    parts = [each for each in (before, x, after) if each is not None]
    x, dim = _cat(g, parts, dim), g.dim(x, dim)
    for _ in range(n):
        later, earlier = _slice(g, x, dim, 1), _slice(g, x, dim, 0, -1)
        x = g.call("ne.Tensor" if x.dtype == weft.bool else "sub.Tensor", later, earlier)
    return x


# Pieces -------------------------------------------------------------------------------------------


def _pieces(g: Any, x: Symbol, sizes: Any, dim: int) -> list[Symbol]:
    if len(sizes) == 1:
        return [g.op("Identity", x)]
    made = g.op("Split", x, g.ints(list(sizes)), outputs=len(sizes), axis=dim)
    return list(made)


def _known_size(x: Symbol, dim: int, what: str) -> int:
    size = x.size(dim)
    if isinstance(size, Symbol):
        raise ValueError(f"{what}: expected a known number of pieces, got a size of {x}")
    return int(size)


@mapping("split.Tensor")
def _split(g: Any, x: Symbol, size: int, dim: int = 0) -> Any:
    dim = g.dim(x, dim)
    total = _known_size(x, dim, "split")
    sizes = [min(size, total - at) for at in range(0, total, size)] or [0]
    return _pieces(g, x, sizes, dim)


mapping("split.sizes", "split_with_sizes")(
    lambda g, x, sizes, dim=0: _pieces(g, x, sizes, g.dim(x, dim))
)


@mapping("chunk")
def _chunk(g: Any, x: Symbol, chunks: int, dim: int = 0) -> Any:
    dim = g.dim(x, dim)
    total = x.size(dim)
    if isinstance(total, Symbol):
        step = (total + (chunks - 1)) // chunks
        return [g.op("Slice", x, [step * i], [step * (i + 1)], [dim]) for i in range(chunks)]
    return _split(g, x, max(-(-total // chunks), 1), dim)


@mapping("tensor_split.sections")
def _tensor_split(g: Any, x: Symbol, sections: int, dim: int = 0) -> Any:
    dim = g.dim(x, dim)
    total = _known_size(x, dim, "tensor_split")
    sizes = [total // sections + (i < total % sections) for i in range(sections)]
    return _pieces(g, x, sizes, dim)


@mapping("tensor_split.indices")
def _tensor_split_at(g: Any, x: Symbol, indices: Any, dim: int = 0) -> Any:
    ends = [*indices, _LAST]
    return [_slice(g, x, dim, start, end) for start, end in zip([0, *indices], ends)]


@mapping("unbind.int")
def _unbind(g: Any, x: Symbol, dim: int = 0) -> Any:
    dim = g.dim(x, dim)
    count = _known_size(x, dim, "unbind")
    return [g.op("Gather", x, g.constant(i), axis=dim) for i in range(count)]


# Together -----------------------------------------------------------------------------------------


@mapping("cat", "concat", "concatenate")
def _cat(g: Any, tensors: Any, dim: int = 0) -> Any:
    if isinstance(tensors, Symbol):
        return g.op("ConcatFromSequence", tensors, axis=dim)
    kept = [t for t in tensors if t.sizes != (0,)] or tensors[:1]
    made = common(g, *kept)
    return made[0] if len(made) == 1 else g.op("Concat", *made, axis=g.dim(made[0], dim))


@mapping("stack")
def _stack(g: Any, tensors: Any, dim: int = 0) -> Any:
    if isinstance(tensors, Symbol):
        return g.op("ConcatFromSequence", tensors, axis=dim, new_axis=1)
    made = common(g, *tensors)
    axis = dim if dim >= 0 else dim + made[0].rank + 1
    return g.op("Concat", *(g.unsqueeze(each, axis) for each in made), axis=axis)


@mapping("flip")
def _flip(g: Any, x: Symbol, dims: Any) -> Any:
    axes = [g.dim(x, d) for d in dims]
    count = len(axes)
    return g.op("Slice", x, [-1] * count, [-_LAST] * count, axes, [-1] * count)


@mapping("roll")
def _roll(g: Any, x: Symbol, shifts: Any, dims: Any = ()) -> Any:
    if not dims:
        return g.reshape(_roll(g, g.flat(x), shifts, [0]), x.shape)
    for shift, dim in zip(shifts, dims):
        axis, size = g.dim(x, dim), x.size(dim)
        shift = shift % size if isinstance(size, int) else shift
        if not isinstance(shift, Symbol) and shift == 0:
            continue
        back = g.op("Slice", x, [-shift], [_LAST], [axis])
        front = g.op("Slice", x, [0], [-shift], [axis])
        x = g.sized(g.op("Concat", back, front, axis=axis), x.shape)
    return x


@mapping("constant_pad_nd")
def _pad(g: Any, x: Symbol, pad: Any, value: Any = 0) -> Any:
    before = [0] * (x.rank - len(pad) // 2) + list(pad[::2])[::-1]
    after = [0] * (x.rank - len(pad) // 2) + list(pad[1::2])[::-1]
    held = x
    x = g.cast(x, weft.int32) if x.dtype == weft.bool else x
    return g.cast(g.op("Pad", x, [*before, *after], g.cast(value, x.dtype)), held.dtype)
