"""torch._dynamo: what weft.compiler has, under the names that programs import."""

from __future__ import annotations

from typing import Any

from weft.compat.overlay._dynamo import config
from weft.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from weft.compiler.optimized_module import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
]


def graph_break(msg: str = "") -> None:
    """Nothing: a program that is compiled has one graph."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Nothing: programs take every shape."""


def mark_static(t: Any, index: Any = None, **options: Any) -> None:
    """Nothing: programs take every shape."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing: programs read their tensors where they are."""


maybe_mark_dynamic = mark_dynamic
