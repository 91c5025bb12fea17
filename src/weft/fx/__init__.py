"""Graphs of modules: traced by running them with proxies, changed as data, and written as Python.

`symbolic_trace` makes a `GraphModule` of a module or function. Its `graph` is a list of nodes
that programs read and change; `recompile()` writes forward anew.

>>> traced = weft.fx.symbolic_trace(lambda x: weft.relu(x) + 1)
>>> for node in traced.graph.find_nodes(op="call_function", target=weft.relu):
...     node.target = weft.neg
>>> code = traced.recompile()
>>> traced(weft.tensor([2.0]))
tensor([-1.])
"""

from __future__ import annotations

from weft.fx import immutable_collections
from weft.fx._symbolic_trace import PH, Tracer, symbolic_trace, wrap
from weft.fx.graph import CodeGen, Graph
from weft.fx.graph_module import GraphModule
from weft.fx.interpreter import Interpreter, Transformer
from weft.fx.node import Node, has_side_effect, map_arg
from weft.fx.proxy import Proxy
from weft.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
