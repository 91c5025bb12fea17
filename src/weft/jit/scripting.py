"""From Python functions, modules and classes to programs, where the compiler is needed."""

from __future__ import annotations

import ast
import types as python_types
from collections.abc import Mapping
from typing import Any

from weft._runtime import lazy
from weft.jit import script_class
from weft.jit.cache import reads
from weft.jit.cache.cached_programs import CachedPrograms
from weft.jit.cache.walk import is_module
from weft.jit.compiled_function import CompiledFunction
from weft.jit.execution import LOCK
from weft.jit.frontend.language import functions as frontend
from weft.jit.frontend.language.generic import overloads_of
from weft.jit.frontend.language.objects import mode_of
from weft.jit.frontend.source.code import Code, unwrapped
from weft.jit.frontend.source.errors import FrontendError, from_outside, refuse, shortened
from weft.jit.frontend.source.resolver import Resolver
from weft.jit.frontend.types.names import is_written
from weft.jit.frontend.types.signatures import Compiled

script_containers = lazy.module("weft.jit.script_containers")
script_module = lazy.module("weft.jit.script_module")


def script(obj: Any, extra: dict[str, Any], cached: CachedPrograms | None) -> Any:
    """What weft.jit.script gives for an object; `extra` are the names where it was called. Programs
    of a function are `kept` if the walk has met all that the compiler read."""
    try:
        with LOCK, from_outside(), reads.recorded(None if cached is None else cached.walk) as seen:
            made = _script(obj, extra, cached)
            if cached is not None and isinstance(made, CompiledFunction) and seen.are_met():
                made.keep(cached)
                cached.save_names({made.qualified_name: made.__doc__ or ""})
            return made
    except FrontendError as error:
        raise shortened(error) from error.__cause__


def script_object(obj: Any, extra: dict[str, Any], cached: CachedPrograms | None) -> Any:
    """What weft.jit.script gives for a module, a class or a container."""
    if is_module(obj):
        is_scripted = isinstance(obj, script_module.RecursiveScriptModule)
        return obj if is_scripted else script_module.script_module(obj, extra, cached)
    if isinstance(obj, type):
        return script_class.script_class(obj, extra)
    if isinstance(obj, dict):
        return script_containers.ScriptDict(obj)
    return script_containers.ScriptList(obj)


def _script(obj: Any, extra: dict[str, Any], cached: CachedPrograms | None) -> Any:
    if is_module(obj) or isinstance(obj, type | dict | list):
        return script_object(obj, extra, cached)
    if isinstance(obj, tuple):
        raise RuntimeError("script: expected a function, module or class, got a tuple")
    function = obj if not callable(obj) or _has_modes(obj) else unwrapped(obj)
    if isinstance(function, python_types.MethodType):
        raise RuntimeError(
            f"script: expected a function, got the method {function.__qualname__}; "
            "script the module, with the method marked @weft.jit.export"
        )
    if not isinstance(function, python_types.FunctionType):
        if is_written(type(obj)):  # an object: programs share it once its class is compiled
            script_object(type(obj), extra, cached)
            return obj
        raise RuntimeError(
            f"script: expected a function, module or class, got {type(obj).__name__}"
        )
    return _script_function(function, extra)


def _has_modes(obj: Any) -> bool:
    return isinstance(obj, python_types.FunctionType) and bool(frontend.decorated_modes(obj))


def _script_function(function: Any, extra: dict[str, Any]) -> Any:
    if overloads_of(function):
        raise RuntimeError(
            f"script: expected a function with one signature, got {function.__qualname__} with "
            "overloads; call it from another function"
        )
    if mode_of(function) in ("ignore", "unused"):
        return function
    known = getattr(function, "_weft_script_function", None)
    if isinstance(known, CompiledFunction) and known._weft_compiled.error is None:
        return known
    compiled = _compile(function, extra)
    made = CompiledFunction(compiled, function)
    function._weft_script_function = made
    return made


def _compile(function: Any, extra: dict[str, Any]) -> Compiled:
    try:
        return frontend.compile_function(function, extra)
    except FrontendError:
        frontend.forget(function)
        raise


def define(
    source: str,
    scopes: tuple[Mapping[str, Any], ...],
    functions: dict[str, Any],
    cached: CachedPrograms | None,
) -> None:
    """Compiles the functions of a text; they may call those that came before them."""
    try:
        with LOCK, from_outside(), reads.recorded(None if cached is None else cached.walk) as seen:
            known = len(functions)
            resolver = Resolver(functions, *reads.bindings_of(None), *scopes)
            _define(source, resolver, functions)
            if cached is not None and not known and seen.are_met():
                _keep(functions, cached)
    except FrontendError as error:
        raise shortened(error) from error.__cause__


def _define(source: str, resolver: Resolver, functions: dict[str, Any]) -> None:
    code = Code(source, "<string>", 1)

    def start(name: str, compiled: Compiled) -> None:
        functions[name] = CompiledFunction(compiled)
        reads.began(functions[name])

    for node in code.tree.body:
        if not isinstance(node, ast.FunctionDef):
            refuse(code, node)
        compiled = frontend.compile_definition(
            node, code, resolver, f"__torch__.{node.name}", {},
            lambda made, name=node.name: start(name, made),
        )  # fmt: skip
        functions[node.name] = CompiledFunction(compiled)


def _keep(functions: Mapping[str, Any], cached: CachedPrograms) -> None:
    for name, function in functions.items():
        function.keep(cached.inner(name))
    cached.save_names({name: function.__doc__ or "" for name, function in functions.items()})
