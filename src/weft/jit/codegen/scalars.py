"""Operators on ints, floats and bools that are instructions of their own."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from weft.jit import schemas
from weft.jit.ir import types as ty
from weft.jit.ir.record import record

_TYPES = {"Int": ty.INT, "Float": ty.FLOAT, "Bool": ty.BOOL}


@record(frozen=True)
class ScalarInstruction:
    """The instruction's name, and the types of its result and operands: "Int", "Float", "Bool"."""

    name: str
    result: str
    operands: tuple[str, ...]

    @property
    def gives_bool(self) -> bool:
        """Whether there are jumps on its result."""
        return self.result == "Bool" and len(self.operands) == 2

    def takes(self, types: list[ty.Type]) -> bool:
        """Whether operands of these types are what it works on, bit for bit."""
        return len(types) == len(self.operands) and all(
            _TYPES[operand] == t for operand, t in zip(self.operands, types)
        )


@cache
def scalar_instruction(kind: str) -> ScalarInstruction | None:
    """The instruction of an operator, if it has one."""
    try:
        found = schemas.of(kind).facts.get("scalar")
    except KeyError:
        return None
    if found is None:
        return None
    name, result, *operands = found
    return ScalarInstruction(name, result, tuple(operands))


def literal(operand: str, value: Any) -> int | None:
    """A constant as the wide word of an instruction; None where it is not of the operand's type."""
    if operand == "Float" and type(value) is float:
        return int.from_bytes(struct.pack("<d", value), "little", signed=True)
    if operand == "Int" and type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    if operand == "Bool" and type(value) is bool:
        return int(value)
    return None


def is_scalar_type(t: ty.Type) -> bool:
    """Whether values of a type are plain bits, which scalar registers hold."""
    return t in (ty.INT, ty.FLOAT, ty.BOOL, ty.NONE, ty.DEVICE, ty.DTYPE, ty.LAYOUT,
                 ty.MEMORY_FORMAT)  # fmt: skip
