"""Elements by indices: gather, scatter, masks, and tensors made from sizes."""

from __future__ import annotations

from typing import Any

from weft._runtime.public import weft
from weft.onnx._elements import like
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping

mapping("embedding")(lambda g, weight, indices, *rest: g.op("Gather", weight, indices, axis=0))


@mapping("index_select")
def _index_select(g: Any, x: Symbol, dim: int, index: Symbol) -> Any:
    index = g.reshape(index, [1]) if index.sizes == () else index
    return g.op("Gather", x, index, axis=g.dim(x, dim))


@mapping("gather")
def _gather(g: Any, x: Symbol, dim: int, index: Symbol, sparse_grad: bool = False) -> Any:
    x = _trimmed(g, x, index, g.dim(x, dim))
    return g.op("GatherElements", x, index, axis=g.dim(x, dim))


def _trimmed(g: Any, x: Symbol, index: Symbol, dim: int) -> Symbol:
    """x as large as the indices beyond the dimension, as GatherElements wants it."""
    both = enumerate(zip(x.sizes or (), index.sizes or ()))
    axes = [d for d, (own, wanted) in both if d != dim and own != wanted]
    if not axes:
        return x
    ends = [index.size(d) for d in axes]
    return g.op("Slice", x, [0] * len(axes), ends, axes)


@mapping("take_along_dim")
def _take_along_dim(g: Any, x: Symbol, indices: Symbol, dim: Any = None) -> Any:
    if dim is None:
        return g.op("GatherElements", g.flat(x), g.flat(indices), axis=0)
    return g.op("GatherElements", x, indices, axis=g.dim(x, dim))


@mapping("scatter.src")
def _scatter(g: Any, x: Symbol, dim: int, index: Symbol, src: Symbol) -> Any:
    src = _trimmed(g, src, index, -1)
    return g.op("ScatterElements", x, index, g.cast(src, x.dtype), axis=g.dim(x, dim))


@mapping("scatter.value")
def _scatter_value(g: Any, x: Symbol, dim: int, index: Symbol, value: Any) -> Any:
    src = g.expand(like(g, x, value), index.shape)
    return g.op("ScatterElements", x, index, src, axis=g.dim(x, dim))


@mapping("scatter_add")
def _scatter_add(g: Any, x: Symbol, dim: int, index: Symbol, src: Symbol) -> Any:
    src = _trimmed(g, src, index, -1)
    return g.op("ScatterElements", x, index, src, axis=g.dim(x, dim), reduction="add")


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@mapping("scatter_reduce.two")
def _scatter_reduce(
    g: Any, x: Symbol, dim: int, index: Symbol, src: Symbol, reduce: str, include_self: bool = True
) -> Any:
    if reduce not in _REDUCTIONS or not include_self or g.opset < 18:
        raise ValueError(
            "scatter_reduce: expected sum, prod, amax or amin with include_self and opset 18, got "
            f"{reduce}, include_self={include_self}, opset {g.opset}"
        )
    kind, src = _REDUCTIONS[reduce], _trimmed(g, src, index, -1)
    return g.op("ScatterElements", x, index, src, axis=g.dim(x, dim), reduction=kind)


@mapping("_folding")
def _folding(g: Any, reduce: str) -> str:
    return {"add": "sum", "multiply": "prod"}[reduce]


mapping("index_copy")(lambda g, x, dim, index, source: _put_along(g, x, dim, index, source, None))


@mapping("index_add")
def _index_add(g: Any, x: Symbol, dim: int, index: Symbol, source: Symbol, alpha: Any = 1) -> Any:
    source = source if alpha == 1 else g.call("mul.Scalar", source, alpha)
    return _put_along(g, x, dim, index, source, "add")


@mapping("index_fill")
def _index_fill(g: Any, x: Symbol, dim: int, index: Symbol, value: Any) -> Any:
    sizes = x.shape
    sizes[g.dim(x, dim)] = g.size(index, 0)
    return _put_along(g, x, dim, index, g.expand(like(g, x, value), sizes), None)


def _put_along(g: Any, x: Symbol, dim: int, index: Symbol, source: Symbol, kind: Any) -> Any:
    axis = g.dim(x, dim)
    across = g.reshape(index, [-1 if d == axis else 1 for d in range(x.rank)])
    positions = g.expand(across, source.shape)
    return g.op("ScatterElements", x, positions, source, axis=axis, reduction=kind)


# Tensors as indices -------------------------------------------------------------------------------


