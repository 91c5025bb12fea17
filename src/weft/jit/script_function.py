"""Compiled functions as Python objects."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import weft
from weft.jit.execution import LOCK, executable
from weft.jit.frontend.types.parameters import Compiled
from weft.jit.ir import Function, Graph
from weft.jit.ir.fresh_stack import Later
from weft.jit.passes import inlining
from weft.jit.passes.options import DEFAULT, INFERENCE

if TYPE_CHECKING:
    from weft.jit import graph_view, pipeline, schema_view
    from weft.jit.archive import code_text, writer
    from weft.jit.passes import gradients
else:
    code_text = Later("weft.jit.archive.code_text")
    gradients = Later("weft.jit.passes.gradients")
    graph_view = Later("weft.jit.graph_view")
    pipeline = Later("weft.jit.pipeline")
    schema_view = Later("weft.jit.schema_view")
    writer = Later("weft.jit.archive.writer")


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

    def _parameters_of(self) -> Iterable[weft.Tensor]:
        """The parameters of the module that it belongs to."""
        return ()

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The graph that a call with these arguments runs once it is optimised. It is freer where
        no gradient can be recorded."""
        given = (*args, *kwargs.values(), *self._parameters_of())
        tensors = [value for value in given if isinstance(value, weft.Tensor)]
        records = weft.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        with LOCK:
            program = self._program
            records = records or gradients.may_start(program.graph)
            return _view(pipeline.optimize(program, 2, DEFAULT if records else INFERENCE).graph)


# What programs of PyTorch have and these have not, and what to use instead.
_ABSENT = {
    "get_debug_state": "graph_for(*args) is the optimised graph of a call",
}


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
        return schema_view.SchemaView(self._program.schema)

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
    return graph_view.GraphView(graph)


def inlined(function: Function) -> Graph:
    """A copy of a function's graph with all that it calls in place of the calls."""
    graph = function.graph.copy()
    inlining.run(graph, DEFAULT)
    return graph


# What a text knows besides the names of types.
DEFAULT_NAMES = {"torch": weft, "weft": weft, "Tensor": weft.Tensor}
