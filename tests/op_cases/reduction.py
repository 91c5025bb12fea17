"""Cases of the reductions and the row-wise programs."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import (
    ALL,
    FLOATS,
    INTEGRAL,
    REALS,
    WIDE_FLOATS,
    A,
    Fails,
    S,
    case,
    distinct,
    nonzero,
)


def _axis(dim: Any) -> Any:
    if dim is None:
        return None
    return (tuple(dim) or None) if isinstance(dim, (list, tuple)) else dim


def _over(function: Any) -> Any:
    """NumPy's reduction with PyTorch's argument names."""

    def run(x: np.ndarray, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> np.ndarray:
        return function(x, axis=_axis(dim), keepdims=keepdim, **kwargs)

    return run


_WHOLE = [S(A((3, 4))), S(A(())), S(A((2, 3, 5))), S(A((1000,)))]
_LISTS = [
    S(A((3, 4)), [0]),
    S(A((3, 4)), [1], True),
    S(A((2, 3, 5)), [0, 2]),
    S(A((2, 3, 5)), [-2], True),
    S(A((4, 700)), [1]),
    S(A((700, 5)), [0]),
]
_ONE = [S(A((3, 4)), 0), S(A((3, 4)), 1, True), S(A((2, 3, 5)), -2), S(A((4, 700)), 1)]
_DIM = "expected dim in [-2, 1], got 2"


def _bad_dim(op: str, dim: Any = 2) -> tuple[Fails, ...]:
    return (Fails(S(A((2, 3)), dim), IndexError, f"{op}: {_DIM}"),)


case("sum", [*_WHOLE, S(A((0, 3)))], np.sum, dtypes=WIDE_FLOATS + INTEGRAL[1:], tolerance=4)
case("sum.dim_IntList", [*_LISTS, S(A((0, 3)), [0])], _over(np.sum), dtypes=FLOATS, tolerance=4, fails=_bad_dim("sum", [2]))
case("mean", _WHOLE, np.mean, dtypes=WIDE_FLOATS, tolerance=4)
case("mean.dim", _LISTS, _over(np.mean), tolerance=4, fails=_bad_dim("mean", [2]))
case("prod", _WHOLE[:3], np.prod, domain=nonzero, dtypes=FLOATS, tolerance=8)
case("prod.dim_int", _ONE[:3], _over(np.prod), domain=nonzero, tolerance=8, fails=_bad_dim("prod"))
case("amax", _LISTS, _over(np.amax), domain=distinct, dtypes=REALS)
case("amin", _LISTS, _over(np.amin), domain=distinct, dtypes=REALS)
_EMPTY = "expected a non-empty row, got shape (0,)"
case("max", _WHOLE, np.max, domain=distinct, dtypes=REALS, fails=(Fails(S(A((0,))), RuntimeError, f"max: {_EMPTY}"),))
case("min", _WHOLE, np.min, domain=distinct, dtypes=REALS, fails=(Fails(S(A((0,))), RuntimeError, f"min: {_EMPTY}"),))


def _with_index(value: Any, index: Any) -> Any:
    def run(x: np.ndarray, dim: int, keepdim: bool = False) -> Any:
        return value(x, axis=dim, keepdims=keepdim), index(x, axis=dim, keepdims=keepdim)

    return run


case("max.dim", _ONE, _with_index(np.max, np.argmax), domain=distinct, dtypes=REALS[:2] + INTEGRAL[1:-1], fails=_bad_dim("max"))
case("min.dim", _ONE, _with_index(np.min, np.argmin), domain=distinct, dtypes=REALS[:2] + INTEGRAL[1:-1], fails=_bad_dim("min"))
case("argmax", [S(A((3, 4))), *_ONE], _over(np.argmax), domain=distinct, dtypes=REALS)
case("argmin", [S(A((3, 4))), *_ONE], _over(np.argmin), domain=distinct, dtypes=REALS)


def _truth(function: Any) -> Any:
    """bool, but of uint8 uint8."""
    def run(x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(function(x, *args, **kwargs)).astype("uint8" if x.dtype == np.uint8 else "bool")

    return run


for _name, _ref in (("any", np.any), ("all", np.all)):
    case(_name, [*_WHOLE, S(A((0,)))], _truth(_ref), dtypes=ALL)
    case(f"{_name}.dim", _ONE, _truth(_over(_ref)), dtypes=ALL)
    case(f"{_name}.dims", [S(A((2, 3, 5)), [0, 2]), S(A((3, 4)), [1], True)], _truth(_over(_ref)), dtypes=ALL)


def _spread(root: bool) -> Any:
    def run(x: np.ndarray, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> np.ndarray:
        return (np.std if root else np.var)(x, axis=_axis(dim), ddof=correction, keepdims=keepdim)

    return run


_CORRECTED = [S(A((3, 4))), S(A((3, 4)), [0]), S(A((2, 3, 5)), [0, 2], correction=0, keepdim=True), S(A((4, 700)), [1], correction=2)]
case("var.correction", _CORRECTED, _spread(False), tolerance=8)
case("std.correction", _CORRECTED, _spread(True), tolerance=8)


def _norm(x: np.ndarray, ord: float = 2, dim: Any = None, keepdim: bool = False) -> np.ndarray:
    return np.sum(np.abs(x) ** ord, axis=_axis(dim), keepdims=keepdim) ** (1 / ord)


case("linalg_vector_norm", [S(A((3, 4))), S(A((3, 4)), 2, [1]), S(A((3, 4)), 1, [0], True), S(A((3, 4)), 3, [0])], _norm,
     domain=nonzero, tolerance=8)  # fmt: skip


def _logsumexp(x: np.ndarray, dim: Any, keepdim: bool = False) -> np.ndarray:
    return np.log(np.sum(np.exp(x), axis=_axis(dim), keepdims=keepdim))


case("logsumexp", _LISTS, _logsumexp, tolerance=4)
case("cumsum", _ONE_PLAIN := [S(A((3, 4)), 0), S(A((2, 3, 5)), -1), S(A((7,)), 0)], np.cumsum, tolerance=4)


def _softmax(x: np.ndarray, dim: int) -> np.ndarray:
    e = np.exp(x - np.max(x, axis=dim, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=dim, keepdims=True)


_ROWS = [S(A((3, 4)), 1), S(A((3, 4)), 0), S(A((2, 3, 5)), -2), S(A((2, 1300)), 1), S(A((0, 3)), 1)]
case("softmax.int", _ROWS, _softmax, dtypes=WIDE_FLOATS, tolerance=4, fails=_bad_dim("softmax"))
case("log_softmax.int", _ROWS, lambda x, d: np.log(_softmax(x, d)), dtypes=WIDE_FLOATS, tolerance=8, fails=_bad_dim("log_softmax"))


def _layer_norm(x: np.ndarray, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> np.ndarray:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


case("layer_norm", [S(A((3, 8)), [8]), S(A((3, 8)), [8], A((8,)), A((8,))), S(A((2, 4, 5)), [4, 5], A((4, 5)), A((4, 5)))],
     _layer_norm, tolerance=20,
     fails=tuple(Fails(S(A((3, 8)), [8], *affine), RuntimeError, f"layer_norm: expected {which} of shape (8,), got (1,)")
                 for which, *affine in (("weight", A((1,))), ("weight", A((1,)), A((8,))), ("bias", None, A((1,))), ("bias", A((8,)), A((1,))))))  # fmt: skip

# ---- older names and overloads ----
case("count_nonzero", [S(A((3, 4)), 0)], lambda x, d: np.count_nonzero(x, axis=d), grad=False)
case("count_nonzero.dim_IntList", [S(A((3, 4)), [0]), S(A((2, 3, 4)), [0, 2])], lambda x, d: np.count_nonzero(x, axis=tuple(d)), grad=False)


def _unbiased(root: bool) -> Any:
    def run(x: np.ndarray, *args: Any, unbiased: bool = True, keepdim: bool = False) -> np.ndarray:
        dim, unbiased, keepdim = args + (unbiased, keepdim) if len(args) == 1 else (*args, keepdim)[:3] if args else (None, unbiased, keepdim)
        return (np.std if root else np.var)(x, axis=_axis(dim), ddof=int(unbiased), keepdims=keepdim)

    return run


for _name, _root in (("var", False), ("std", True)):
    case(_name, [S(A((3, 4))), S(A((3, 4)), unbiased=False)], _unbiased(_root), tolerance=8)
    case(f"{_name}.dim", [S(A((3, 4)), [0]), S(A((3, 4)), [1], False), S(A((3, 4)), [1], True, True)], _unbiased(_root), tolerance=8)

case("norm.Scalar", [S(A((3, 4))), S(A((3, 4)), 1)], _norm, domain=nonzero, tolerance=8)
case("norm.ScalarOpt_dim", [S(A((3, 4)), 2, [1]), S(A((3, 4)), 3, [0], True)], _norm, domain=nonzero, tolerance=8)


def _as_double(x: np.ndarray, p: float, *rest: Any, dtype: Any = None) -> np.ndarray:
    return _norm(x.astype("float64"), p, *rest)


case("norm.ScalarOpt_dtype", [S(A((3, 4)), 2, dtype=weft.float64)], _as_double, domain=nonzero, dtypes=("float64",), parity=False)
case("norm.ScalarOpt_dim_dtype", [S(A((3, 4)), 2, [1], False, dtype=weft.float64)], _as_double, domain=nonzero, dtypes=("float64",),
     parity=False)  # fmt: skip
