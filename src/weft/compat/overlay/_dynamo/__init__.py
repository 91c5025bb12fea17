"""torch._dynamo: what weft.compiler has, under the names that programs import."""

from __future__ import annotations

from typing import Any

from weft.compat.overlay._dynamo import config as config
from weft.compiler import allow_in_graph as allow_in_graph
from weft.compiler import assume_constant_result as assume_constant_result
from weft.compiler import compile as compile
from weft.compiler import disable as disable
from weft.compiler import is_compiling as is_compiling
from weft.compiler import list_backends as list_backends
from weft.compiler import reset as reset
from weft.compiler.optimized_module import OptimizedModule as OptimizedModule


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    **options: Any,
) -> Any:
    """What takes a function or module to weft.compile(it), with these arguments."""
    return compile(backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def graph_break(msg: str = "") -> None:
    """Nothing: a program that is compiled has one graph."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Nothing: programs take every shape."""


def mark_static(t: Any, index: Any = None, **options: Any) -> None:
    """Nothing: programs take every shape."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing: programs read their tensors where they are."""


maybe_mark_dynamic = mark_dynamic
