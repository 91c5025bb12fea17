"""Drawings of graphs in the language of Graphviz, whose program `dot` makes pictures of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.fx.graph_module import GraphModule
from weft.fx.node import Node
from weft.fx.passes.shape_prop import TensorMetadata

#: the fill of nodes by what they do
_COLORS = {"placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_param": "Yellow2",
           "get_attr": "LightGrey", "output": "PowderBlue"}  # fmt: skip


class Dot:
    """A directed graph: `to_string()` and `write_raw(path)` give its text, `write_svg(path)`,
    `create_png()` and those of other formats a picture by `dot`, which must be installed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []

    def to_string(self) -> str:
        """The text."""
        body = "".join(f"  {line};\n" for line in self.lines)
        return f"digraph {json.dumps(self.name)} {{\n  rankdir=TB;\n{body}}}\n"

    def write_raw(self, path: Any) -> None:
        """Writes the text."""
        Path(path).write_text(self.to_string(), encoding="utf-8")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        verb, _, form = name.partition("_")
        if verb == "create" and form:
            return lambda: self._drawn(form)
        if verb == "write" and form:
            return lambda path: Path(path).write_bytes(self._drawn(form))
        raise AttributeError(name)

    def _drawn(self, form: str) -> bytes:
        given = self.to_string().encode()
        return subprocess.run(["dot", f"-T{form}"], input=given, stdout=-1, check=True).stdout


class FxGraphDrawer:
    """The drawing of a traced module, and one of each traced module in it.

    - ignore_getattr, ignore_parameters_and_buffers: leave out nodes that read attributes.
    - skip_node_names_in_args: arguments that are nodes are arrows only.
    - dot_graph_shape: the shape of nodes, "record" by default.

    parse_stack_trace and normalize_args have no effect.

    >>> graph = weft.fx.symbolic_trace(weft.nn.ReLU())
    >>> drawing = weft.fx.passes.graph_drawer.FxGraphDrawer(graph, "relu").get_dot_graph()
    >>> print(drawing.to_string().splitlines()[0])
    digraph "relu" {
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name, self._shape = name, dot_graph_shape or "record"
        self._left_out = {"get_attr"} if ignore_getattr or ignore_parameters_and_buffers else set()
        self._skip_nodes = skip_node_names_in_args
        self._drawings = {name: self._draw(graph_module, name)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._drawings[f"{name}_{path}"] = self._draw(module, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> Dot:
        """The drawing of the module, or that of a traced module in it."""
        return self._drawings[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> Dot:
        """The drawing of the module."""
        return self._drawings[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Dot:
        """That of a traced module in it."""
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, Dot]:
        """All of them, by name."""
        return self._drawings

    def _draw(self, module: GraphModule, name: str) -> Dot:
        dot = Dot(name)
        nodes = [node for node in module.graph.nodes if node.op not in self._left_out]
        for node in nodes:
            color = _COLORS.get(node.op, "White")
            look = f'shape={self._shape}, style="filled,rounded", fillcolor={color}'
            dot.lines.append(f"{json.dumps(node.name)} [label={self._label(node)}, {look}]")
        for node in nodes:
            for user in node.users:
                dot.lines.append(f"{json.dumps(node.name)} -> {json.dumps(user.name)}")
        return dot

    def _label(self, node: Node) -> str:
        target = node._pretty_print_target(node.target)
        lines = [f"name=%{node.name}", f"op_code={node.op}", f"target={target}"]
        if node.op not in ("placeholder", "output"):
            shown = [*node.args, *(f"{key}={value}" for key, value in node.kwargs.items())]
            if self._skip_nodes:
                shown = [each for each in shown if not isinstance(each, Node)]
            lines.append(f"args={tuple(shown)}" if shown else "")
        lines.append(f"num_users={len(node.users)}")
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata):
            lines.append(f"dtype={meta.dtype}, shape={tuple(meta.shape)}")
        parts = (_escaped(line) + r"\l" for line in lines if line)
        return '"{' + "|".join(parts) + '}"'


def _escaped(text: str) -> str:
    """Text within a record, whose structure braces, bars and angles are."""
    return "".join(f"\\{c}" if c in '\\{}|<>"' else c for c in text)
