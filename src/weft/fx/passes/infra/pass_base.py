"""PassBase and PassResult: a pass over a graph, and what it gives back."""

from __future__ import annotations

import abc
from typing import NamedTuple

from weft.fx.graph_module import GraphModule
from weft.nn import Module


class PassResult(NamedTuple):
    """The module of a pass, and whether the pass changed it."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass over a graph: derive from it and define `call`; `requires` and `ensures` may raise
    where the module is not as the pass needs it before, or leaves it.

    >>> from weft.fx.passes.infra.pass_base import PassBase, PassResult
    >>> class Negate(PassBase):
    ...     def call(self, graph_module):
    ...         found = graph_module.graph.find_nodes(op="call_function", target=weft.relu)
    ...         for node in found:
    ...             node.target = weft.neg
    ...         _ = graph_module.recompile()
    ...         return PassResult(graph_module, bool(found))
    >>> result = Negate()(weft.fx.symbolic_trace(lambda x: weft.relu(x)))
    >>> result.modified, result.graph_module(weft.tensor([2.0]))
    (True, tensor([-2.]))
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """The result of `call`, between `requires` and `ensures`."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Does the pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 - may be left as it is
        """Checks the module before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027 - may be left as it is
        """Checks the module after the pass."""


__all__ = ["PassBase", "PassResult"]
