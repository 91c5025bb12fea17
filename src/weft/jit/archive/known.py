"""Functions of weft that are operators of PyTorch, which archives call by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from weft.jit.archive.calls import is_constant, joined
from weft.jit.archive.functions import COMPOSED, NUMBER_FIRST
from weft.jit.archive.same import WRITTEN
from weft.jit.ir import Function
from weft.jit.ir.graph import Node

# Their tensors are no quantised ones to PyTorch: a program that is saved has their code.
_WRITTEN_OUT = "__torch__.weft.jit.archive.quantized"
_INSTANCE = re.compile(r"__\d+$")  # of a function compiled for further types


def base_name(function: Function) -> str:
    """The name of a function, whatever types it was compiled for."""
    return _INSTANCE.sub("", function.name)


def operator_of(function: Function) -> str | None:
    """The operator that a function is; None if it is none."""
    found = _found(function)
    return None if found is None else found[0]


def function_of(function: Function) -> Callable[..., Any] | None:
    """The Python function that stands for the operator."""
    found = _found(function)
    return None if found is None else found[1]


def _found(function: Function) -> tuple[str, Callable[..., Any]] | None:
    """The operator, and the Python function that stands for it."""
    name = base_name(function)
    if name.startswith(_WRITTEN_OUT):
        return None
    composed = ((kind, each) for kind, functions in COMPOSED.items() for each in functions)
    found = (*WRITTEN.items(), *composed, *NUMBER_FIRST.items())
    return next((pair for pair in found if _name(pair[1]) == name), None)


def _name(function: Any) -> str:
    return f"__torch__.{function.__module__}.{function.__qualname__}"


def arguments(node: Node, function: Function, texts: Sequence[str]) -> str:
    """The arguments of the operator's call, but for those at the end that are the defaults."""
    found = _found(function)
    assert found is not None
    parameters = inspect.signature(found[1]).parameters
    given = zip(function.arg_names, texts, node.inputs)
    return joined(
        (
            name,
            text,
            name in BY_KEYWORD or parameters[name].kind is inspect.Parameter.KEYWORD_ONLY,
            is_constant(value, parameters[name].default),
        )
        for name, text, value in given
    )


BY_KEYWORD = frozenset(("scale", "enable_gqa", "hermitian"))  # in PyTorch
