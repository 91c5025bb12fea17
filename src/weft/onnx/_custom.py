"""Mappings that programs add to the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
