"""Reductions, scans and sorts."""

from __future__ import annotations

from typing import Any

from weft._runtime.public import weft
from weft.onnx._elements import floating, like
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping

_OLD = {"ReduceSum": 13}  # since when the dimensions are an input; opset 18 for all others


def reduced(g: Any, kind: str, x: Symbol, dims: Any, keepdim: bool) -> Any:
    """One of ONNX's reductions over dimensions; over all for None."""
    axes = g.dims(x, dims) if dims is not None and dims != [] else None
    if axes == [] or x.sizes == ():
        axes = None
    if g.opset >= _OLD.get(kind, 18):
        return g.op(kind, x, axes, keepdims=int(keepdim))
    return g.op(kind, x, axes=axes, keepdims=int(keepdim))


def _counted(x: Symbol, dtype: Any) -> Any:
    """The dtype of a sum: int64 of whole numbers and masks."""
    return dtype or (x.dtype if x.is_floating_point() else weft.int64)


@mapping("sum", "sum.dim_IntList")
def _sum(g: Any, x: Symbol, dims: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    dims, keepdim, dtype = _arguments(dims, keepdim, dtype)
    return reduced(g, "ReduceSum", g.cast(x, _counted(x, dtype)), dims, keepdim)


@mapping("nansum")
def _nansum(g: Any, x: Symbol, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    kept = g.op("Where", g.op("IsNaN", x), like(g, x, 0), x) if x.is_floating_point() else x
    return _sum(g, kept, dims, keepdim, dtype)


@mapping("mean", "mean.dim")
def _mean(g: Any, x: Symbol, dims: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    dims, keepdim, dtype = _arguments(dims, keepdim, dtype)
    return reduced(g, "ReduceMean", x if dtype is None else g.cast(x, dtype), dims, keepdim)


def _arguments(dims: Any, keepdim: Any, dtype: Any) -> tuple[Any, bool, Any]:
    """Of both overloads: the one over all elements has the dtype alone."""
    if isinstance(dims, weft.dtype):
        return None, False, dims
    return dims, bool(keepdim), dtype


mapping("prod")(
    lambda g, x, dtype=None: reduced(g, "ReduceProd", g.cast(x, _counted(x, dtype)), None, False)
)
mapping("prod.dim_int")(
    lambda g, x, dim, keepdim=False, dtype=None: reduced(
        g, "ReduceProd", g.cast(x, _counted(x, dtype)), [dim], keepdim
    )
)


@mapping("amax", "max")
def _amax(g: Any, x: Symbol, dims: Any = None, keepdim: bool = False) -> Any:
    return reduced(g, "ReduceMax", x, dims, keepdim)


@mapping("amin", "min")
def _amin(g: Any, x: Symbol, dims: Any = None, keepdim: bool = False) -> Any:
    return reduced(g, "ReduceMin", x, dims, keepdim)


def _extreme(kind: str, best: Any) -> None:
    """argmax, and max with the places, or those of min."""

    @mapping(f"arg{kind.lower()}")
    def place(g: Any, x: Symbol, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            made = g.op(f"Arg{kind}", g.flat(x), axis=0, keepdims=0)
            return g.reshape(made, [1] * x.rank) if keepdim else made
        return g.op(f"Arg{kind}", x, axis=g.dim(x, dim), keepdims=int(keepdim))

    mapping(f"{kind.lower()}.dim")(
        lambda g, x, dim, keepdim=False: (best(g, x, [dim], keepdim), place(g, x, dim, keepdim))
    )


for _name, _best in (("Max", _amax), ("Min", _amin)):
    _extreme(_name, _best)


@mapping("aminmax")
def _aminmax(g: Any, x: Symbol, dim: Any = None, keepdim: bool = False) -> Any:
    dims = None if dim is None else [dim]
    return _amin(g, x, dims, keepdim), _amax(g, x, dims, keepdim)


@mapping("any", "any.dim", "any.dims")
def _any(g: Any, x: Symbol, dims: Any = None, keepdim: bool = False) -> Any:
    whole = g.cast(g.cast(x, weft.bool), weft.int32)  # the sum of no element is 0
    return g.cast(reduced(g, "ReduceSum", whole, _listed(dims), keepdim), weft.bool)


mapping("all", "all.dim", "all.dims")(
    lambda g, x, dims=None, keepdim=False: g.op(
        "Not", _any(g, g.op("Not", g.cast(x, weft.bool)), dims, keepdim)
    )
)


def _listed(dims: Any) -> Any:
    return [dims] if isinstance(dims, int) else dims


# Moments and norms --------------------------------------------------------------------------------


@mapping("_var")
def _var(g: Any, x: Symbol, dims: Any, correction: float, keepdim: bool) -> Any:
    (x,) = floating(g, x)
    axes = g.dims(x, dims)
    gap = x - reduced(g, "ReduceMean", x, axes, True)
    count: Any = 1
    for axis in axes:
        count = count * x.size(axis)
    return reduced(g, "ReduceSum", gap * gap, axes, keepdim) / like(g, x, count - correction)


mapping("_std")(lambda g, *args: g.op("Sqrt", _var(g, *args)))


def _with_mean(name: str) -> None:
    """var_mean and std_mean."""

    @mapping(f"{name}_mean.correction")
    def run(
        g: Any, x: Symbol, dims: Any = None, correction: Any = None, keepdim: bool = False
    ) -> Any:
        correction = 1 if correction is None else correction
        spread = g.call(f"_{name}", x, dims, float(correction), keepdim)
        return spread, reduced(g, "ReduceMean", x, dims, keepdim)

    @mapping(f"{name}_mean.dim")
    def run_dim(g: Any, x: Symbol, dims: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
        return run(g, x, dims, int(unbiased), keepdim)

    @mapping(f"{name}_mean")
    def run_all(g: Any, x: Symbol, unbiased: bool = True) -> Any:
        return run(g, x, None, int(unbiased))


_with_mean("var")
_with_mean("std")


mapping("_norm2")(
    lambda g, x, dims, keepdim: reduced(g, "ReduceL2", floating(g, x)[0], dims, keepdim)
)


@mapping("_norm_p")
def _norm_p(g: Any, x: Symbol, p: float, dims: Any, keepdim: bool) -> Any:
    (x,) = floating(g, x)
    if p == 1:
        return reduced(g, "ReduceL1", x, dims, keepdim)
    size = g.op("Abs", x)
    if p in (float("inf"), float("-inf")):
        return reduced(g, "ReduceMax" if p > 0 else "ReduceMin", size, dims, keepdim)
    if p == 0:
        return reduced(g, "ReduceSum", g.cast(g.call("ne.Scalar", x, 0), x.dtype), dims, keepdim)
    total = reduced(g, "ReduceSum", g.op("Pow", size, like(g, x, p)), dims, keepdim)
    return g.op("Pow", total, like(g, x, 1 / p))


mapping("logsumexp")(
    lambda g, x, dims, keepdim=False: reduced(
        g, "ReduceLogSumExp", floating(g, x)[0], dims, keepdim
    )
)


# Scans and sorts ----------------------------------------------------------------------------------


@mapping("cumsum")
def _cumsum(g: Any, x: Symbol, dim: int, dtype: Any = None) -> Any:
    if x.sizes == ():
        return g.cast(x, _counted(x, dtype))
    return g.op("CumSum", g.cast(x, _counted(x, dtype)), g.constant(g.dim(x, dim)))


@mapping("topk")
def _topk(
    g: Any, x: Symbol, k: Any, dim: int = -1, largest: bool = True, ordered: bool = True
) -> Any:
    flags = {"axis": g.dim(x, dim), "largest": largest, "sorted": ordered}
    values, indices = g.op("TopK", x, [k], outputs=2, **flags)
    return values, indices


@mapping("sort")
def _sort(g: Any, x: Symbol, dim: int = -1, descending: bool = False) -> Any:
    return _topk(g, x, x.size(dim), dim, descending)


mapping("sort.stable")(
    lambda g, x, stable=None, dim=-1, descending=False: _sort(g, x, dim, descending)
)


@mapping("median.dim")
def _median_dim(g: Any, x: Symbol, dim: int = -1, keepdim: bool = False) -> Any:
    size = x.size(dim)
    return _kthvalue(g, x, (size - 1) // 2 + 1, dim, keepdim)


mapping("median")(lambda g, x: _median_dim(g, g.flat(x), 0)[0])


@mapping("logcumsumexp")
def _logcumsumexp(g: Any, x: Symbol, dim: int) -> Any:
    top = reduced(g, "ReduceMax", x, [dim], True)
    return g.op("Log", _cumsum(g, g.op("Exp", x - top), dim)) + top


@mapping("_unique2")
def _unique(
    g: Any, x: Symbol, ordered: bool = True, inverse: bool = False, counts: bool = False
) -> Any:
    values, _, indices, numbers = g.op("Unique", g.flat(x), outputs=4, sorted=1)
    none = g.constant(weft.empty(0, dtype=weft.int64))
    return values, g.reshape(indices, x.shape) if inverse else none, numbers if counts else none


@mapping("kthvalue")
def _kthvalue(g: Any, x: Symbol, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    found = _topk(g, x, k, dim, largest=False)
    last = [g.op("Gather", each, [k - 1], axis=g.dim(x, dim)) for each in found]
    return tuple(each if keepdim else g.squeeze(each, g.dim(x, dim)) for each in last)
