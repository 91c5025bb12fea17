"""What programs set of torch.jit's compiler. weft's has one program for all shapes and no fuser to
choose, so these only have to be there and to take the same arguments."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from weft.jit.compiled_function import inlined
from weft.jit.markers import is_tracing
from weft.jit.module_methods import compiled_methods
from weft.jit.script import script

F = TypeVar("F", bound=Callable[..., Any])

# Errors of programs keep their class, so there is none that all of them have and others have not.
Error = Exception

_FUSERS = ("fuser0", "fuser1", "fuser2", "fuser3")
_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Remembers the strategy and gives the one before. Programs never compile again for another
    shape, so there is nothing that it limits.

    >>> set_fusion_strategy([("STATIC", 1)])
    [('STATIC', 2), ('DYNAMIC', 10)]
    >>> set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])
    [('STATIC', 1)]
    """
    global _strategy
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC") or not isinstance(depth, int):
            raise RuntimeError(
                "set_fusion_strategy: expected pairs of 'STATIC' or 'DYNAMIC' and an int, got "
                f"({kind!r}, {depth!r})"
            )
    before, _strategy = _strategy, list(strategy)
    return before


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context without effect: an optimised program gives the bits of the program as it stands."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A context without effect: there is one fuser."""
    if name not in _FUSERS:
        raise ValueError(f"fuser: expected one of {', '.join(_FUSERS)}, got {name!r}")
    yield


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing: weft does not use oneDNN."""


def onednn_fusion_enabled() -> bool:
    """False: weft does not use oneDNN."""
    return False


def export_opnames(m: Any) -> list[str]:
    """The operators that a compiled module or function calls, in alphabetical order.

    >>> import weft
    >>> export_opnames(weft.jit.script(lambda x: weft.relu(x) + 1))
    ['aten::add.Scalar', 'aten::relu']
    """
    compiled = [m] if hasattr(m, "function") else compiled_methods(m._jit_info).values()
    graphs = [inlined(each.function) for each in compiled if each.function is not None]
    nodes = [node for graph in graphs for node in graph.walk()]
    return sorted({node.kind for node in nodes if node.kind.startswith("aten::")})


def script_if_tracing(fn: F) -> F:
    """A decorator: while a trace is taken the function runs as a program, so that its loops and
    branches are in the trace; else it runs as it is.

    >>> import weft
    >>> @script_if_tracing
    ... def double_while_small(x):
    ...     while bool(x.sum() < 10):
    ...         x = x * 2
    ...     return x
    >>> traced = weft.jit.trace(lambda x: double_while_small(x), weft.ones(1))
    >>> traced(weft.ones(1) * 3), traced(weft.ones(1) * 20)
    (tensor([12.]), tensor([20.]))
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (script(fn) if is_tracing() else fn)(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


_script_if_tracing = script_if_tracing  # as torchvision calls it
