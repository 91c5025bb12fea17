"""Values that are known before the program runs."""

from __future__ import annotations

from typing import Any

from weft.jit.ir import Value
from weft.jit.passes.identity import is_only_read


def constant_of(value: Value) -> Any:
    """What a value is known to be: a constant, or a list made of constants that nobody changes;
    else None."""
    if value.is_constant:
        return value.constant
    node = value.node
    if node is None or node.kind != "prim::ListConstruct":
        return None
    known = all(item.is_constant for item in node.inputs) and is_only_read(value)
    return [item.constant for item in node.inputs] if known else None
