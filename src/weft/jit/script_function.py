"""Compiled functions as Python objects. What is here needs no compiler: a function that another
process has compiled runs without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit import native
from weft.jit.cache.cached_programs import FIRST, GRADIENTS, INFERENCE, CachedPrograms

if TYPE_CHECKING:
    from weft.jit.ir import Function


class ScriptFunction:
    """A compiled function. The program is made when it is first called.

    Attributes: name, graph (as the frontend made it), inlined_graph, schema, code.
    """

    _weft_key: str | None = None  # of its programs on disk

    def __init__(self, name: str, doc: str, python: Any, run: Any) -> None:
        self._python = python
        self._run = run  # None until the first call
        self.qualified_name = name
        self.__name__ = getattr(python, "__name__", name.rpartition(".")[2])
        self.__qualname__ = getattr(python, "__qualname__", self.__name__)
        self.__doc__ = doc or None
        self.__module__ = getattr(python, "__module__", "__main__")
        if python is not None:
            self.__wrapped__ = python

    @property
    def name(self) -> str:
        """The name without its module."""
        return self.qualified_name.rpartition(".")[2]

    if TYPE_CHECKING:  # each kind has them in its own way

        @property
        def function(self) -> Function: ...

        @property
        def inlined_graph(self) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = self._run
        if run is None:
            run = self._run = self._executable()
        return run(*args, **kwargs)

    def _executable(self) -> Callable[..., Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<weft.jit.ScriptFunction {self.qualified_name}>"

    def __reduce__(self) -> Any:
        raise RuntimeError(
            f"pickle: expected an object that is no program, got ScriptFunction {self.name}; "
            "script it again from its source"
        )


class CachedOrCompiled:
    """The programs of a function that were kept, and those that `compile` makes (an object of
    weft.jit.execution.Programs) for calls that there are none for."""

    def __init__(self, cached: CachedPrograms, compile: Callable[[], Any]) -> None:
        self._cached, self._compile = cached, compile
        self._was_called = False

    def choose(self, records: bool, is_large: bool) -> tuple[Any, bool]:
        """As weft.jit.execution chooses, among the programs that there are."""
        is_first, self._was_called = not self._was_called, True
        optimized = self._cached.entry(GRADIENTS if records else INFERENCE)
        first = self._cached.entry(FIRST) if is_first and not is_large else None
        found = optimized or first
        if found is None:
            programs = self._compile()
            programs.was_called = programs.was_called or not is_first
            return programs.choose(records, is_large)
        if found is optimized:
            native.start()
        found.run._source = lambda: self._compile().function
        return found.run, found is optimized


class CachedFunction(ScriptFunction):
    """A function whose programs were found on disk. `compile` gives it compiled: for what a program
    does not tell, such as its graph, and for calls of a kind that it has no program for."""

    def __init__(
        self, cached: CachedPrograms, name: str, doc: str, python: Any, compile: Callable[[], Any]
    ) -> None:
        programs = CachedOrCompiled(cached, lambda: self.compiled().programs)
        super().__init__(name, doc, python, _C.JitDispatcher(programs.choose))
        self._weft_key, self._compile = cached.key, compile
        self._compiled: Any = None

    def compiled(self) -> Any:
        """The function as the compiler makes it."""
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"ScriptFunction has no attribute {name!r}", name=name)
        return getattr(self.compiled(), name)


# What a text knows besides the names of types.
DEFAULT_NAMES = {"torch": weft, "weft": weft, "Tensor": Tensor}
