"""Conversion between numbers, strings and tensors of one element."""

from __future__ import annotations

from functools import partial
from typing import Any

from weft._ops.builtins.reference import check_int
from weft._ops.builtins.rows import builtin as _builtin

builtin = partial(_builtin, family="conversion")


def _int(value: Any) -> int:
    return check_int(int(value))


def _item_int(value: Any) -> int:
    return check_int(int(value.item()))


builtin("Int.bool(bool a) -> int", "static_cast<int64_t>(a)", _int, "int(a).", ("total",))
builtin("Int.float(float a) -> int", "to_int(a)", _int, "int(a): towards zero.")
builtin("Int.Scalar(Scalar a) -> int", "scalar_to_int", _int, "int(a).")
builtin("Int.str(str a) -> int", "parse_int", _int, "int(a): a number in decimal digits.")
builtin("Int.Tensor(Tensor a) -> int", "tensor_to_int", _item_int, "int(a) of one element.")
builtin("Float.int(int a) -> float", "to_double(a)", float, "float(a).")
builtin("Float.bool(bool a) -> float", "static_cast<double>(a)", float, "float(a).", ("total",))
builtin("Float.Scalar(Scalar a) -> float", 'real_part("float", a)', float, "float(a).")
builtin("Float.str(str a) -> float", "parse_float", float, "float(a).")
builtin(
    "Float.Tensor(Tensor a) -> float", "tensor_to_float", lambda a: float(a.item()),
    "float(a) of one element.",
)  # fmt: skip
builtin("Bool.int(int a) -> bool", "a != 0", bool, "bool(a).", ("total",))
builtin("Bool.float(float a) -> bool", "a != 0", bool, "bool(a).", ("total",))
builtin(
    "Bool.Tensor(Tensor a) -> bool", "tensor_to_bool", lambda a: bool(a.item()),
    "bool(a) of one element.",
)  # fmt: skip

for _part in ("real", "imag"):
    builtin(
        f"prim::{_part}.complex(complex a) -> float", f"a.{_part}()",
        lambda a, part=_part: getattr(a, part), f"The {_part} part.",
    )  # fmt: skip
_REAL = ("int", "bool", "float")
builtin("Complex.Scalar(Scalar a) -> complex", "a.to_complex()", complex, "complex(a).")
for _a in _REAL:
    for _b in _REAL:
        builtin(
            f"Complex.{_a}_{_b}({_a} x, {_b} y) -> complex",
            "std::complex<double>(to_double(a), to_double(b))", complex, "complex(x, y).",
        )  # fmt: skip
    builtin(
        f"Complex.Tensor_{_a}(Tensor x, {_a} y) -> complex",
        "make_complex(tensor_item(a), Scalar(b))", lambda x, y: complex(x.item(), y),
        "complex(x, y).",
    )  # fmt: skip
    builtin(
        f"Complex.{_a}_Tensor({_a} x, Tensor y) -> complex",
        "make_complex(Scalar(a), tensor_item(b))", lambda x, y: complex(x, y.item()),
        "complex(x, y).",
    )  # fmt: skip
builtin(
    "Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex",
    "make_complex(tensor_item(a), tensor_item(b))", lambda a, b: complex(a.item(), b.item()),
    "complex(a, b).",
)  # fmt: skip

for _name, _type, _cpp, _function in (
    ("IntImplicit", "int", "implicit_int", _item_int),
    ("FloatImplicit", "float", "implicit_float", lambda a: float(a.item())),
    ("ComplexImplicit", "complex", "implicit_complex", lambda a: complex(a.item())),
    ("ScalarImplicit", "Scalar", "implicit_scalar", lambda a: a.item()),
):
    builtin(
        f"{_name}(Tensor a) -> {_type}", _cpp, _function,
        f"The number of a 0-d tensor, where a program uses the tensor as a {_type}.",
    )  # fmt: skip

builtin("str(t elem) -> str", "to_text(a)", str, "str(elem).")
builtin("repr(t elem) -> str", "repr(a)", repr, "repr(elem).")
builtin("hex(int i) -> str", "int_hex", hex, "hex(i).")
builtin("oct(int i) -> str", "int_oct", oct, "oct(i).")
builtin("bin(int i) -> str", "int_bin", bin, "bin(i).")


def _chr(i: int) -> str:
    if not 0 <= i <= 0x10FFFF:
        raise ValueError(f"chr() arg not in range(0x110000): got {i}")
    return chr(i)


builtin("chr(int i) -> str", "int_chr", _chr, "The character of that number in Unicode.")
builtin("ord(str string) -> int", "str_ord", ord, "The number of a character in Unicode.")
