"""Cases of factories, copies and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import ALL, A, Fails, I, S, case

_NEGATIVE = (Fails(S([2, -1]), RuntimeError, "zeros: expected sizes >= 0, got (2, -1)"),)

case("zeros", [S([2, 3]), S([]), S([0, 4])], lambda size: np.zeros(size, "float32"), grad=False, dtypes=("float32",), fails=_NEGATIVE)
case("ones", [S([2, 3]), S([])], lambda size: np.ones(size, "float32"), dtypes=("float32",), grad=False)
case("full", [S([2, 3], 1.5)], lambda size, v: np.full(size, v, "float32"), dtypes=("float32",), grad=False)
case("arange", [S(5)], lambda n: np.arange(n), grad=False)
case("arange.start", [S(2, 7)], lambda a, b: np.arange(a, b), grad=False)
case("arange.start_step", [S(2, 9, 3), S(5, 0, -2)], lambda a, b, c: np.arange(a, b, c), grad=False,
     fails=(Fails(S(0, 5, 0), RuntimeError, "arange: expected a step other than 0, got 0"),))  # fmt: skip
case("linspace", [S(0, 1, 5), S(2, -2, 3)], lambda a, b, n: np.linspace(a, b, n), dtypes=("float32",), grad=False)
case("eye", [S(3)], lambda n: np.eye(n), dtypes=("float32",), grad=False)
case("eye.m", [S(3, 4)], lambda n, m: np.eye(n, m), dtypes=("float32",), grad=False)
case("zeros_like", [S(A((3, 4)))], np.zeros_like, dtypes=ALL, grad=False)
case("ones_like", [S(A((3, 4)))], np.ones_like, dtypes=ALL, grad=False)
case("full_like", [S(A((3, 4)), 1)], np.full_like, dtypes=ALL, grad=False)


def _empty(function: Any) -> None:
    tensor = function([2, 3]) if function.__name__ == "empty" else function(weft.zeros(2, 3))
    assert tuple(tensor.shape) == (2, 3)
    assert tensor.dtype == weft.float32
    assert tensor.is_contiguous()


case("empty.memory_format", check=_empty, grad=False)
case("empty_like", check=_empty, grad=False)
case("clone", [S(A((3, 4))), S(A((0, 2)))], np.copy, dtypes=ALL)
case("contiguous", [S(A((3, 4)))], np.copy, dtypes=ALL)


def _copy(function: Any) -> None:
    target = weft.zeros(2, 3, dtype=weft.int32)
    assert function(target, weft.tensor([1.9, -2.9, 3.0])) is target
    assert target.tolist() == [[1, -2, 3], [1, -2, 3]]


case("copy_", check=_copy, grad=False)


def _copy_number(function: Any) -> None:
    target = weft.zeros(2, 3, dtype=weft.int32)[:, 1]
    assert function(target, 2) is target
    assert target.tolist() == [2, 2]


case("copy_.int", check=_copy_number, grad=False)
case("copy_.float", check=_copy_number, grad=False)


def _fill(function: Any) -> None:
    target = weft.zeros(2, 3)[:, 1]
    assert function(target, 2.5) is target
    assert target.tolist() == [2.5, 2.5]


case("fill_.Scalar", check=_fill, grad=False)


def _zero(function: Any) -> None:
    target = weft.ones(2, 3).t()
    assert function(target) is target
    assert target.tolist() == [[0, 0]] * 3


case("zero_", check=_zero, grad=False)


def _item(function: Any) -> None:
    assert function(weft.tensor(2.5)) == 2.5
    assert type(function(weft.tensor([[3]]))) is int
    assert function(weft.tensor(True)) is True


case("item", check=_item, grad=False)
case("equal", [S(A((3, 4)), A((3, 4))), S(A((3,)), I((3,), 0, 2)), S(A((3,)), I((2,), 0, 2)), S(I((3,), 1, 2), A((3,), lambda rng, shape: np.ones(shape)))], np.array_equal, grad=False)
case("isclose", [S(A((3, 4)), A((3, 4)))], np.isclose, grad=False)
case("allclose", [S(A((3, 4)), A((3, 4)))], np.allclose, grad=False)


def _to_copy(function: Any) -> None:
    source = weft.tensor([1.7, -1.7, 0.0])
    assert function(source, dtype=weft.int64).tolist() == [1, -1, 0]
    assert function(source, dtype=weft.bool).tolist() == [True, True, False]
    assert function(source, dtype=weft.float64).dtype == weft.float64


case("_to_copy", check=_to_copy, grad=False)
case("empty_strided", check=lambda f: _strided(f([2, 3], [1, 2])), grad=False)
case("new_empty", check=lambda f: _made(f(weft.ones(1, dtype=weft.float64), [2, 3]), None), grad=False)
case("new_zeros", check=lambda f: _made(f(weft.ones(1, dtype=weft.float64), [2, 3]), 0), grad=False)
case("new_ones", check=lambda f: _made(f(weft.ones(1, dtype=weft.float64), [2, 3]), 1), grad=False)
case("new_full", check=lambda f: _made(f(weft.ones(1, dtype=weft.float64), [2, 3], 2.5), 2.5), grad=False)
case("scalar_tensor", [S(2.5)], lambda v: np.array(v, "float64"), dtypes=("float32",), grad=False)


def _strided(tensor: Any) -> None:
    assert (tuple(tensor.shape), tensor.stride()) == ((2, 3), (1, 2))


def _made(tensor: Any, value: float | None) -> None:
    assert tuple(tensor.shape) == (2, 3)
    assert tensor.dtype == weft.float64
    if value is not None:
        assert tensor.tolist() == [[value] * 3] * 2


def _fill_tensor(function: Any) -> None:
    target = weft.zeros(3)
    assert function(target, weft.tensor(2.5)) is target
    assert target.tolist() == [2.5] * 3


case("fill_.Tensor", check=_fill_tensor, grad=False)


# ---- conversion ----
def _to(*args: Any, **kwargs: Any) -> Any:
    def check(function: Any) -> None:
        source = weft.tensor([1.7, -1.7])
        result = function(source, *args, **kwargs)
        assert result.dtype == weft.float64
        np.testing.assert_allclose(result.numpy(), source.numpy())
        assert function(result, *args, **kwargs) is result

    return check


_DOUBLE = weft.ones(1, dtype=weft.float64)
case("to.dtype", check=_to(weft.float64), grad=False)
case("to.device", check=_to("cpu", weft.float64), grad=False)
case("to.dtype_layout", check=_to(dtype=weft.float64), grad=False)
case("to.other", check=_to(_DOUBLE), grad=False)
case("type_as", check=_to(_DOUBLE), grad=False)
