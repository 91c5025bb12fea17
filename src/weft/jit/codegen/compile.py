"""Functions of the IR to a program that runs: collects what they call, makes bytes, loads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft import _C
from weft._runtime import lazy
from weft.jit.codegen.lower import Lowering
from weft.jit.codegen.program import FunctionData, ProgramData
from weft.jit.codegen.tables import Tables
from weft.jit.ir import Function, Node
from weft.jit.ir import types as ty

tiles = lazy.module("weft.jit.codegen.tiles")  # first calls have no groups


class Compiler:
    """A program under way."""

    def __init__(self, gradients: bool = True) -> None:
        self._gradients = gradients
        self.tables = Tables()
        self.callables: list[Callable[..., Any]] = []
        self.callable_types: list[int] = []
        self.groups: list[Any] = []
        self._index: dict[int, int] = {}
        self._functions: list[Function] = []
        self._methods: set[str] = set()  # names that are looked up by class while it runs

    def function(self, function: Function) -> int:
        """The place of a function, which becomes part of the program."""
        if id(function) not in self._index:
            self._index[id(function)] = len(self._functions)
            self._functions.append(function)
        return self._index[id(function)]

    def method(self, name: str) -> None:
        """Every class that has the method brings it along."""
        self._methods.add(name)

    def external(self, callable: Callable[..., Any], result: ty.Type) -> int:
        """The place of a Python function."""
        self.callables.append(callable)
        self.callable_types.append(self.tables.type(result))
        return len(self.callables) - 1

    def group(self, node: Node) -> int:
        """The place of a fusion group."""
        self.groups.append(tiles.spec(node, self._gradients))
        return len(self.groups) - 1

    def run(self, classes: Iterable[ty.ClassType]) -> ProgramData:
        """Lowers functions until none is missing."""
        for t in classes:
            self.tables.class_(t)
        data: list[FunctionData] = []
        while True:
            while len(data) < len(self._functions):
                function = self._functions[len(data)]
                for value in function.graph.inputs:  # whose classes may bring methods
                    self.tables.type(value.type)
                data.append(Lowering(function, self).run())
            self.tables.complete()
            methods = self._dynamic_methods()
            if len(data) == len(self._functions):
                return ProgramData(
                    self.tables, data, methods, self.callables, self.callable_types, self.groups
                )

    def _dynamic_methods(self) -> list[tuple[int, str, int]]:
        return [
            (self.tables.class_(t), name, self.function(t.methods[name]))
            for t in self.tables.classes
            for name in sorted(self._methods)
            if name in t.methods
        ]


def lower_program(
    functions: Iterable[Function], classes: Iterable[ty.ClassType] = (), gradients: bool = True
) -> ProgramData:
    """The program of some functions and all they call. Without `gradients` fusion groups are left
    to their operators where one must be recorded."""
    compiler = Compiler(gradients)
    for function in functions:
        compiler.function(function)
    return compiler.run(classes)


def compile_program(
    functions: Iterable[Function],
    classes: Iterable[ty.ClassType] = (),
    known: Mapping[str, _C.JitClass] | None = None,
) -> _C.JitProgram:
    """Functions, and all they call, ready to run: `program.function("name")`.

    `classes`: classes whose instances may be handed in, though no function names them. `known`:
    classes of earlier programs, by name; this program's objects are then of those.
    """
    data = lower_program(functions, classes)
    return _C.JitProgram(data.encode(), data.tables.inputs, data.callables, dict(known or {}))
