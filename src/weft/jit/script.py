"""weft.jit.script: Python functions, modules and classes to programs."""

from __future__ import annotations

import ast
import enum
import io
import sys
import types as python_types
from collections.abc import Iterable
from typing import Any

import weft
from weft.jit.execution import LOCK, executable
from weft.jit.frontend import functions as frontend
from weft.jit.frontend.errors import FrontendError, from_outside, shortened
from weft.jit.frontend.functions import Compiled
from weft.jit.frontend.resolver import Resolver, is_module, locals_of_caller
from weft.jit.frontend.source import Code, unwrapped
from weft.jit.ir import Function, Graph
from weft.jit.passes import inlining
from weft.jit.passes.options import DEFAULT, INFERENCE

_enabled = True


class Program:
    """What can be seen of a compiled function."""

    @property
    def _program(self) -> Function:
        """The function of the IR."""
        raise NotImplementedError

    @property
    def graph(self) -> Any:
        """The graph as the frontend made it."""
        return _view(self._program.graph)

    @property
    def inlined_graph(self) -> Any:
        """The graph with all that it calls in place of the calls."""
        return _view(inlined(self._program))

    @property
    def code(self) -> str:
        """The program as text of TorchScript's dialect of Python."""
        from weft.jit.archive.code_text import code_of

        with LOCK:
            return code_of(self._program)

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The text, and an object with its constants c0, c1, ... of tensors."""
        from weft.jit.archive.code_text import code_with_constants

        with LOCK:
            return code_with_constants(self._program)

    def _parameters_of(self) -> Iterable[weft.Tensor]:
        """The parameters of the module that it belongs to."""
        return ()

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The graph that a call with these arguments runs once it is optimised. It is freer where
        no gradient can be recorded."""
        from weft.jit.passes import gradients
        from weft.jit.pipeline import optimize

        given = (*args, *kwargs.values(), *self._parameters_of())
        tensors = [value for value in given if isinstance(value, weft.Tensor)]
        records = weft.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        with LOCK:
            program = self._program
            records = records or gradients.may_start(program.graph)
            return _view(optimize(program, 2, DEFAULT if records else INFERENCE).graph)


# What programs of PyTorch have and these have not, and what to use instead.
_ABSENT = {
    "get_debug_state": "graph_for(*args) is the optimised graph of a call",
}


class Savable:
    """What programs have that archives hold."""

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """weft.jit.save(self, f)."""
        from weft.jit.archive.writer import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """The bytes that `save` writes."""
        file = io.BytesIO()
        self.save(file, _extra_files)
        return file.getvalue()


def absent(name: str) -> str:
    """What to use instead of an attribute that programs of PyTorch have; empty for others."""
    return f": {_ABSENT[name]}" if name in _ABSENT else ""


class ScriptFunction(Program, Savable):
    """A compiled function. The program is made when it is first called.

    Attributes: name, graph (as the frontend made it), inlined_graph, schema, code.
    """

    def __init__(self, compiled: Compiled, python: Any = None) -> None:
        self._weft_compiled = compiled
        self._python = python
        self._run: Any = None
        self.__name__ = getattr(python, "__name__", compiled.name.rpartition(".")[2])
        self.__qualname__ = getattr(python, "__qualname__", self.__name__)
        self.__doc__ = compiled.function.doc or None
        self.__module__ = getattr(python, "__module__", "__main__")
        if python is not None:
            self.__wrapped__ = python

    @property
    def function(self) -> Function:
        """The function of the IR."""
        return self._weft_compiled.function

    @property
    def _program(self) -> Function:
        return self._weft_compiled.function

    @property
    def schema(self) -> Any:
        """Names, types and defaults of the arguments, and the type of the result."""
        from weft.jit.schema_view import SchemaView

        return SchemaView(self._program.schema)

    @property
    def name(self) -> str:
        """The name without its module."""
        return self._weft_compiled.name.rpartition(".")[2]

    @property
    def qualified_name(self) -> str:
        """The name in the IR."""
        return self._weft_compiled.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = self._run
        if run is None:
            run = self._run = executable(self.function)
        return run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ScriptFunction has no attribute {name!r}" + absent(name), name=name)

    def __repr__(self) -> str:
        return f"<weft.jit.ScriptFunction {self.qualified_name}>"

    def __reduce__(self) -> Any:
        raise RuntimeError(
            f"pickle: expected an object that is no program, got ScriptFunction {self.name}; "
            "script it again from its source"
        )


def _view(graph: Graph) -> Any:
    from weft.jit.graph_view import GraphView

    return GraphView(graph)


def inlined(function: Function) -> Graph:
    """A copy of a function's graph with all that it calls in place of the calls."""
    graph = function.graph.copy()
    inlining.run(graph, DEFAULT)
    return graph


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
        from weft.jit.script_module import RecursiveScriptModule, script_module

        return obj if isinstance(obj, RecursiveScriptModule) else script_module(obj, extra)
    if isinstance(obj, type):
        from weft.jit.script_class import script_class

        return script_class(obj, extra)
    if isinstance(obj, (dict, list)):
        from weft.jit.script_containers import ScriptDict, ScriptList

        return ScriptDict(obj) if isinstance(obj, dict) else ScriptList(obj)
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
    from weft.jit.frontend.ignored import mode_of
    from weft.jit.frontend.overloads import overloads_of

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
    import textwrap

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
                from weft.jit.frontend.scaffold import refuse

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


# What a text knows besides the names of types.
DEFAULT_NAMES = {"torch": weft, "weft": weft, "Tensor": weft.Tensor}
__all__ = ["CompilationUnit", "ScriptFunction", "enum", "script"]
