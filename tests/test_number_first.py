"""A number before a tensor, in functions and Python's operators: values, dtypes, gradients."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from libraries import both

import weft

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "subtract": operator.sub,
    "mul": operator.mul,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
}
DIVISION: dict[str, Callable[[Any, Any], Any]] = dict.fromkeys(
    ("div", "divide", "true_divide"), operator.truediv
)
BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
}
FUNCTIONS = ARITHMETIC | DIVISION | BITWISE

# number, dtype of the tensor, dtype of the result
PROMOTIONS: list[tuple[complex, str, str]] = [
    (7, "uint8", "uint8"),
    (7, "int32", "int32"),
    (7, "int64", "int64"),
    (7, "bfloat16", "bfloat16"),
    (7.5, "int32", "float32"),
    (7.5, "bfloat16", "bfloat16"),
    (7.1, "float64", "float64"),
]


@both
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_dtypes(name: str, shape: tuple[int, ...], lib: Any) -> None:
    function = FUNCTIONS[name]
    for number, given, made in PROMOTIONS:
        integral = isinstance(number, int) and "int" in given
        if name in BITWISE and not integral:
            continue
        x = lib.full(shape, 2, dtype=getattr(lib, given))
        for result in (getattr(lib, name)(number, x), function(number, x)):
            dtype = "float32" if name in DIVISION and integral else made
            assert result.dtype == getattr(lib, dtype), (number, given)
            digits = 2 if dtype == "bfloat16" else 12 if dtype == "float64" else 6
            worst = (result.double() - function(number, 2)).abs().max().item()
            assert worst <= 10.0 ** -(digits - 1), (number, given, result)


@both
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_complex_numbers(name: str, lib: Any) -> None:
    function = FUNCTIONS[name]
    for given, made in (
        ("int32", "complex64"),
        ("float32", "complex64"),
        ("float64", "complex128"),
    ):
        result = getattr(lib, name)(3 + 1j, lib.full((2,), 2, dtype=getattr(lib, given)))
        assert result.dtype == getattr(lib, made)
        assert result.tolist() == [function(3 + 1j, 2)] * 2


@both
def test_bools(lib: Any) -> None:
    flags, counts = lib.tensor([True, False]), lib.tensor([2, 3], dtype=lib.int32)
    assert lib.add(True, flags).tolist() == [True, True]
    assert lib.bitwise_xor(True, flags).tolist() == [False, True]
    assert lib.mul(True, counts).dtype == lib.int32
    assert lib.bitwise_and(True, counts).tolist() == [0, 1]
    with pytest.raises((RuntimeError, TypeError)):
        lib.remainder(True, flags)


@both
def test_other_arguments(lib: Any) -> None:
    x = lib.tensor([2.0, 4.0])
    assert lib.add(1, x, alpha=3).tolist() == [7, 13]
    assert lib.sub(1, x, alpha=3).tolist() == [-5, -11]
    assert lib.div(-7, x, rounding_mode="floor").tolist() == [-4, -2]
    assert lib.div(-7, x, rounding_mode="trunc").tolist() == [-3, -1]
    out = lib.zeros(2)
    assert lib.mul(2.5, x, out=out) is out and out.tolist() == [5, 10]


@both
def test_gradients(lib: Any) -> None:
    for name, slope in (("add", 1), ("sub", -1), ("mul", 3), ("div", -0.75)):
        x = lib.tensor([2.0], requires_grad=True)
        getattr(lib, name)(3, x).backward(lib.ones(1))
        assert x.grad.tolist() == [slope], name


@both
def test_traced(lib: Any) -> None:
    traced = lib.jit.trace(lambda x: lib.add(1, lib.remainder(7, x)), (lib.tensor([2, 3]),))
    assert traced(lib.tensor([4, 5])).tolist() == [4, 3]


@both
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmod", "atan2", "eq", "lt", "hypot"])
def test_functions_of_tensors_refuse_it(name: str, lib: Any) -> None:
    with pytest.raises(TypeError):
        getattr(lib, name)(1, lib.ones(2))


def test_a_number_beyond_the_dtype() -> None:
    remainder: Any = weft.remainder
    with pytest.raises(RuntimeError, match=r"remainder: .*1000"):
        remainder(1000, weft.tensor([2], dtype=weft.uint8))


def test_the_stub_says_so() -> None:
    stub = Path(weft.__file__).with_name("_C.pyi").read_text(encoding="utf-8")
    names = {"add", "sub", "mul", "div", "floor_divide", "remainder"}
    names |= {f"bitwise_{name}" for name in ("and", "or", "xor")}
    told = set(re.findall(r"^def (\w+)\(input: Tensor \| _Number,", stub, re.MULTILINE))
    assert told == names
    assert "    def add(self, other: Tensor, *" in stub  # of a method nothing changes
