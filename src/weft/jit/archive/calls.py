"""Calls of operators in the code of an archive: what PyTorch calls them, and by which arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.jit import schemas
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node, Value
from weft.jit.schema_parts import Arg

# From this version on archives mean the operator as it is today.
VERSIONS = {"div": 4, "div_": 4, "full": 5, "linspace": 8, "logspace": 9, "gelu": 10}
OLDEST = 3


_BY_KEYWORD = {("aten::Generator", "device")}  # in PyTorch


def version_of(kind: str) -> int:
    """The version of archives that a call needs."""
    return VERSIONS.get(kind.partition(".")[0].removeprefix("aten::"), OLDEST)


def callee(kind: str) -> str:
    """The text of an operator: torch.add, ops.prim.min."""
    space, _, short = kind.partition(".")[0].partition("::")
    return f"torch.{short}" if space == "aten" else f"ops.{space}.{short}"


def arguments(node: Node, texts: Sequence[str]) -> str:
    """The arguments of an operator's call. Those that are as the schema says are left out: by
    position at the end, by keyword anywhere."""
    operator = schemas.of(node.kind)
    if operator.schema.varargs:
        in_tuple = node.kind == "aten::percentFormat" and len(texts) > 2
        return f"{texts[0]}, ({', '.join(texts[1:])})" if in_tuple else ", ".join(texts)
    return in_places(node, operator.args, texts)


def in_places(node: Node, args: Sequence[Arg], texts: Sequence[str]) -> str:
    """Arguments by position, and by keyword where the schema says so, without the defaults."""
    return joined(
        (
            arg.name,
            text,
            arg.kwarg_only or (node.kind, arg.name) in _BY_KEYWORD,
            arg.has_default and is_constant(value, arg.default),
        )
        for arg, text, value in zip(args, texts, node.inputs)
    )


def joined(arguments: Iterable[tuple[str, str, bool, bool]]) -> str:
    """Arguments of a call: the name and text of each, whether it is by keyword, and whether it is
    the default, which is left out."""
    by_place: list[str] = []
    by_name: list[str] = []
    left_out = 0
    for name, text, is_keyword, is_default in arguments:
        if is_keyword:
            by_name += [] if is_default else [f"{name}={text}"]
            continue
        left_out = left_out + 1 if is_default else 0
        by_place.append(text)
    return ", ".join([*by_place[: len(by_place) - left_out], *by_name])


def takes_number(node: Node, index: int) -> bool:
    """Whether an operator takes a number of any kind in a place."""
    args = schemas.of(node.kind).args
    return index < len(args) and args[index].type is ty.NUMBER


def is_constant(value: Value, held: Any) -> bool:
    """Whether a value is that constant."""
    if not value.is_constant or type(value.constant) is not type(held):
        return False
    return bool(value.constant == held)
