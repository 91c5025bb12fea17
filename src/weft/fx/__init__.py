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

from weft._runtime.exports import list_exports as _list_exports
from weft.fx import immutable_collections as immutable_collections
from weft.fx._symbolic_trace import PH as PH
from weft.fx._symbolic_trace import Tracer as Tracer
from weft.fx._symbolic_trace import symbolic_trace as symbolic_trace
from weft.fx._symbolic_trace import wrap as wrap
from weft.fx.graph import CodeGen as CodeGen
from weft.fx.graph import Graph as Graph
from weft.fx.graph_module import GraphModule as GraphModule
from weft.fx.interpreter import Interpreter as Interpreter
from weft.fx.interpreter import Transformer as Transformer
from weft.fx.node import Node as Node
from weft.fx.node import has_side_effect as has_side_effect
from weft.fx.node import map_arg as map_arg
from weft.fx.proxy import Proxy as Proxy
from weft.fx.subgraph_rewriter import replace_pattern as replace_pattern

_list_exports(vars(), "immutable_collections")
