"""Functions of weft that are operators of PyTorch, which archives call by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import weft.nn.functional as F
from weft.jit.archive.functions import COMPOSED
from weft.jit.ir import Function
from weft.jit.ir.graph import Node, Value

# Functions whose parameters have the names of the operator's.
_SAME = (
    F.bilinear, F.conv3d, F.conv_transpose1d, F.conv_transpose3d, F.cosine_similarity, F.glu,
    F.hardshrink, F.pad, F.pairwise_distance, F.pdist, F.prelu, F.rms_norm,
    F.scaled_dot_product_attention, F.softshrink,
)  # fmt: skip
_INSTANCE = re.compile(r"__\d+$")  # of a function compiled for further types


def operator_of(function: Function) -> str | None:
    """The operator that a function is; None if it is none."""
    found = _found(function)
    return None if found is None else found[0]


def _found(function: Function) -> tuple[str, Callable[..., Any]] | None:
    """The operator, and the Python function that stands for it."""
    name = _INSTANCE.sub("", function.name)
    same = ((f"aten::{each.__name__}", each) for each in _SAME)
    composed = ((kind, each) for kind, functions in COMPOSED.items() for each in functions)
    return next((pair for pair in (*same, *composed) if _name(pair[1]) == name), None)


def _name(function: Any) -> str:
    return f"__torch__.{function.__module__}.{function.__qualname__}"


def arguments(node: Node, function: Function, texts: Sequence[str]) -> str:
    """The arguments of the operator's call. What is as the parameters say is left out: at the end,
    or anywhere where the names are those of PyTorch."""
    found = _found(function)
    assert found is not None
    parameters = inspect.signature(found[1]).parameters
    defaults = [parameters[name].default for name in function.arg_names]
    by_place: list[str] = []
    by_name: list[str] = []
    for name, text, value, default in zip(function.arg_names, texts, node.inputs, defaults):
        if found[1] in _SAME and default is not inspect.Parameter.empty:
            by_name += [] if _is_same(value, default) else [f"{name}={text}"]
        else:
            by_place.append(text)
    while len(by_place) and not by_name and _is_same(*_last(node, defaults, len(by_place))):
        by_place.pop()
    return ", ".join([*by_place, *by_name])


def _last(node: Node, defaults: Sequence[Any], count: int) -> tuple[Value, Any]:
    return node.inputs[count - 1], defaults[count - 1]


def _is_same(value: Value, default: Any) -> bool:
    """Whether an argument is the constant that its default is."""
    if not value.is_constant or type(value.constant) is not type(default):
        return False
    return bool(value.constant == default)
