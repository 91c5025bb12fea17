"""Cases of the matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

from .spec import FLOATS, HALVES, A, B, Fails, S, case

_MM = "mm: expected shapes (..., k) and (k, n), got (2, 3) and (4, 5)"
_SIZES = [S(A((3, 4)), A((4, 5))), S(A((1, 7)), A((7, 1))), S(A((0, 4)), A((4, 5))), S(A((3, 0)), A((0, 5))), S(A((70, 33)), A((33, 65)))]

case("mm", _SIZES, np.matmul, dtypes=(*FLOATS, "int64", *HALVES), tolerance=40,
     fails=(Fails(S(A((2, 3)), A((4, 5))), RuntimeError, _MM),))  # fmt: skip
case("bmm", [S(A((2, 3, 4)), A((2, 4, 5))), S(A((0, 3, 4)), A((0, 4, 5)))], np.matmul, tolerance=40)
case("matmul", [S(A((4,)), A((4,))), S(A((3, 4)), A((4,))), S(A((4,)), A((4, 5))), S(A((2, 3, 4)), A((4, 5))), S(A((2, 1, 3, 4)), A((5, 4, 2)))],
     np.matmul, tolerance=40)  # fmt: skip
case("mv", [S(A((3, 4)), A((4,)))], np.matmul, tolerance=40)
case("dot", [S(A((7,)), A((7,))), S(A((0,)), A((0,)))], np.dot, tolerance=40)
case("outer", [S(A((3,)), A((4,)))], np.outer,
     fails=(Fails(S(A((3, 2)), A((4,))), RuntimeError, "outer: expected two vectors, got shapes (3, 2) and (4,)"),))  # fmt: skip


def _addmm(x: np.ndarray, a: np.ndarray, b: np.ndarray, *, beta: float = 1, alpha: float = 1) -> np.ndarray:
    return beta * x + alpha * (a @ b)


case("addmm", [S(A((3, 5)), A((3, 4)), A((4, 5))), S(A((5,)), A((3, 4)), A((4, 5)), beta=0.5, alpha=2)], _addmm, tolerance=40)


def _refuses_dtypes(name: str, *sizes: tuple[int, ...]) -> Any:
    def check(function: Any) -> None:
        with pytest.raises(NotImplementedError, match=rf"^{name}: expected no out_dtype for products on the CPU, got float64$"):
            function(*map(weft.ones, sizes), weft.float64)

    return check


for _name, _shapes in {
    "mm": ((2, 3), (3, 4)),
    "bmm": ((5, 2, 3), (5, 3, 4)),
    "addmm": ((2, 4), (2, 3), (3, 4)),
    "baddbmm": ((5, 2, 4), (5, 2, 3), (5, 3, 4)),
}.items():
    case(f"{_name}.dtype", check=_refuses_dtypes(_name, *_shapes), grad=False)


def _refuses(function: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"^f: expected no out_dtype for products on the CPU, got int8$"):
        function(weft.ones(1), "f", weft.int8)


case("_no_product", check=_refuses, grad=False)


def _linear(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    return x @ w.T + (0 if b is None else b)


case("linear", [S(A((3, 4)), A((5, 4))), S(A((3, 4)), A((5, 4)), A((5,))), S(A((2, 3, 4)), A((5, 4)), A((5,))), S(A((4,)), A((5, 4)), A((5,))),
                S(A((2, 3, 4)), A((4,))), S(A((2, 3, 4)), A((4,)), A(())), S(A((4,)), A((4,)))],
     _linear, tolerance=40)  # fmt: skip
case("tril", [S(A((3, 4))), S(A((4, 4)), 1), S(A((2, 3, 3)), -1)], np.tril)
case("triu", [S(A((3, 4))), S(A((4, 4)), 1), S(A((2, 3, 3)), -1)], np.triu)
case("baddbmm", [S(A((2, 3, 5)), A((2, 3, 4)), A((2, 4, 5))), S(A((3, 5)), A((2, 3, 4)), A((2, 4, 5)), beta=0.5, alpha=2)], _addmm, tolerance=40)
_FACTORS = {"beta": 0.5, "alpha": 2}
case("addmv", [S(A((3,)), A((3, 4)), A((4,))), S(A(()), A((3, 4)), A((4,)), **_FACTORS)], _addmm, tolerance=40,
     fails=(Fails(S(A((3,)), A((3, 4)), A((4, 1))), RuntimeError,
                  "addmv: expected a vector, a matrix and a vector, got shapes (3,), (3, 4) and (4, 1)"),))  # fmt: skip


def _addr(x: np.ndarray, a: np.ndarray, b: np.ndarray, *, beta: float = 1, alpha: float = 1) -> np.ndarray:
    return beta * x + alpha * np.outer(a, b)


case("addr", [S(A((3, 4)), A((3,)), A((4,))), S(A((4,)), A((3,)), A((4,)), **_FACTORS)], _addr, tolerance=40,
     fails=(Fails(S(A((3, 4)), A((3, 1)), A((4,))), RuntimeError, "addr: expected two vectors, got shapes (3, 1) and (4,)"),))  # fmt: skip


def _addbmm(x: np.ndarray, a: np.ndarray, b: np.ndarray, *, beta: float = 1, alpha: float = 1) -> np.ndarray:
    return beta * x + alpha * (a @ b).sum(0)


case("addbmm", [S(A((3, 5)), A((2, 3, 4)), A((2, 4, 5))), S(A((5,)), A((2, 3, 4)), A((2, 4, 5)), **_FACTORS)], _addbmm, tolerance=40,
     fails=(Fails(S(A((3, 5)), A((2, 3, 4)), A((3, 4, 5))), RuntimeError,
                  "addbmm: expected shapes (b, n, k) and (b, k, m), got (2, 3, 4) and (3, 4, 5)"),))  # fmt: skip
case("vdot", [S(A((5,)), A((5,)))], np.vdot, tolerance=40)


def _accumulates(first: tuple[int, ...], second: tuple[int, ...], batch: bool = False) -> Any:
    """Three ones are doubled, and what the product adds is added."""

    def check(function: Any) -> None:
        x = weft.ones((2, 3, 3) if batch else (3,) if len(second) == 1 and len(first) == 2 else (3, 3))
        assert function(x, weft.ones(first), weft.ones(second), beta=2, alpha=0.5) is x
        inner = 1 if len(first) == 1 else first[-1] * (first[0] if len(first) == 3 and not batch else 1)
        assert bool((x == 2 + 0.5 * inner).all())

    return check


case("addmm_", check=_accumulates((3, 4), (4, 3)), grad=False)
case("addmv_", check=_accumulates((3, 4), (4,)), grad=False)
case("addr_", check=_accumulates((3,), (3,)), grad=False)
case("addbmm_", check=_accumulates((2, 3, 4), (2, 4, 3)), grad=False)
case("baddbmm_", check=_accumulates((2, 3, 4), (2, 4, 3), batch=True), grad=False)


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any, is_causal: bool, scale: float) -> np.ndarray:
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    most = np.max(scores, -1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)) @ v


_QKV = (A((2, 3, 4)), A((2, 5, 4)), A((2, 5, 3)))
_ATTENDED = "scaled_dot_product_attention: expected "
case("_attention", [
    S(*_QKV, None, False, 0.5), S(*_QKV, None, True, 0.7), S(*_QKV, B((3, 5)), False, 0.5), S(*_QKV, B((2, 1, 5)), True, 0.5), S(*_QKV, B((3, 1, 3, 5)), False, 0.5),
    S(A((70, 3)), A((70, 3)), A((70, 2)), None, True, 0.5), S(A((7, 3)), A((3, 3)), A((3, 2)), None, True, 1.0),
    S(A((2, 1, 3, 4)), A((3, 5, 4)), A((1, 1, 5, 2)), None, False, 0.5), S(A((2, 0, 4)), A((2, 3, 4)), A((2, 3, 2)), None, False, 0.5),
    S(A((2, 3, 4)), A((2, 0, 4)), A((2, 0, 2)), None, False, 0.5),
], _attention, tolerance=40, fails=(
    Fails(S(A((2, 3, 4)), A((2, 5, 3)), A((2, 5, 3)), None, False, 0.5), RuntimeError,
          _ATTENDED + "shapes (*, t, e), (*, s, e) and (*, s, v), got (2, 3, 4), (2, 5, 3) and (2, 5, 3)"),
    Fails(S(*_QKV, B((4, 5)), False, 0.5), RuntimeError, _ATTENDED + "broadcastable shapes, got (4, 5) and (2, 3, 5)"),
    Fails(S(A((4,)), A((5, 4)), A((5, 4)), None, False, 0.5), RuntimeError, _ATTENDED + "shapes (*, t, e), (*, s, e) and (*, s, v), got (4,), (5, 4) and (5, 4)"),
))  # fmt: skip
