"""A function: a graph with a name, names of arguments and defaults."""

from __future__ import annotations

from typing import Any

from weft.jit.ir.graph import Graph
from weft.jit.ir.record import field, record
from weft.jit.ir.types import NONE, Argument, FunctionSchema, TupleType, Type


@record(eq=False)
class Function:
    """`name` is qualified ("__torch__.net.f"). `arg_names` fits `graph.inputs`; `defaults` has the
    Python values of arguments that may be left out, `lengths` the lengths of lists for which Python
    may give one number. A method's first argument is `self`.

    The graph returns one value (NoneType for a function without result).
    """

    name: str
    graph: Graph
    arg_names: list[str]
    defaults: dict[str, Any] = field(default_factory=dict)
    doc: str = ""
    lengths: dict[str, int] = field(default_factory=dict)

    @property
    def schema(self) -> FunctionSchema:
        """Names, types and defaults of the arguments, and the type of the result."""
        pairs = zip(self.arg_names, self.graph.inputs)
        args = (
            Argument(name, value.type, self.defaults.get(name), name in self.defaults)
            for name, value in pairs
        )
        return FunctionSchema(self.name.rpartition(".")[2], tuple(args), self.return_type)

    def with_graph(self, graph: Graph) -> Function:
        """The same function with another graph."""
        return Function(self.name, graph, self.arg_names, self.defaults, self.doc, self.lengths)

    @property
    def return_type(self) -> Type:
        """The type of the result."""
        types = [value.type for value in self.graph.returns]
        if len(types) == 1:
            return types[0]
        return TupleType(tuple(types)) if types else NONE

    def __repr__(self) -> str:
        return f"Function({self.name}{str(self.schema)[len(self.schema.name) :]})"