def _places(g: Any, x: Symbol, indices: Any) -> tuple[Symbol, list[int], list[Symbol]]:
    """x with the indexed dimensions in front, how dimensions were ordered, and the indices."""
    given = list(indices) + [None] * (x.rank - len(indices))
    dims = [d for d, each in enumerate(given) if each is not None]
    order = dims + [d for d in range(x.rank) if d not in dims]
    return g.call("permute", x, order), dims, [given[d] for d in dims]


def _unmasked(g: Any, indices: Any) -> list[Any]:
    """Indices with masks as the numbers of their true elements."""
    made: list[Any] = []
    for each in indices:
        if each is None or each.dtype not in (weft.bool, weft.uint8):
            made.append(each)
            continue
        found = g.call("nonzero", g.cast(each, weft.bool))
        columns = [g.op("Gather", found, g.constant(i), axis=1) for i in range(each.rank)]
        made += columns
    return made


def _stacked(g: Any, indices: list[Symbol]) -> Symbol:
    """Indices [*shape, count] for GatherND, broadcast against each other."""
    wanted = max(each.rank for each in indices)
    same = len({each.sizes for each in indices}) == 1 and None not in (indices[0].sizes or ())
    if len(indices) > 1 and not same and len({each.name for each in indices}) > 1:
        zero = sum(indices[1:], indices[0])
        shape = g.op("Shape", zero)
        indices = [g.op("Expand", each, shape) for each in indices]
        for each in indices:
            each.sizes = zero.sizes
    return g.op("Concat", *(g.unsqueeze(each, wanted) for each in indices), axis=-1)


@mapping("index.Tensor")
def _index(g: Any, x: Symbol, indices: Any) -> Any:
    indices = _unmasked(g, indices)
    front, dims, held = _places(g, x, indices)
    held = [g.cast(each, weft.int64) for each in held]
    if len(held) == 1:
        return g.op("Gather", x, held[0], axis=dims[0])
    wanted = max(each.rank for each in held)
    made = g.op("GatherND", front, _stacked(g, held))
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    if not together or dims[0] == 0:
        return made
    # Dimensions before the first indexed one stand in front of the result's.
    order = [wanted + d for d in range(dims[0])] + list(range(wanted))
    return g.call("permute", made, order + list(range(len(order), wanted + x.rank - len(dims))))


@mapping("index_put")
def _index_put(g: Any, x: Symbol, indices: Any, values: Symbol, accumulate: bool = False) -> Any:
    values = g.cast(values, x.dtype)
    masks = [each for each in indices if each is not None]
    if len(masks) == 1 and masks[0].dtype == weft.bool and not accumulate:
        ahead = list(indices).index(masks[0])
        if values.sizes is not None and all(size == 1 for size in values.sizes):
            mask = g.unsqueeze(masks[0], *range(ahead), *range(ahead + masks[0].rank, x.rank))
            return g.op("Where", mask, g.reshape(values, []), x)
    indices = _unmasked(g, indices)
    front, dims, held = _places(g, x, indices)
    positions = _stacked(g, [g.cast(each, weft.int64) for each in held])
    rest = front.shape[len(dims) :]
    leading = [g.size(positions, i) for i in range(positions.rank - 1)]
    if (
        dims[0]
        and dims == list(range(dims[0], dims[0] + len(dims)))
        and values.rank > positions.rank - 1
    ):
        count = values.rank - (positions.rank - 1) - (len(rest) - dims[0])
        order = list(range(count, values.rank - (len(rest) - dims[0]))) + list(range(count))
        values = g.call("permute", values, order + list(range(len(order), values.rank)))
    values = g.expand(values, [*leading, *rest])
    kind = "add" if accumulate else None
    made = g.op("ScatterND", front, positions, values, reduction=kind)
    order = dims + [d for d in range(x.rank) if d not in dims]
    return g.call("permute", made, [order.index(d) for d in range(x.rank)])


@mapping("nonzero")
def _nonzero(g: Any, x: Symbol) -> Any:
    return g.op("Transpose", g.op("NonZero", x), perm=[1, 0])


@mapping("masked_select")
def _masked_select(g: Any, x: Symbol, mask: Symbol) -> Any:
    shape = g.op("Shape", g.call("logical_or", g.call("ne.Scalar", x, 0), mask))
    both = [g.flat(g.op("Expand", each, shape)) for each in (x, mask)]
    return g.op("Compress", both[0], both[1], axis=0)


@mapping("masked_scatter")
def _masked_scatter(g: Any, x: Symbol, mask: Symbol, source: Symbol) -> Any:
    positions = _nonzero(g, g.expand(mask, x.shape))
    count = g.op("Gather", g.op("Shape", positions), g.constant([0]), axis=0)
    values = g.op("Slice", g.flat(source), [0], count)
    return g.op("ScatterND", x, positions, values)


