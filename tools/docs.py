#!/usr/bin/env python3
"""Writes the parts of docs/torchscript.md that the compiler itself produces.

`python tools/docs.py` puts fresh output between the marks

    <!-- generated: NAME -->
    <!-- /generated -->

and `--check` only compares. weft must be importable.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "torchscript.md"
REGION = re.compile(r"<!-- generated: (\w+) -->\n(.*?)<!-- /generated -->", re.DOTALL)

PROGRAM = """\
def gate(x: Tensor, sharpness: float) -> Tensor:
    return torch.sigmoid(x * (2.0 * sharpness))


def update(state: Tensor, x: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        keep = gate(state, 0.25)
        new = torch.tanh(x - state)
        state = new + keep * (state - new)
    return state
"""


def _fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{str(text).rstrip()}\n```\n"


def _all_rows() -> list[Any]:
    """The rows of the compiler's table, with those of syntax that this Python does not have yet."""

    class EverySyntax(types.ModuleType):
        def __getattr__(self, name: str) -> type:
            return type(name, (), {})

    from weft.jit.frontend.source import errors

    spec = importlib.util.spec_from_file_location("_refused", errors.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    known, sys.modules["ast"] = sys.modules["ast"], EverySyntax("ast")
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules["ast"] = known
    return [*module.REFUSED.values(), *module.REFUSED_FORMS.values()]


def refused() -> str:
    """The syntax that the compiler refuses."""
    lines = ["| refused | for example | write instead |", "|---|---|---|"]
    for what, example, instead in dict.fromkeys(_all_rows()):
        code = " ".join(part.strip() for part in example.splitlines())
        lines.append("| " + " | ".join(_cell(t) for t in (what, f"`{code}`", instead)) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("**", "\\*\\*") if text[0] != "`" else text


def _update() -> Any:
    import weft

    return weft.jit.CompilationUnit(PROGRAM).update


def program() -> str:
    """The source."""
    return _fenced(PROGRAM, "python")


def frontend() -> str:
    """The graph that the frontend makes."""
    return _fenced(_update().graph)


def _stages() -> tuple[Any, list[tuple[str, str]]]:
    from weft.jit import pipeline

    stages: list[tuple[str, str]] = []
    made = pipeline.optimize(
        _update().function, observer=lambda each, graph: stages.append((each.name, str(graph)))
    )
    return made, stages


def passes() -> str:
    """The graph after each pass that changed it."""
    return "\n".join(f"After `{name}`:\n\n{_fenced(text)}" for name, text in _stages()[1])


def group() -> str:
    """What the runtime is told of the fusion group."""
    from weft.jit.codegen import tiles

    (node,) = [n for n in _stages()[0].graph.walk() if n.kind == tiles.FUSED]
    spec = tiles.spec(node)
    return _fenced("\n".join(_group_lines(spec)))


def _group_lines(spec: Any) -> list[str]:
    lines = [f"inputs: {spec.input_count}   constants: {list(spec.constants)}"]
    for i, (op, tensors, numbers) in enumerate(spec.steps):
        operands = ", ".join(f"{o.kind} {o.index}" for o in (*tensors, *numbers))
        lines.append(f"step {i}: {op}({operands})")
    lines.append("outputs: " + ", ".join(f"step {i}" for i in spec.outputs))
    if spec.backward is not None:
        back = _group_lines(spec.backward.group)
        lines += ["", "backward, gradients of the outputs behind the inputs:", *back]
        for target, kind, index in spec.backward.edges:
            lines.append(f"to input {target}: {kind} {index}")
    return lines


def instructions() -> str:
    """The program that the interpreter runs."""
    from weft.jit.codegen import lower_program
    from weft.jit.codegen.program import listing

    return _fenced(listing(lower_program([_stages()[0]])))


def result() -> str:
    """A call, and a training step through it."""
    import weft

    update = _update()
    x = weft.tensor([0.5, -1.0, 2.0])
    state = weft.zeros(3, requires_grad=True)
    out = update(state, x, 3)
    out.sum().backward()
    return _fenced(f"{out}\n{state.grad}")


REGIONS: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (refused, program, frontend, passes, group, instructions, result)
}


def fresh(page: str) -> str:
    """The page with every marked part as the compiler gives it now."""
    return REGION.sub(
        lambda m: f"<!-- generated: {m[1]} -->\n{REGIONS[m[1]]()}<!-- /generated -->", page
    )


def main() -> int:
    """Writes the page, or with --check says whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    made = fresh(page)
    if options.check:
        return int(made != page)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
