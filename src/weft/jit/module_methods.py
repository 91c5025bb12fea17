"""Methods of compiled modules: compiled when they are first asked for, with a program for each."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

from weft import _C
from weft.jit.cache import reads
from weft.jit.execution import LOCK, Programs, executable
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.errors import from_outside
from weft.jit.frontend.types import modules
from weft.jit.frontend.types.class_methods import compile_as_method
from weft.jit.frontend.types.classes import annotations_of
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.frontend.types.signatures import Compiled
from weft.jit.frontend.values import Call, Simple
from weft.jit.script_function import CachedOrCompiled
from weft.nn.modules.module import Module


def compiled_method(info: ModuleInfo, name: str) -> Any:
    """The compiled method of that name."""
    known = info.compiled.get(name)
    if known is not None and known.error is None:
        return known
    with LOCK, from_outside(), _recorded(info):
        if name == "__hooked__":
            return _compile_hooked(info)
        found = info.methods.get(name, info.find(name))
        if name == "forward" and (found is Module.forward or not inspect.isfunction(found)):
            raise NotImplementedError(
                f"{info.python_class.__name__}: expected a module with forward, got none"
            )
        function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        return compile_as_method(info, name, getattr(function, "_jit_form", function))


def compile_postponed(info: ModuleInfo) -> None:
    """Compiles the methods that nobody has asked for yet, before all methods are looked at."""
    if info.postponed:
        with LOCK, from_outside(), _recorded(info):
            modules.compile_methods(info)
            for name in _exported_to_archive(info):
                compiled_method(info, name)
        info.postponed = False


def _exported_to_archive(info: ModuleInfo) -> list[str]:
    """The methods of a class of an archive that forward does not call."""
    members = vars(info.python_class).items() if info.container == "any" else ()
    hooks = [*info.pre_hooks, *info.hooks]
    return [
        name
        for name, each in members
        if inspect.isfunction(each) and name[:2] != "__" and each not in hooks
        if name not in info.compiled
    ]


def compiled_methods(info: ModuleInfo) -> dict[str, Any]:
    """The compiled methods by name, after those that nobody has asked for yet."""
    compile_postponed(info)
    return {name: each for name, each in info.compiled.items() if each.error is None}


def _recorded(info: ModuleInfo) -> Any:
    """Methods that are compiled later mean what they meant when the module was scripted."""
    return contextlib.nullcontext() if info.cached is None else reads.recorded(info.cached.walk)


def add_method(info: ModuleInfo, name: str, compiled: Compiled) -> None:
    """Gives a type without source a method."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"{name} is a program")

    method.__name__ = name
    method.__module__ = "__torch__"
    info.methods[name] = method
    info.compiled[name] = compiled
    info.type.methods[name] = compiled.function


def _compile_hooked(info: ModuleInfo) -> Any:
    """forward with its hooks as one method."""
    forward = compiled_method(info, "forward")
    compiled = Compiled(f"{info.type.name}.__hooked__", list(forward.parameters), None)
    code = Code("pass\n", f"<hooks of {info.python_class.__name__}>", 1)
    c = Compiler(compiled.function.graph, code, annotations_of(info.python_class).resolver,
                "__hooked__")  # fmt: skip
    range = c.range(code.tree.body[0])
    values = [c.graph.add_input(p.type, p.name) for p in compiled.parameters]
    call = Call.of(range, *map(Simple, values[1:]))
    held = modules.HookedForward(values[0], info).call(c, call)
    result = held.value(c, range)
    c.graph.block.set_returns([result])
    compiled.returns = result.type
    info.compiled["__hooked__"] = compiled
    info.type.methods["__hooked__"] = compiled.function
    return compiled


def executable_method(info: ModuleInfo, name: str) -> Callable[..., Any]:
    """What runs a method."""
    known = info.executables.get(name)
    if known is not None and known[0] == _swaps[0]:
        return known[1]
    classes = sorted(modules.classes_below(info), key=lambda each: each.name)
    if info.cached is None:
        run = executable(compiled_method(info, name).function, classes)
    else:
        cached = info.cached.inner(name)
        programs = functools.cache(
            lambda: Programs(compiled_method(info, name).function, classes, cached=cached)
        )
        run = _C.JitDispatcher(CachedOrCompiled(cached, programs).choose)
    info.executables[name] = (_swaps[0], run)
    return run


_swaps = [0]  # how often a submodule behind an interface was replaced


def forget_executables() -> None:
    """A submodule behind an interface was replaced: programs made before know too little."""
    _swaps[0] += 1
