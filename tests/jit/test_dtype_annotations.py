"""Parameters that are dtypes: PyTorch's programs write int for them."""

from __future__ import annotations

from itertools import product

import pytest

import weft
from weft import Tensor


def made(x: Tensor, dtype: int | None = None) -> Tensor:
    return weft.zeros([2], dtype=dtype) + x.sum(dtype=dtype)


def filled(x: Tensor, out_dtype: int | None) -> Tensor:
    if out_dtype is None:
        out_dtype = x.dtype
    return x.to(out_dtype)


def plain(x: Tensor, dtype: int) -> Tensor:
    return x.softmax(-1, dtype=dtype)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        *product([made, filled, plain], [weft.float64, weft.float32]),
        (made, None),
        (filled, None),
    ],
)
def test_dtypes_that_are_written_as_int(function, dtype):
    x = weft.ones(2)
    found = weft.jit.script(function)(x, dtype)
    assert found.dtype == (dtype or weft.float32) and weft.equal(found, function(x, dtype))


def test_other_ints_stay_ints():
    def repeated(x: Tensor, dtypes: int) -> Tensor:
        return x * (dtypes + 1)

    assert weft.jit.script(repeated)(weft.ones(1), 2).item() == 3


def test_dtypes_are_given_for_ints():
    """Archives say int for them; a type of Python is none."""

    def number(n: int, m: int | None = None) -> int:
        return n * 100 + (7 if m is None else m)

    program = weft.jit.script(number)
    assert program(weft.float64) == 707 and program(2, weft.bfloat16) == 215
    with pytest.raises(TypeError, match=r"expected value of type int for argument 'n'"):
        program(float)

    def kind(x: int | weft.dtype | Tensor) -> str:
        return "int" if isinstance(x, int) else "tensor" if isinstance(x, Tensor) else "dtype"

    told = weft.jit.script(kind)
    assert (told(1), told(weft.float32), told(weft.ones(1))) == ("int", "dtype", "tensor")
