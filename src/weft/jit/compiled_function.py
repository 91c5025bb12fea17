"""Compiled functions as Python objects, with all that can be seen of them."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable
from typing import Any

from weft._C import Tensor
from weft._runtime import lazy
from weft.autograd.grad_mode import is_grad_enabled
from weft.jit.behind_interfaces import ByClasses, interfaces_of
from weft.jit.cache.cached_programs import CachedPrograms
from weft.jit.execution import LOCK, Programs
from weft.jit.frontend.types.signatures import Compiled
from weft.jit.ir import Function, Graph
from weft.jit.passes import gradients, inlining
from weft.jit.passes.options import DEFAULT, INFERENCE
from weft.jit.script_function import ScriptFunction

# What programs show of themselves. Running one does not wait for its import.
code_text = lazy.module("weft.jit.archive.code_text")
graph_view = lazy.module("weft.jit.graph_view")
pipeline = lazy.module("weft.jit.pipeline")
writer = lazy.module("weft.jit.archive.writer")


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
        with LOCK:
            return code_text.code_of(self._program)

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The text, and an object with its constants c0, c1, ... of tensors."""
        with LOCK:
            return code_text.code_with_constants(self._program)

    def _parameters_of(self) -> Iterable[Tensor]:
        """The parameters of the module that it belongs to."""
        return ()

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The graph that a call with these arguments runs once it is optimised. It is freer where
        no gradient can be recorded."""
        given = (*args, *kwargs.values(), *self._parameters_of())
        tensors = [value for value in given if isinstance(value, Tensor)]
        records = is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        with LOCK:
            program = self._program
            records = records or gradients.may_start(program.graph)
            return _view(pipeline.optimize(program, 2, DEFAULT if records else INFERENCE).graph)


# What programs of PyTorch have and these have not, and what to use instead.
_ABSENT = {"get_debug_state": "graph_for(*args) is the optimised graph of a call"}


class Savable:
    """What programs have that archives hold."""

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """weft.jit.save(self, f)."""
        writer.save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """The bytes that `save` writes."""
        file = io.BytesIO()
        self.save(file, _extra_files)
        return file.getvalue()


def absent(name: str) -> str:
    """What to use instead of an attribute that programs of PyTorch have; empty for others."""
    return f": {_ABSENT[name]}" if name in _ABSENT else ""


class CompiledFunction(Program, Savable, ScriptFunction):
    """A function that this process has compiled. Its programs are `_cached`, if they can be."""

    def __init__(self, compiled: Compiled, python: Any = None) -> None:
        super().__init__(compiled.name, compiled.function.doc, python, None)
        self._weft_compiled = compiled
        self._cached: CachedPrograms | None = None

    def keep(self, cached: CachedPrograms) -> None:
        """Its programs will be kept on disk."""
        self._cached, self._weft_key = cached, cached.key

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
        return graph_view.SchemaView(self._program.schema)

    @functools.cached_property
    def programs(self) -> Programs:
        """The programs that were made."""
        return Programs(self.function, cached=self._cached)

    def _executable(self) -> Any:
        interfaces = interfaces_of(self.function)
        return ByClasses(self.function, interfaces) if interfaces else self.programs.executable()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ScriptFunction has no attribute {name!r}" + absent(name), name=name)


def _view(graph: Graph) -> Any:
    return graph_view.GraphView(graph)


def inlined(function: Function) -> Graph:
    """A copy of a function's graph with all that it calls in place of the calls."""
    graph = function.graph.copy()
    inlining.run(graph, DEFAULT)
    return graph
