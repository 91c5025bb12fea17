"""`compile`, and what programs for compilers ask: is_compiling, disable and the like.

`weft.compile` scripts what it is given: docs/differences.md says how that differs from PyTorch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from weft._runtime import lazy as _lazy
from weft._runtime.exports import list_own as _list_own
from weft.jit.markers import ignore

_optimized_module = _lazy.module("weft.compiler.optimized_module")

_BACKENDS = ("inductor", "eager", "aot_eager")
_default_backend = "inductor"


def is_compiling() -> bool:
    """False: a program is never in the middle of its own compilation (see jit.is_scripting)."""
    return False


def is_dynamo_compiling() -> bool:
    """False."""
    return False


def is_exporting() -> bool:
    """False."""
    return False


def list_backends(exclude_tags: Any = None) -> list[str]:
    """The names that `compile` takes as its backend."""
    return list(_BACKENDS)


def get_default_backend() -> str:
    """The backend of `compile` where the call names none: "inductor", unless another is set.

    >>> weft.compiler.get_default_backend()
    'inductor'
    """
    return _default_backend


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Sets the backend of calls of `compile` that name none; None: "inductor" again.

    Raises RuntimeError for what `compile` does not take.
    """
    global _default_backend
    _default_backend = "inductor" if backend is None else _known(backend)


def _known(backend: str | Callable[..., Any]) -> str:
    if callable(backend):
        raise RuntimeError(
            f"compile: expected a backend of {', '.join(_BACKENDS)}, got a function; "
            "there are no graphs of torch.fx to give to it"
        )
    if backend not in _BACKENDS:
        raise RuntimeError(f"compile: expected a backend of {list(_BACKENDS)}, got {backend!r}")
    return backend


def reset() -> None:
    """Nothing to do: compiled functions keep no caches that a new shape or type could spoil."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to do without CUDA graphs."""


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keeps a function as Python: programs call it in the interpreter (weft.jit.ignore).

    >>> @weft.compiler.disable
    ... def f(x: weft.Tensor) -> weft.Tensor:
    ...     return x + 1
    >>> f(weft.zeros(1))
    tensor([1.])
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if inspect.ismethod(fn):  # takes no attributes
        fn = functools.update_wrapper(functools.partial(fn), fn)
    fn._weft_compile_disabled = True
    return ignore(fn) if inspect.isfunction(fn) else fn


def allow_in_graph(fn: Any) -> Any:
    """fn, unchanged."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """fn, unchanged: it is called each time."""
    return fn


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function or module that runs as a program of weft.jit, compiled at its first call.

    What weft.jit cannot script runs in Python, with the same results, after a UserWarning that says
    why; with fullgraph=True the error is raised instead. backend "eager" or "aot_eager",
    disable=True: runs in Python; None: that of set_default_backend. A module gives an
    OptimizedModule, whose `_orig_mod` it is. `dynamic`, `mode` and `options` have no effect:
    programs take every shape.

    >>> @weft.compile
    ... def f(x):
    ...     return (x * x).sum()
    >>> f(weft.tensor([1.0, 2.0]))
    tensor(5.)
    """
    if model is None:
        options_given = locals().copy()
        del options_given["model"]
        return lambda given: compile(given, **options_given)
    backend = get_default_backend() if backend is None else _known(backend)
    if disable or backend != "inductor" or getattr(model, "_weft_compile_disabled", False):
        return model
    return _optimized_module.compiled(model, fullgraph)


_list_own(vars())
