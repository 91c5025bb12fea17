"""The oracle: runs a graph node by node, in Python, with weft's own operators.

Slow, and simple enough to be right by reading it. Passes and the interpreter are compared with it.
"""

from __future__ import annotations

import contextlib
import operator
from types import SimpleNamespace
from typing import Any

from weft import _C
from weft.jit import ir, schemas
from weft.jit.ir import Block, Function, Graph, Node, Value

# Builtins that are attributes in Python.
ATTRIBUTES = {
    f"prim::{name}": operator.attrgetter(name)
    for name in ("requires_grad", "dtype", "device", "layout", "is_cuda", "ndim", "shape")
}


class ScriptError(Exception):
    """What prim::RaiseException raises; `kind` is the class the program named."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Uninitialized:
    """The value of prim::Uninitialized, which no program may look at."""


def evaluate(graph: Graph, *args: Any) -> Any:
    """What the graph returns: one value, or a tuple of several."""
    results = Evaluator().run(graph, list(args))
    return results[0] if len(results) == 1 else tuple(results)


class Evaluator:
    """Runs graphs. `printed` collects what prim::Print says, `steps` counts nodes."""

    def __init__(self, most_steps: int = 200_000) -> None:
        self.printed: list[str] = []
        self.steps = 0
        self.most_steps = most_steps

    def run(self, graph: Graph, args: list[Any]) -> list[Any]:
        assert len(args) == len(graph.inputs), f"{len(graph.inputs)} arguments, not {len(args)}"
        return self.block(graph.block, dict(zip(graph.inputs, args)))

    def call(self, function: Function, args: list[Any]) -> Any:
        (result,) = self.run(function.graph, args)
        return result

    def block(self, block: Block, values: dict[Value, Any]) -> list[Any]:
        for node in block.nodes:
            self.steps += 1
            if self.steps > self.most_steps:
                raise TimeoutError("evaluate: too many steps")
            results = self.node(node, [values[v] for v in node.inputs], values)
            assert len(results) == len(node.outputs), node
            values.update(zip(node.outputs, results))
        return [values[v] for v in block.returns]

    def node(self, node: Node, args: list[Any], values: dict[Value, Any]) -> list[Any]:
        own = getattr(self, "on_" + node.kind.partition("::")[2], None)
        if own is not None and node.kind.startswith(("prim::", "weft::")):
            return own(node, args, values)
        if node.kind == "aten::wait":
            return args
        return self.operator(node, args)

    def operator(self, node: Node, args: list[Any]) -> list[Any]:
        found = schemas.of(node.kind)
        if found.is_builtin:
            python = ATTRIBUTES.get(node.kind) or found._row_python
            assert python is not None, f"{node.kind} has no Python function"
            result = python(*args)
        else:
            names = [arg.name for arg in found.args if arg.kwarg_only]
            split = len(found.args) - len(names)
            function = getattr(_C._aten, found.name[6:])
            result = function(*args[:split], **dict(zip(names, args[split:])))
        if not node.outputs:
            return []
        if len(node.outputs) > 1:
            return list(result)
        return (
            [list(result)]
            if isinstance(node.output.type, ir.ListType) and not isinstance(result, list)
            else [result]
        )

    def on_Constant(self, node, args, values):
        value = node.attrs["value"]
        return [list(value)] if isinstance(value, list) else [value]

    def on_If(self, node, args, values):
        return self.block(node.blocks[0 if args[0] else 1], values)

    def on_Loop(self, node, args, values):
        trips, condition, *carried = args
        trip, body = 0, node.blocks[0]
        while trip < trips and condition:
            values.update(zip(body.params, [trip, *carried]))
            condition, *carried = self.block(body, values)
            trip += 1
        return carried

    def on_ListConstruct(self, node, args, values):
        return [list(args)]

    def on_TupleConstruct(self, node, args, values):
        return [tuple(args)]

    def on_DictConstruct(self, node, args, values):
        return [dict(zip(args[::2], args[1::2]))]

    def on_TupleUnpack(self, node, args, values):
        return list(args[0])

    def on_ListUnpack(self, node, args, values):
        if len(args[0]) != len(node.outputs):
            raise ValueError(f"expected {len(node.outputs)} items, got {len(args[0])}")
        return list(args[0])

    def on_TupleIndex(self, node, args, values):
        return [args[0][node.attrs["index"]]]

    def on_CreateObject(self, node, args, values):
        return [SimpleNamespace()]

    def on_GetAttr(self, node, args, values):
        return [getattr(args[0], node.attrs["name"])]

    def on_SetAttr(self, node, args, values):
        setattr(args[0], node.attrs["name"], args[1])
        return []

    def on_CallFunction(self, node, args, values):
        return [self.call(node.attrs["function"], args)]

    on_fork = on_CallFunction

    def on_CallMethod(self, node, args, values):
        return [self.call(node.inputs[0].type.methods[node.attrs["name"]], args)]

    def on_CallPython(self, node, args, values):
        return [node.attrs["callable"](*args)]

    def on_RaiseException(self, node, args, values):
        raise ScriptError(node.attrs.get("exception", "Exception"), args[0])

    def on_Print(self, node, args, values):
        self.printed.append(" ".join(map(str, args)))
        return []

    def on_Uninitialized(self, node, args, values):
        return [Uninitialized()]

    def on_unchecked_cast(self, node, args, values):
        return args

    def on_isinstance(self, node, args, values):
        given = node.inputs[0].type
        with contextlib.suppress(TypeError):
            given = ir.type_of_constant(args[0])
        return [any(ir.is_subtype(given, t) for t in node.attrs["types"])]

    def on_Fused(self, node, args, values):
        inner = node.blocks[0]
        return self.block(inner, {**values, **dict(zip(inner.params, args))})
