"""A graph as one page: its text beside the source it came from.

Hovering over a node marks the characters it was made from, and the values it uses; hovering over a
line of source marks the nodes made from it. The page needs nothing else: no network, no files.
"""

from __future__ import annotations

import html
import re

from weft.jit.ir.graph import Graph, Node
from weft.jit.ir.printer import lines_with_nodes
from weft.jit.ir.source import Source

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ display: flex; margin: 0; font: 13px/1.5 ui-monospace, monospace; color: #222; }}
section {{ flex: 1; height: 100vh; overflow: auto; padding: 1em; box-sizing: border-box; }}
section + section {{ border-left: 1px solid #ccc; background: #fafafa; }}
h2 {{ font-size: 13px; color: #666; margin: 1em 0 .3em; }}
.l {{ white-space: pre; }} .n {{ color: #999; }}
.on {{ background: #ffe9a8; }} .value.same {{ background: #bfe3ff; }}
</style></head><body>
<section id="graph">{graph}</section><section id="source">{source}</section>
<script>
const each = (selector, act) => document.querySelectorAll(selector).forEach(act);
const mark = (selector, name, on) => each(selector, e => e.classList.toggle(name, on));
for (const [event, on] of [["mouseover", true], ["mouseout", false]])
  document.addEventListener(event, e => {{
    const line = e.target.closest("[data-line]"), value = e.target.closest("[data-value]");
    if (line) mark(`[data-line="${{CSS.escape(line.dataset.line)}}"]`, "on", on);
    if (value) mark(`[data-value="${{CSS.escape(value.dataset.value)}}"]`, "same", on);
  }});
</script></body></html>
"""
_VALUE = re.compile(r"%([\w.]+)")


def to_html(graph: Graph, title: str = "graph") -> str:
    """The page as text."""
    sources: dict[Source, None] = {}
    for node in graph.walk():
        if node.range is not None and node.range.source.text is not None:
            sources[node.range.source] = None
    numbers = {source: index for index, source in enumerate(sources)}
    text = "".join(_line(line, node, numbers) for line, node in lines_with_nodes(graph, False))
    shown = "".join(_source(source, index) for source, index in numbers.items())
    shown = shown or "<h2>The source of this graph is not known.</h2>"
    return _PAGE.format(title=html.escape(title), graph=text, source=shown)


def _line(text: str, node: Node | None, numbers: dict[Source, int]) -> str:
    link = ""
    if node is not None and node.range is not None and node.range.source in numbers:
        line, _ = node.range.source.line_of(node.range.start)
        place = html.escape(str(node.range), quote=True)
        link = f' data-line="{numbers[node.range.source]}-{line}" title="{place}"'
    body = _VALUE.sub(_value, html.escape(text, quote=False))
    return f'<div class="l"{link}>{body}</div>'


def _value(match: re.Match[str]) -> str:
    return f'<span class="value" data-value="{match[1]}">{match[0]}</span>'


def _source(source: Source, number: int) -> str:
    lines = [f"<h2>{html.escape(source.filename)}</h2>"]
    for index in range(source.line_count):
        text = html.escape(" " * source.indent + source.line(index), quote=False)
        count = f'<span class="n">{source.first_line + index:4}  </span>'
        lines.append(f'<div class="l" data-line="{number}-{index}">{count}{text}</div>')
    return "".join(lines)