@mapping("one_hot")
def _one_hot(g: Any, x: Symbol, classes: int = -1) -> Any:
    if classes < 0:
        raise ValueError(f"one_hot: expected a known number of classes, got {classes}")
    return g.op("OneHot", x, g.constant(classes), g.constant([0, 1]), axis=-1)


@mapping("isin")
def _isin(g: Any, x: Any, among: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    x, among = (each if isinstance(each, Symbol) else g.constant(each) for each in (x, among))
    same = g.call("eq.Tensor", g.unsqueeze(x, x.rank), g.flat(among))
    found = g.call("any.dim", same, -1)
    return g.op("Not", found) if invert else found


@mapping("searchsorted")
def _searchsorted(
    g: Any, edges: Symbol, x: Any, out_int32: bool = False, right: bool = False, side: Any = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    if sorter is not None:
        raise ValueError("searchsorted: expected no sorter, got one")
    x = x if isinstance(x, Symbol) else g.constant(x)
    inner = g.unsqueeze(edges, edges.rank - 1) if edges.rank > 1 else edges
    above = g.call(
        "ge.Tensor" if right or side == "right" else "gt.Tensor", g.unsqueeze(x, x.rank), inner
    )
    return g.call("sum.dim_IntList", g.cast(above, weft.int32 if out_int32 else weft.int64), [-1])


mapping("bucketize")(
    lambda g, x, edges, out_int32=False, right=False: _searchsorted(g, edges, x, out_int32, right)
)


@mapping("repeat_interleave.self_Tensor")
def _repeat_interleave(
    g: Any, x: Symbol, repeats: Symbol, dim: Any = None, size: Any = None
) -> Any:
    x, dim = (g.flat(x), 0) if dim is None else (x, g.dim(x, dim))
    return g.op("Gather", x, _repeated(g, g.expand(repeats, [x.size(dim)])), axis=dim)


@mapping("repeat_interleave.Tensor")
def _repeated(g: Any, repeats: Symbol, size: Any = None) -> Any:
    """Each place as often as it is to be repeated: how many sums lie at or below each number."""
    ends = g.op("CumSum", repeats, g.constant(0))
    count = g.op("Reshape", g.op("ReduceSum", repeats), [])
    return _searchsorted(g, ends, g.op("Range", 0, g.cast(count, weft.int64), 1), right=True)


@mapping("_bag_sum")
def _bag_sum(
    g: Any, x: Symbol, indices: Symbol, starts: Symbol, factors: Any = None, mean: bool = False,
    by_freq: bool = False,
) -> Any:  # fmt: skip
    rows = g.op("Gather", x, indices, axis=0)
    if rows.dtype != weft.float64:
        rows = g.cast(rows, weft.float32)
    if factors is not None:
        rows = rows * g.unsqueeze(g.cast(factors, rows.dtype), 1)
    bags = _searchsorted(g, starts, g.op("Range", 0, g.size(indices, 0), 1), right=True) - 1
    sums = _put_along(g, _zeros(g, rows, [starts.size(0), x.size(1)]), 0, bags, rows, "add")
    if mean:
        ones = g.expand(like(g, rows, 1), [g.size(indices, 0)])
        sizes = _put_along(g, _zeros(g, rows, [starts.size(0)]), 0, bags, ones, "add")
        sums = sums / g.unsqueeze(g.call("clamp_min", sizes, 1), 1)
    return g.cast(sums, x.dtype)


def _zeros(g: Any, x: Symbol, sizes: list[Any]) -> Any:
    return g.expand(like(g, x, 0), sizes)


# Triangles ----------------------------------------------------------------------------------------


mapping("tril")(lambda g, x, diagonal=0: _triangle(g, x, diagonal, 0))
mapping("triu")(lambda g, x, diagonal=0: _triangle(g, x, diagonal, 1))


def _triangle(g: Any, x: Symbol, diagonal: Any, upper: int) -> Any:
    kept = g.cast(x, weft.int64) if x.dtype in (weft.bool, weft.int32) else x
    made = g.op("Trilu", kept, g.symbol(diagonal), upper=upper)
    return g.cast(made, x.dtype)


# Tensors from sizes -------------------------------------------------------------------------------


def _full(g: Any, sizes: Any, value: Any, dtype: Any) -> Any:
    """A tensor of one number; `dtype` None for that of the number."""
    dtype = dtype or g.promote(value)
    if isinstance(value, Symbol) or not any(isinstance(each, Symbol) for each in sizes):
        return g.expand(g.cast(value, dtype), list(sizes)) if sizes else g.cast(value, dtype)
    made = g.op("ConstantOfShape", list(sizes), value=weft.tensor([value], dtype=dtype))
    return g.sized(made, sizes)


def _factory(name: str, value: Any) -> None:
    @mapping(name, f"{name}.memory_format")
    def run(g: Any, sizes: Any, dtype: Any = None, *rest: Any) -> Any:
        return _full(g, sizes, value, dtype or weft.get_default_dtype())

    @mapping(f"{name}_like")
    def run_like(g: Any, x: Symbol, dtype: Any = None, *rest: Any) -> Any:
        return _full(g, x.shape, value, dtype or x.dtype)

    @mapping(f"new_{name}")
    def run_new(g: Any, x: Symbol, sizes: Any, dtype: Any = None, *rest: Any) -> Any:
        return _full(g, sizes, value, dtype or x.dtype)


for _name, _value in {"zeros": 0, "ones": 1, "empty": 0}.items():
    _factory(_name, _value)


mapping("full")(lambda g, sizes, value, dtype=None, *rest: _full(g, sizes, value, dtype))
mapping("full_like")(
    lambda g, x, value, dtype=None, *rest: _full(g, x.shape, value, dtype or x.dtype)
)
mapping("new_full")(
    lambda g, x, sizes, value, dtype=None, *rest: _full(g, sizes, value, dtype or x.dtype)
)
mapping("fill", "fill_")(lambda g, x, value: _full(g, x.shape, value, x.dtype))
mapping("zero_")(lambda g, x: _full(g, x.shape, 0, x.dtype))
mapping("copy_")(lambda g, x, source, non_blocking=False: g.cast(source, x.dtype))


def _range(g: Any, start: Any, end: Any, step: Any, dtype: Any) -> Any:
    kept = dtype or g.promote(start, end, step)
    made = g.op("Range", *(g.cast(each, kept) for each in (start, end, step)))
    return g.sized(made, [end if start == 0 and step == 1 else None])


mapping("arange")(lambda g, end, dtype=None, *rest: _range(g, 0, end, 1, dtype))
mapping("arange.start")(lambda g, start, end, dtype=None, *rest: _range(g, start, end, 1, dtype))
mapping("arange.start_step")(
    lambda g, start, end, step=1, dtype=None, *rest: _range(g, start, end, step, dtype)
)


@mapping("linspace")
def _linspace(g: Any, start: Any, end: Any, steps: Any, dtype: Any = None, *rest: Any) -> Any:
    kept = dtype or weft.get_default_dtype()
    positions = g.cast(_range(g, 0, steps, 1, None), kept)
    start, end = g.cast(start, kept), g.cast(end, kept)
    return positions * ((end - start) / g.cast(steps - 1, kept)) + start


@mapping("eye", "eye.m")
def _eye(g: Any, n: Any, m: Any = None, dtype: Any = None, *rest: Any) -> Any:
    m, dtype = (n, m) if isinstance(m, weft.dtype) or m is None else (m, dtype)
    rows, columns = (g.unsqueeze(_range(g, 0, each, 1, None), at) for each, at in ((n, 1), (m, 0)))
    return g.cast(g.op("Equal", rows, columns), dtype or weft.get_default_dtype())


# Random numbers -----------------------------------------------------------------------------------


def _random(g: Any, kind: str, sizes: Any, dtype: Any, **attributes: Any) -> Any:
    zeros = _full(g, sizes, 0, dtype or weft.get_default_dtype())
    return g.op(f"{kind}Like", zeros, **attributes)


mapping("rand")(lambda g, sizes, dtype=None, *rest: _random(g, "RandomUniform", sizes, dtype))
mapping("randn")(lambda g, sizes, dtype=None, *rest: _random(g, "RandomNormal", sizes, dtype))
mapping("rand_like")(
    lambda g, x, dtype=None, *rest: _random(g, "RandomUniform", x.shape, dtype or x.dtype)
)
mapping("randn_like")(
    lambda g, x, dtype=None, *rest: _random(g, "RandomNormal", x.shape, dtype or x.dtype)
)
mapping("uniform_")(
    lambda g, x, low=0, high=1, generator=None: _random(
        g, "RandomUniform", x.shape, x.dtype, low=low, high=high
    )
)
mapping("normal_")(
    lambda g, x, mean=0, std=1, generator=None: _random(
        g, "RandomNormal", x.shape, x.dtype, mean=mean, scale=std
    )
)
mapping("bernoulli")(lambda g, x, generator=None: g.op("Bernoulli", x))
