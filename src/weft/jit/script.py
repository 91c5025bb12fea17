"""weft.jit.script: Python functions, modules and classes to programs."""

from __future__ import annotations

import ast
import enum
import sys
import types as python_types
from typing import TYPE_CHECKING, Any

from weft.jit.execution import LOCK
from weft.jit.frontend.language import functions as frontend
from weft.jit.frontend.language.ignored import mode_of
from weft.jit.frontend.language.overloads import overloads_of
from weft.jit.frontend.source.code import Code, unwrapped
from weft.jit.frontend.source.errors import FrontendError, from_outside, shortened
from weft.jit.frontend.source.refused import refuse
from weft.jit.frontend.source.resolver import Resolver, is_module, locals_of_caller
from weft.jit.frontend.types.parameters import Compiled
from weft.jit.ir.fresh_stack import Later
from weft.jit.script_function import DEFAULT_NAMES, ScriptFunction

if TYPE_CHECKING:
    import textwrap

    from weft.jit import script_class, script_containers, script_module
else:
    script_class = Later("weft.jit.script_class")
    script_containers = Later("weft.jit.script_containers")
    script_module = Later("weft.jit.script_module")
    textwrap = Later("textwrap")

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
    extra = locals_of_caller(1 + _frames_up)
    try:
        with LOCK, from_outside():
            return _script(obj, extra)
    except FrontendError as error:
        raise shortened(error) from error.__cause__


def _script(obj: Any, extra: dict[str, Any]) -> Any:
    if is_module(obj):
        is_scripted = isinstance(obj, script_module.RecursiveScriptModule)
        return obj if is_scripted else script_module.script_module(obj, extra)
    if isinstance(obj, type):
        return script_class.script_class(obj, extra)
    if isinstance(obj, dict):
        return script_containers.ScriptDict(obj)
    if isinstance(obj, list):
        return script_containers.ScriptList(obj)
    if isinstance(obj, tuple):
        raise RuntimeError("script: expected a function, module or class, got a tuple")
    function = obj if not callable(obj) or _has_modes(obj) else unwrapped(obj)
    if isinstance(function, python_types.MethodType):
        raise RuntimeError(
            f"script: expected a function, got the method {function.__qualname__}; "
            "script the module, with the method marked @weft.jit.export"
        )
    if not isinstance(function, python_types.FunctionType):
        raise RuntimeError(
            f"script: expected a function, module or class, got {type(obj).__name__}"
        )
    return _script_function(function, extra)


def _has_modes(obj: Any) -> bool:
    return isinstance(obj, python_types.FunctionType) and bool(frontend.decorated_modes(obj))


def _script_function(function: Any, extra: dict[str, Any]) -> ScriptFunction:
    if overloads_of(function):
        raise RuntimeError(
            f"script: expected a function with one signature, got {function.__qualname__} with "
            "overloads; call it from another function"
        )
    if mode_of(function) in ("ignore", "unused"):
        return function
    known = getattr(function, "_weft_script_function", None)
    if isinstance(known, ScriptFunction) and known._weft_compiled.error is None:
        return known
    compiled = _compile(function, extra)
    made = ScriptFunction(compiled, function)
    function._weft_script_function = made
    return made


def _compile(function: Any, extra: dict[str, Any]) -> Compiled:
    try:
        return frontend.compile_function(function, extra)
    except FrontendError:
        frontend.forget(function)
        raise


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
        resolver = Resolver(self._functions, frame.f_locals, frame.f_globals, DEFAULT_NAMES)
        try:
            with LOCK, from_outside():
                self._define(_unindented(source) + "\n", resolver)
        except FrontendError as error:
            raise shortened(error) from error.__cause__

    def _define(self, source: str, resolver: Resolver) -> None:
        code = Code(source, "<string>", 1)
        for node in code.tree.body:
            if not isinstance(node, ast.FunctionDef):
                refuse(code, node)
            compiled = frontend.compile_definition(
                node, code, resolver, f"__torch__.{node.name}", {},
                lambda made, name=node.name: self._started(name, made),
            )  # fmt: skip
            self._functions[node.name] = ScriptFunction(compiled)

    def _started(self, name: str, compiled: Compiled) -> None:
        self._functions[name] = ScriptFunction(compiled)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"CompilationUnit: expected one of {list(functions)}, got {name!r}")

    def get_functions(self) -> list[ScriptFunction]:
        """All functions, in order."""
        return list(self._functions.values())


__all__ = ["CompilationUnit", "ScriptFunction", "enum", "script"]
