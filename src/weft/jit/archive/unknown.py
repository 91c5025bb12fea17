"""The operators that the code of an archive calls and weft has not."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable

from weft.jit.archive.code import ArchiveCode
from weft.serialization.errors import LoadError, shown

_SHOWN = 20  # of them in a message
_ABSENT = {
    "quantized": "weft has not this one of the quantised operators; save the module unquantised",
    "prepacked": "weft has no weights packed for mobile; save the module before it is optimised",
}


def operator_named(node: ast.AST) -> str | None:
    """The operator that an expression of an archive names: aten::add of torch.add, ns::op of
    ops.ns.op. None for others."""
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    if isinstance(owner, ast.Name):
        return f"aten::{node.attr}" if owner.id == "torch" else None
    if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name):
        return f"{owner.attr}::{node.attr}" if owner.value.id == "ops" else None
    return None


_NAMED = re.compile(r"\b(?:torch|ops\.(\w+))\.(\w+)")


def unknown_operators(code: ArchiveCode, known: Callable[[str], bool]) -> dict[str, str]:
    """By operator that is not known the first place that names it, as "file:line:column"."""
    found: dict[str, str] = {}
    is_known = functools.cache(known)
    for each in code.definitions():
        # Most definitions name none: their text tells it sooner than their tree.
        names = {f"{space or 'aten'}::{name}" for space, name in _NAMED.findall(each.own_text())}
        if all(name in found or is_known(name) for name in names):
            continue
        for node in ast.walk(each.tree):
            kind = operator_named(node)
            if kind is not None and kind not in found and not is_known(kind):
                found[kind] = str(each.range(node))
    return found


CLASSES_OF_TORCH = "__torch__.torch.classes."


def class_of_torch(name: str) -> LoadError:
    """The error for a class that archives name without its code."""
    why = _ABSENT.get(name.removeprefix(CLASSES_OF_TORCH).partition(".")[0], "which weft has not")
    return LoadError(
        f"load: expected a class of the archive's code, got PyTorch's own {shown(name)}: {why}"
    )


def message(kind: str, found: dict[str, str]) -> str:
    """The text of the error where an operator is called that weft has not: it names all of them."""
    space, _, name = kind.partition("::")
    why = _ABSENT.get("quantized" if "quantize" in name else space)
    text = f"{kind}: expected an operator of weft, got one it has not"
    text += f": {why}" if why else "; weft.jit.register_operator gives it one"
    if len(found) > 1:
        rows = [f"  {name} at {place}" for name, place in sorted(found.items())]
        more = [f"  and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
        text += "\nThe archive's code names these operators that weft has not:\n"
        text += "\n".join(rows[:_SHOWN] + more)
    return text
