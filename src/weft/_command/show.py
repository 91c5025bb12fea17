"""`weft show`."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from weft.jit.archive.load import load, missing_operators
from weft.jit.module_methods import compiled_methods


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The archive, and how much of it is shown."""
    parser.add_argument("archive", help="what torch.jit.save wrote")
    parser.add_argument("--code", action="store_true", help="the code of each method, too")
    parser.add_argument("--graph", action="store_true", help="the graph of each method, too")
    parser.add_argument("--html", metavar="FILE", help="writes the graph of forward as a page")


def run(given: argparse.Namespace) -> None:
    """Prints the module from the outside in."""
    module = load(given.archive)
    _show_modules(module)
    for name in _methods(module):
        method = getattr(module, name)
        print(f"\n{method.schema}")
        if given.code:
            print(method.code)
        if given.graph:
            print(method.graph)
        _show_operators(method.inlined_graph)
    for kind, place in missing_operators(given.archive).items():
        print(f"missing: {kind} at {place}")
    if given.html:
        Path(given.html).write_text(module.forward.inlined_graph.to_html(Path(given.archive).name))


def _methods(module: Any) -> list[str]:
    """forward first, then the others that are compiled."""
    names = {"forward", *compiled_methods(module._jit_info)}
    return sorted(names - {"__hooked__"}, key=lambda name: (name != "forward", name))


def _show_modules(module: Any) -> None:
    rows: list[Any] = []
    for path, each in module.named_modules():
        own = [*each.parameters(recurse=False), *each.buffers(recurse=False)]
        name = "  " * (path.count(".") + bool(path)) + path.rpartition(".")[2]
        rows.append((name, each.original_name, sum(x.numel() for x in own), _bytes(own)))
    widths = [max(map(len, column)) for column in list(zip(*rows))[:2]]
    for name, kind, count, size in rows:
        print(f"{name:{widths[0]}}  {kind:{widths[1]}}  {count:>12,} numbers  {size:>14,} bytes")
    tensors = [*module.parameters(), *module.buffers()]
    total = sum(x.numel() for x in tensors)
    print(f"{'in all':{sum(widths) + 2}}  {total:>12,} numbers  {_bytes(tensors):>14,} bytes")


def _bytes(tensors: list[Any]) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


def _show_operators(graph: Any) -> None:
    kinds = Counter(node.kind() for node in graph.nodes())
    for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
        if kind != "prim::Constant":
            print(f"  {count:>6}  {kind}")
