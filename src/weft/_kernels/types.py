"""Element types of the kernel language, in the order of csrc/core/dtype.h."""

from __future__ import annotations

from typing import NamedTuple


class Float8(NamedTuple):
    """What floats of one byte differ in, as Float8Format of csrc/core/dtype.h."""

    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int
    negative_zero: bool


class DType:
    """One element type. There is one object of each, so that they compare quickly.

    `name` is the C++ enumerator, `kind` one of bool, int, uint, float, complex, `size` the bytes of
    one element in memory, `float8` the format of a float of one byte.
    """

    __slots__ = ("bits", "float8", "kind", "name", "python_name", "size")

    def __init__(
        self, name: str, kind: str, bits: int, python_name: str, float8: Float8 | None = None
    ) -> None:
        self.name, self.kind, self.bits, self.python_name = name, kind, bits, python_name
        self.float8 = float8
        self.size = max(bits, 8) // 8

    @property
    def real(self) -> DType:
        """The type of the parts of a complex type; any other type is its own."""
        return {32: F16, 64: F32, 128: F64}[self.bits] if self.kind == "complex" else self

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def __repr__(self) -> str:
        return self.name


BOOL = DType("Bool", "bool", 1, "bool")
U8 = DType("U8", "uint", 8, "uint8")
I8 = DType("I8", "int", 8, "int8")
I16 = DType("I16", "int", 16, "int16")
I32 = DType("I32", "int", 32, "int32")
I64 = DType("I64", "int", 64, "int64")
U16 = DType("U16", "uint", 16, "uint16")
U32 = DType("U32", "uint", 32, "uint32")
U64 = DType("U64", "uint", 64, "uint64")
F16 = DType("F16", "float", 16, "float16")
BF16 = DType("BF16", "float", 16, "bfloat16")
F32 = DType("F32", "float", 32, "float32")
F64 = DType("F64", "float", 64, "float64")
C64 = DType("C64", "complex", 64, "complex64")
C128 = DType("C128", "complex", 128, "complex128")
C32 = DType("C32", "complex", 32, "complex32")
FLOAT8 = tuple(
    DType(name.upper().replace("FLOAT", "F").replace("_", ""), "float", 8, name, Float8(*format))
    for name, format in (
        ("float8_e4m3fn", (3, 7, 0x7E, 0x7E, 0x7F, True)),
        ("float8_e5m2", (2, 15, 0x7B, 0x7C, 0x7F, True)),
        ("float8_e4m3fnuz", (3, 8, 0x7F, 0x80, 0x80, False)),
        ("float8_e5m2fnuz", (2, 16, 0x7F, 0x80, 0x80, False)),
    )
)

DTYPES = (BOOL, U8, I8, I16, I32, I64, U16, U32, U64, F16, BF16, F32, F64, C64, C128, *FLOAT8, C32)
# Types arithmetic happens in: smaller floats are converted to float32, complex32 to complex64.
COMPUTE_DTYPES = tuple(d for d in DTYPES if d.kind not in ("float", "complex") or d.real.bits >= 32)
# "complex" promotes above "float" above integers above bool.
CATEGORY = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}

_BY_NAME = {d.name: d for d in DTYPES} | {d.python_name: d for d in DTYPES}


def dtype(name: str | DType) -> DType:
    """The type called `name`: "F32" or "float32"."""
    if isinstance(name, DType):
        return name
    if name not in _BY_NAME:
        raise ValueError(f"dtype: expected one of {', '.join(_BY_NAME)}, got {name!r}")
    return _BY_NAME[name]


def common(a: DType, b: DType) -> DType:
    """The type an operation on `a` and `b` happens in: the higher category, then the wider type."""
    if a == b:
        return a
    low, high = sorted((a, b), key=lambda d: (CATEGORY[d.kind], d.bits))
    if high.kind == "complex" and low.real == F64:
        return C128
    return high


def truth_of(d: DType) -> DType:
    """The type of a test over elements of `d`: bool, but uint8 for uint8, as in PyTorch."""
    return U8 if d == U8 else BOOL


def min_value(d: DType) -> int | float:
    """The least value of a bool, integer (smallest) or floating (-inf) type."""
    if d.kind == "float":
        return float("-inf")
    return -(1 << (d.bits - 1)) if d.kind == "int" else 0


def max_value(d: DType) -> int | float:
    """The greatest value of a bool, integer or floating (inf) type."""
    if d.kind == "float":
        return float("inf")
    return (1 << (d.bits - (d.kind == "int"))) - 1
