"""The shapes of operators' results, a rule for each family.

A rule gives the sizes (None: the rank is not known); the dtype comes from `shape_dtypes`. A rule
may assume that the operator does not raise.
"""

from __future__ import annotations

from collections.abc import Sequence

import weft.jit.passes.shape_views  # noqa: F401  (registers its rules)
from weft.jit.ir import ShapeInfo
from weft.jit.ir.shape import Dim
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.shape_call import ShapeCall
from weft.jit.passes.shape_dtypes import dtypes_of
from weft.jit.passes.shape_registry import RULES, Result, Rule, rule


def infer(call: ShapeCall) -> list[ShapeInfo | None]:
    """What is known of each result of a node."""
    outputs = len(call.node.outputs)
    found = RULES.get(call.node.kind) or RULES.get(call.node.name)
    row = call.operator.row
    if call.operator.writes_self:
        found = _same  # in place: the sizes and the dtype stay
    elif found is None and row is not None:
        found = _BY_KIND.get(row.kind)
    try:
        sizes = found(call) if found is not None else None
    except (IndexError, ZeroDivisionError):  # sizes that the operator refuses, if it ever runs
        sizes = None
    dtypes = dtypes_of(call)
    shared = None if sizes is None else tuple(sizes)
    return [ShapeInfo(dtype, shared) for dtype in dtypes] if dtypes else [None] * outputs


# ---- pointwise ----


def broadcast(shapes: Sequence[Sequence[Dim] | None]) -> Result:
    """The sizes that all of these broadcast to.

    >>> broadcast([(2, 1, "n"), (None, "n")])
    [2, None, 'n']
    """
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes) or not known:
        return None
    result: list[Dim] = []
    for place in range(max(map(len, known)), 0, -1):
        result.append(_broadcast_dim([s[-place] for s in known if place <= len(s)]))
    return result


def _broadcast_dim(sizes: list[Dim]) -> Dim:
    others = {size for size in sizes if size != 1}
    if not others:
        return 1
    numbers = [size for size in others if isinstance(size, int)]
    if numbers:
        return numbers[0]  # all others are the same, or 1
    return others.pop() if len(others) == 1 else None


def _pointwise(call: ShapeCall) -> Result:
    return broadcast([(v.shape or ShapeInfo()).sizes for v in call.tensors])


rule("where.self", "clamp.Tensor", "max.other", "min.other", "addcmul", "addcdiv", "lerp")(
    _pointwise
)


@rule("relu", "gelu", "dropout", "clone", "contiguous", "detach", "alias", "to", "type_as", "clamp")
@rule("softmax", "log_softmax", "layer_norm", "batch_norm", "cumsum", "cumprod", "tril", "triu")
@rule("flip", "roll", "sort", "argsort", "zeros_like", "ones_like", "full_like", "empty_like")
@rule("rand_like", "randn_like", "randint_like", "nan_to_num", "logit", "_to_copy")
@rule("positive", "conj", "real", "cummax", "cummin", "logcumsumexp", "index_fill", "index_copy")
@rule("scatter", "scatter_add", "scatter_reduce", "masked_scatter", "index_put", "index_add")
def _same(call: ShapeCall) -> Result:
    return call.first.sizes


# ---- reductions ----


