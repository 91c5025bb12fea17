"""Functions of weft that are operators of PyTorch, which archives call by name."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import weft.nn.functional as F
from weft.jit.archive.functions import COMPOSED
from weft.jit.ir import Function
from weft.jit.ir.graph import Node

# Functions whose parameters have the names of the operator's.
_SAME = (
    F.bilinear, F.conv3d, F.conv_transpose1d, F.conv_transpose3d, F.cosine_similarity, F.glu,
    F.hardshrink, F.pad, F.pairwise_distance, F.pdist, F.prelu, F.rms_norm,
    F.scaled_dot_product_attention, F.softshrink,
)  # fmt: skip
_INSTANCE = re.compile(r"__\d+$")  # of a function compiled for further types


@functools.cache
def _operators() -> dict[str, tuple[str, Callable[..., Any]]]:
    """The operators and the functions by the names of functions in the IR."""
    composed = {
        _name(function): (kind, function)
        for kind, functions in COMPOSED.items()
        for function in functions
    }
    same = {_name(function): (f"aten::{function.__name__}", function) for function in _SAME}
    return composed | same


def _name(function: Any) -> str:
    return f"__torch__.{function.__module__}.{function.__qualname__}"


def operator_of(function: Function) -> str | None:
    """The operator that a function is; None if it is none."""
    found = _operators().get(_INSTANCE.sub("", function.name))
    return None if found is None else found[0]


def arguments(node: Node, function: Function, texts: Sequence[str]) -> str:
    """The arguments of the operator's call: those that have a default by keyword, where they are
    something else."""
    parameters = inspect.signature(_operators()[_INSTANCE.sub("", function.name)][1]).parameters
    made = []
    for name, text, value in zip(function.arg_names, texts, node.inputs):
        default = parameters[name].default
        if default is inspect.Parameter.empty:
            made.append(text)
        elif not (value.is_constant and _is_same(value.constant, default)):
            made.append(f"{name}={text}")
    return ", ".join(made)


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
