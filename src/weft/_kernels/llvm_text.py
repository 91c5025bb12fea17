"""Types and constants as LLVM IR writes them."""

from __future__ import annotations

import functools
import struct

from .types import BOOL, F64, DType


@functools.cache
def llvm_type(d: DType, lanes: int = 1) -> str:
    """The type of values in registers: bool is i1, unsigned integers are like signed ones."""
    name = {"F32": "float", "F64": "double"}.get(d.name, f"i{d.bits}")
    return name if lanes == 1 else f"<{lanes} x {name}>"


def memory_type(d: DType, lanes: int = 1) -> str:
    return llvm_type(d, lanes) if d != BOOL else "i8" if lanes == 1 else f"<{lanes} x i8>"


def literal(value: bool | int | float, d: DType, lanes: int = 1) -> str:
    """A constant as an operand of an instruction."""
    if d.kind == "float":
        rounded = value if d == F64 else _to_f32(float(value))
        text = "0x" + struct.pack(">d", rounded).hex().upper()
    elif d == BOOL:
        text = "true" if value else "false"
    else:
        text = str(int(value))
    return text if lanes == 1 else f"splat ({llvm_type(d)} {text})"


def _to_f32(value: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