def _reduced(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    if not call.has("dim"):
        return ()
    if sizes is None:
        return None
    dims, keep = call.dims("dim", len(sizes)), _keeps(call)
    if dims is None or keep is None:
        return None
    kept = [1 if index in dims else size for index, size in enumerate(sizes)]
    return kept if keep else [size for index, size in enumerate(sizes) if index not in dims]


def _keeps(call: ShapeCall) -> bool | None:
    return call.const("keepdim") if call.has("keepdim") else False


rule("var", "std", "norm", "nansum", "nanmean", "count_nonzero", "linalg_vector_norm")(_reduced)
rule("median.dim", "mode", "kthvalue", "nanmedian.dim")(_reduced)


@rule("topk")
def _topk(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    dim = None if sizes is None else call.dim("dim", len(sizes))
    if not sizes or dim is None:
        return sizes and [None] * len(sizes)
    return [*sizes[:dim], call.sizes.of(call.values["k"]), *sizes[dim + 1 :]]


# ---- products ----


@rule("mm")
def _mm(call: ShapeCall) -> Result:
    return _product(
        call.shape("self").sizes or (None, None), call.shape("mat2").sizes or (None,) * 2
    )


@rule("bmm")
def _bmm(call: ShapeCall) -> Result:
    return _product(
        call.shape("self").sizes or (None,) * 3, call.shape("mat2").sizes or (None,) * 3
    )


@rule("addmm")
def _addmm(call: ShapeCall) -> Result:
    return _product(
        call.shape("mat1").sizes or (None,) * 2, call.shape("mat2").sizes or (None,) * 2
    )


@rule("baddbmm")
def _baddbmm(call: ShapeCall) -> Result:
    first, second = call.shape("batch1").sizes, call.shape("batch2").sizes
    return _product(first or (None,) * 3, second or (None,) * 3)


@rule("matmul")
def _matmul(call: ShapeCall) -> Result:
    first, second = call.shape("self").sizes, call.shape("other").sizes
    return None if first is None or second is None else _product(first, second)


def _product(first: Sequence[Dim], second: Sequence[Dim]) -> Result:
    if not first or not second:
        return None
    rows = list(first[-2:-1])
    columns = list(second[-1:]) if len(second) > 1 else []
    batch = broadcast([first[:-2], second[:-2]])
    return None if batch is None else [*batch, *rows, *columns]


@rule("linear")
def _linear(call: ShapeCall) -> Result:
    sizes, weight = call.first.sizes, call.shape("weight").sizes
    if sizes is None or weight is None or len(weight) != 2:
        return None
    return [*sizes[:-1], weight[0]]


@rule("embedding")
def _embedding(call: ShapeCall) -> Result:
    indices, weight = call.shape("indices").sizes, call.shape("weight").sizes
    if indices is None:
        return None
    return [*indices, weight[1] if weight is not None and len(weight) == 2 else None]


# ---- convolution and pooling ----


@rule("conv1d", "conv2d")
def _convolution(call: ShapeCall) -> Result:
    sizes, weight = call.first.sizes, call.shape("weight").sizes
    if weight is None or sizes is None:
        return None
    spatial = len(weight) - 2
    padding = call.const("padding")
    given = [weight[2:], call.const("stride"), padding, call.const("dilation")]
    known = not isinstance(padding, str)
    window = _window(sizes[-spatial:], given, False) if known else [None] * spatial
    return [*sizes[: -spatial - 1], weight[0], *window]


@rule("max_pool2d", "avg_pool2d")
def _pool(call: ShapeCall) -> Result:
    sizes = call.first.sizes
    if sizes is None:
        return None
    kernel, stride = call.const("kernel_size"), call.const("stride")
    dilation = call.const("dilation") if call.has("dilation") else 1
    given = [
        kernel,
        stride if stride not in ([], None) else kernel,
        call.const("padding"),
        dilation,
    ]
    ceil = call.const("ceil_mode")
    return [*sizes[:-2], *_window(sizes[-2:], given, ceil is not False)]


def _window(sizes: Sequence[Dim], given: list[object], unknown: bool) -> list[Dim]:
    """Sizes after a window of kernel, stride, padding, dilation has gone over them."""
    result: list[Dim] = []
    for index, size in enumerate(sizes):
        numbers = [n for values in given if (n := _entry(values, index)) is not None]
        if unknown or not isinstance(size, int) or len(numbers) < len(given):
            result.append(None)
        else:
            kernel, stride, padding, dilation = numbers
            reach = size + 2 * padding - dilation * (kernel - 1) - 1
            result.append(reach // stride + 1)
    return result


def _entry(values: object, index: int) -> int | None:
    if isinstance(values, (list, tuple)):
        entry = values[0] if len(values) == 1 else values[index] if index < len(values) else None
        return entry if isinstance(entry, int) else None
    return values if isinstance(values, int) else None


@rule("adaptive_avg_pool2d")
def _adaptive(call: ShapeCall) -> Result:
    sizes, wanted = call.first.sizes, call.ints("output_size")
    if sizes is None or wanted is None or len(wanted) != 2:
        return None
    return [*sizes[:-2], *wanted]


# ---- joining, choosing ----


@rule("cat")
def _cat(call: ShapeCall) -> Result:
    shapes = _list_shapes(call)
    if not shapes or any(len(shape) != len(shapes[0]) for shape in shapes) or not shapes[0]:
        return None
    dim = call.dim("dim", len(shapes[0]))
    if dim is None:
        return [None] * len(shapes[0])
    along = [shape[dim] for shape in shapes]
    numbers = [size for size in along if isinstance(size, int)]
    total = sum(numbers) if len(numbers) == len(along) else None
    merged = [_first_known([shape[i] for shape in shapes]) for i in range(len(shapes[0]))]
    return [*merged[:dim], total, *merged[dim + 1 :]]


@rule("stack")
def _stack(call: ShapeCall) -> Result:
    shapes = _list_shapes(call)
    if shapes is None or any(len(shape) != len(shapes[0]) for shape in shapes):
        return None  # it raises, where it runs at all
    dim = call.dim("dim", len(shapes[0]) + 1)
    if dim is None:
        return [None] * (len(shapes[0]) + 1)
    merged = [_first_known([shape[i] for shape in shapes]) for i in range(len(shapes[0]))]
    return [*merged[:dim], len(shapes), *merged[dim:]]


def _list_shapes(call: ShapeCall) -> list[tuple[Dim, ...]] | None:
    """The sizes of all tensors in a list; None if one is not known. (cat takes empty ones of rank
    1 for nothing: those are no match for the rest.)"""
    made = call.values["tensors"].node
    if made is None or made.kind != "prim::ListConstruct" or not made.inputs:
        return None
    if not is_only_read(made.output):
        return None
    shapes = [(value.shape or ShapeInfo()).sizes for value in made.inputs]
    known = [shape for shape in shapes if shape is not None]
    return known if len(known) == len(shapes) else None


def _first_known(sizes: list[Dim]) -> Dim:
    """The size that all of these are: a number if one is known."""
    numbers = [size for size in sizes if isinstance(size, int)]
    return numbers[0] if numbers else next((size for size in sizes if size is not None), None)


@rule("index_select")
def _index_select(call: ShapeCall) -> Result:
    sizes, index = call.first.sizes, call.shape("index").sizes
    dim = None if sizes is None else call.dim("dim", len(sizes))
    if not sizes or dim is None:
        return sizes and [None] * len(sizes)
    return [
        *sizes[:dim],
        index[0] if index is not None and len(index) == 1 else None,
        *sizes[dim + 1 :],
    ]


@rule("gather")
def _gather(call: ShapeCall) -> Result:
    return call.shape("index").sizes


# ---- factories ----


@rule("zeros", "ones", "full", "empty", "rand", "randn", "new_zeros", "new_ones", "new_full")
@rule("new_empty", "randint")
def _factory(call: ShapeCall) -> Result:
    return call.ints("size")


@rule("arange", "linspace", "randperm", "nonzero_static", "masked_select", "bincount")
def _vector(call: ShapeCall) -> Result:
    return [None]


@rule("scalar_tensor")
def _number(call: ShapeCall) -> Result:
    return []


@rule("eye")
def _eye(call: ShapeCall) -> Result:
    rows = call.sizes.of(call.values["n"])
    return [rows, call.sizes.of(call.values["m"]) if call.has("m") else rows]


_BY_KIND: dict[str, Rule] = {"pointwise": _pointwise, "reduce": _reduced}
