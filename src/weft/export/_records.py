"""Shapes and dtypes of tensors as the records of exported programs have them.

The file format is that of PyTorch's `torch/_export/serde/schema.py`, version 8: JSON, in which a
value of one of several types is an object with one key that names the type ("as_int": 3).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._runtime import symbolic
from weft.serialization.errors import LoadError

#: dtypes by their numbers, which are not those of TorchScript
DTYPES = {
    number: getattr(_C, name)
    for number, name in {
        1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
        8: "float64", 9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16",
        28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
        32: "float8_e5m2fnuz", 34: "uint32", 35: "uint64",
    }.items()
    if hasattr(_C, name)
}  # fmt: skip
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
STRIDED = 7
MEMORY_FORMATS = {
    1: _C.contiguous_format,
    2: _C.channels_last,
    3: _C.channels_last_3d,
    4: _C.preserve_format,
}


#: what programs call besides operators
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        f"_operator.{name}": getattr(operator, name)
        for name in [
            "add",
            "and_",
            "eq",
            "floordiv",
            "ge",
            "getitem",
            "gt",
            "le",
            "lshift",
            "lt",
            "mod",
            "mul",
            "ne",
            "neg",
            "or_",
            "pos",
            "pow",
            "rshift",
            "sub",
            "truediv",
        ]
    },
    **{f"math.{name}": getattr(math, name) for name in ("ceil", "floor", "trunc")},
    "builtins.max": max,
    "builtins.min": min,
    **{
        f"torch.{name}": getattr(symbolic, name)
        for name in ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt"]
    },
}


_DAMAGED = (
    AssertionError, AttributeError, IndexError, KeyError, OverflowError, RecursionError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip


class Expression(NamedTuple):
    """A size that differs between calls: its formula over symbols, and its value in the example."""

    text: str
    hint: int | None

    def __str__(self) -> str:
        return self.text


Size = int | Expression


class TensorRecord(NamedTuple):
    """What a program knows of a tensor before it runs."""

    dtype: _C.dtype
    sizes: list[Size]
    strides: list[Size]
    offset: Size = 0
    requires_grad: bool = False
    device: str = "cpu"

    def example(self) -> Tensor | None:
        """A tensor on the device meta of the example's sizes; None where they are not known."""
        sizes, strides = (_hints(each) for each in (self.sizes, self.strides))
        if sizes is None or strides is None:
            return None
        return _C.empty_strided(sizes, strides, dtype=self.dtype, device="meta")

    def text(self) -> str:
        """As printed programs have it: f32[s0, 3]."""
        return f"{_SHORT.get(self.dtype, str(self.dtype))}[{', '.join(map(str, self.sizes))}]"


_SHORT = {
    getattr(_C, name): short
    for name, short in {
        "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
        "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8",
        "complex64": "c64", "complex128": "c128",
    }.items()
}  # fmt: skip


def _hints(sizes: list[Size]) -> list[int] | None:
    hints = [each.hint if isinstance(each, Expression) else each for each in sizes]
    known = [each for each in hints if each is not None]
    return known if len(known) == len(hints) else None


def record_of(tensor: Tensor) -> TensorRecord:
    """The record of a tensor that is there."""
    return TensorRecord(
        tensor.dtype, list(tensor.shape), list(tensor.stride()), tensor.storage_offset(),
        tensor.requires_grad, tensor.device.type,
    )  # fmt: skip


# From and to JSON ---------------------------------------------------------------------------------

_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)")
_NAME = re.compile(r"\b[su]\d+\b")


def read_size(given: Any) -> Size:
    """{"as_int": 3}, or a formula."""
    kind, value = read_union(given)
    if kind == "as_int":
        return expect(value, int)
    text = _SYMBOL.sub(r"\1", expect(value["expr_str"], str))
    hint = value.get("hint")
    return Expression(text, None if hint is None else expect(read_union(hint)[1], int))


def write_size(size: Size) -> dict[str, Any]:
    """As `read_size` reads it."""
    if not isinstance(size, Expression):
        return {"as_int": size}
    text = _NAME.sub(lambda found: f"Symbol('{found[0]}', positive=True, integer=True)", size.text)
    hint = None if size.hint is None else {"as_int": size.hint}
    return {"as_expr": {"expr_str": text, "hint": hint}}


def read_tensor(given: Any) -> TensorRecord:
    """A TensorMeta."""
    if given["layout"] != STRIDED:
        raise LoadError(f"load: expected dense tensors, got one of layout {given['layout']}")
    return TensorRecord(
        dtype_of(given["dtype"]),
        [read_size(each) for each in given["sizes"]],
        [read_size(each) for each in given["strides"]],
        read_size(given["storage_offset"]),
        expect(given["requires_grad"], bool),
        expect(given["device"]["type"], str),
    )


def write_tensor(record: TensorRecord) -> dict[str, Any]:
    """As `read_tensor` reads it."""
    return {
        "dtype": NUMBERS[record.dtype],
        "sizes": [write_size(each) for each in record.sizes],
        "requires_grad": record.requires_grad,
        "device": {"type": record.device, "index": None},
        "strides": [write_size(each) for each in record.strides],
        "storage_offset": write_size(record.offset),
        "layout": STRIDED,
    }


def dtype_of(number: Any) -> _C.dtype:
    """The dtype of a number. LoadError for one that weft has not."""
    found = DTYPES.get(number)
    if found is None:
        raise LoadError(f"load: expected the number of a dtype, got {number!r}")
    return found


@contextmanager
def refuses_damage(operation: str, wanted: str) -> Iterator[None]:
    """Errors that records of other kinds and structures cause, as LoadError."""
    try:
        yield
    except (LoadError, NotImplementedError):
        raise
    except _DAMAGED as error:
        raise LoadError(f"{operation}: expected {wanted}, got others ({error!r})") from error
    except RuntimeError as error:  # of an operator
        raise LoadError(str(error)) from error


def read_union(given: Any) -> tuple[str, Any]:
    """The type and the value of {"as_int": 3}."""
    if not isinstance(given, dict) or len(given) != 1:
        raise LoadError(f"load: expected a value with its type, got {str(given)[:80]}")
    return next(iter(given.items()))


def expect(value: Any, kind: type) -> Any:
    """The value, if it is of a type; else LoadError."""
    if type(value) is not kind:
        raise LoadError(f"load: expected {kind.__name__}, got {str(value)[:80]!r}")
    return value
