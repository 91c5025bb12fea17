"""Text in, text out: what tests of passes have in common."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import weft.jit.literals
from weft.jit import ir, schemas
from weft.jit.passes.options import DEFAULT, Options


def body(text: str, header: str, result: str) -> str:
    """A graph with these lines between its first and its last."""
    inner = textwrap.indent(textwrap.dedent(text).strip("\n"), "  ")
    return (
        f"graph({header}):\n{inner}\n  return ({result})\n"
        if inner.strip()
        else f"graph({header}):\n  return ({result})\n"
    )


def read(text: str, classes=None, functions=None) -> ir.Graph:
    """The graph of an indented text, verified."""
    graph = ir.parse_ir(textwrap.dedent(text), classes, functions)
    ir.verify(graph, schemas.of)
    return graph


def check(
    run: Callable[..., bool],
    before: str,
    after: str | None,
    classes=None,
    functions=None,
    options: Options = DEFAULT,
) -> ir.Graph:
    """Runs a pass on a text and compares the text after it; None: nothing changes.

    Names of values do not count: both texts are numbered anew before they are compared.
    """
    graph = read(before, classes, functions)
    text = str(graph)
    changed = run(graph, options)
    ir.verify(graph, schemas.of)
    assert changed == (after is not None), f"changed: {changed}\n{graph}"
    if after is None:
        assert str(graph) == text
    else:
        assert canonical(graph) == canonical(read(after, classes, functions))
    return graph


def canonical(graph: ir.Graph) -> str:
    """The text with values numbered in order, constants told by their value, without ranges."""
    graph = graph.copy()
    values = [*graph.inputs, *(v for node in graph.walk() for v in node.outputs)]
    values += [v for node in graph.walk() for block in node.blocks for v in block.params]
    for index, value in enumerate(values):
        value.name = f"canonical{index}"
    return ir.print_graph(graph, ranges=False)


assert weft.jit.literals is not None
