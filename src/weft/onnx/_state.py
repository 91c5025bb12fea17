"""What needs no package: how a model is exported, what programs ask meanwhile, errors, and mappings
that programs add."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class TrainingMode(enum.Enum):
    """In which mode the modules of a model are exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What operators become; weft knows ONNX's alone."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_depth = 0


@contextmanager
def exporting() -> Iterator[None]:
    """Within, is_in_onnx_export() is True."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: what modules ask that do something else then.

    >>> weft.onnx.is_in_onnx_export()
    False
    """
    return _depth > 0


class OnnxExporterError(RuntimeError):
    """A program that cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """Operators that have no mapping to ONNX; the text names all of them, and where they stand."""


class SymbolicValueError(OnnxExporterError):
    """A mapping was given a value that it cannot express."""


class OnnxExporterWarning(UserWarning):
    """An export that may not be what was meant."""


CUSTOM: dict[str, dict[int, Callable[..., Any]]] = {}  # by name, then by the least opset


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int = 17
) -> None:
    """Gives the operator "namespace::name" a mapping, from an opset on: a function that is called
    with the graph and the operator's arguments, and makes nodes with `g.op("Add", x, y)`, or
    `g.op("domain::Name", x, axis_i=1)` outside of ONNX. It comes before weft's own.

    ValueError for a name without a namespace.

    >>> def cube(g, x):
    ...     return g.op("Mul", x, g.op("Mul", x, x))
    >>> weft.onnx.register_custom_op_symbolic("mylib::cube", cube, 17)
    >>> weft.onnx.unregister_custom_op_symbolic("mylib::cube", 17)
    """
    if not all(symbolic_name.partition("::")):
        raise ValueError(
            f"register_custom_op_symbolic: expected a name like 'mylib::op', got {symbolic_name!r}"
        )
    CUSTOM.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int = 17) -> None:
    """Takes back what register_custom_op_symbolic did for an opset."""
    CUSTOM.get(symbolic_name, {}).pop(opset_version, None)
