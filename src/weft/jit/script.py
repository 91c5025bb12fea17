"""weft.jit.script: Python functions, modules and classes to programs.

Programs of functions that another process has compiled are found on disk (weft.jit.cache). The
compiler is imported for what is not there.
"""

from __future__ import annotations

import functools
import sys
import types as python_types
from typing import Any

from weft._runtime import lazy
from weft.jit.cache import cached_programs as cache
from weft.jit.cache.walk import is_module
from weft.jit.script_function import DEFAULT_NAMES, CachedFunction, ScriptFunction

# The compiler. A process that finds its programs on disk does without it.
scripting = lazy.module("weft.jit.scripting")
textwrap = lazy.module("textwrap")  # few texts need it, and it compiles patterns

_enabled = True


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Compiles a function, a module, or a class.

    A function gives a ScriptFunction, a module a RecursiveScriptModule of the same parameters, a
    class itself, now usable in programs. RuntimeError (FrontendError) for what the language does
    not have: it names the place, what was expected and found, and what to write instead.
    """
    if not _enabled or isinstance(obj, ScriptFunction):
        return obj
    obj = _prepared(obj)
    known = vars(obj).get("_weft_script_function") if _is_plain(obj) else None
    if isinstance(known, CachedFunction):
        return known
    extra = _locals_of_caller(1 + _frames_up)
    is_cached = known is None and (_is_plain(obj) or is_module(obj))
    cached = cache.of(obj, extra) if is_cached else None
    known = {} if cached is None or is_module(obj) else cached.names()
    if cached is None or not known:
        return scripting.script(obj, extra, cached)

    def compile() -> Any:
        with scripting.LOCK:  # another thread may have been faster
            if found._compiled is None:
                vars(obj).pop("_weft_script_function", None)
                found._compiled = scripting.script(obj, extra, cached)
                obj._weft_script_function = found
            return found._compiled

    ((name, doc),) = known.items()
    found = CachedFunction(cached, name, doc, obj, compile)
    obj._weft_script_function = found
    return found


def _prepared(module: Any) -> Any:
    """What an object says shall be compiled in its place, by its method __prepare_scriptable__."""
    if hasattr(type(module), "__prepare_scriptable__"):
        module = module.__prepare_scriptable__()
    is_made = is_module(module) and "_kinds" in vars(module)  # or a class forgot super().__init__()
    for name, child in list(module.named_children()) if is_made else ():
        instead = _prepared(child)
        if instead is not child:
            setattr(module, name, instead)
    return module


def _is_plain(obj: Any) -> bool:
    """Whether it is a function without a decorator or mark that the compiler knows."""
    marks = vars(obj) if isinstance(obj, python_types.FunctionType) else {"__wrapped__": None}
    return not any(m == "__wrapped__" or m.startswith(("_weft_jit", "_weft_mode")) for m in marks)


def _locals_of_caller(depth: int) -> dict[str, Any]:
    """The local variables `depth` frames above the caller: where script() was called."""
    try:
        frame = sys._getframe(depth + 1)
    except ValueError:
        return {}
    return dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}


def _unindented(source: str) -> str:
    if not source.lstrip("\n").startswith((" ", "\t")):
        return source
    return textwrap.dedent(source)


class CompilationUnit:
    """Functions compiled from a text of Python.

    >>> unit = CompilationUnit("def f(x: int) -> int:\\n    return x + 1\\n")
    >>> unit.f(2)
    3
    """

    def __init__(self, source: str | None = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, ScriptFunction] = {}
        if source is not None:
            self.define(source, _frames_up=_frames_up + 1)

    def define(self, source: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Compiles the functions of the text; they may call those that came before them."""
        frame = sys._getframe(1 + _frames_up)
        text = _unindented(source) + "\n"
        scopes = (frame.f_locals, frame.f_globals, DEFAULT_NAMES)
        cached = None if self._functions else cache.of(text, *scopes)
        names = {} if cached is None else cached.names()
        if cached is None or not names:
            return scripting.define(text, scopes, self._functions, cached)
        made: dict[str, Any] = {}

        def compile(name: str) -> Any:
            with scripting.LOCK:
                if not made:
                    scripting.define(text, scopes, made, cached)
            return made[name]

        for name, doc in names.items():
            self._functions[name] = CachedFunction(
                cached.inner(name), f"__torch__.{name}", doc, None, functools.partial(compile, name)
            )

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"CompilationUnit: expected one of {list(functions)}, got {name!r}")

    def get_functions(self) -> list[ScriptFunction]:
        """All functions, in order."""
        return list(self._functions.values())


__all__ = ["CompilationUnit", "ScriptFunction", "script"]
