"""What mappings of programs are written with, under PyTorch's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.onnx._state import SymbolicValueError

_KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "v": (lambda value: value, "a value"),
    "i": (int, "a whole number"),
    "b": (bool, "a bool"),
    "f": (float, "a number"),
    "s": (str, "a text"),
    "is": (lambda value: [int(each) for each in value], "whole numbers"),
    "fs": (lambda value: [float(each) for each in value], "numbers"),
    "none": (lambda value: None, "None"),
}


def parse_args(*descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says of the arguments of a mapping, behind the graph, what each is: "v" a symbol, "i", "b",
    "f", "s" a known number or text, "is", "fs" lists of them, "none". SymbolicValueError where an
    argument is known only when the model runs.

    >>> @parse_args("v", "i")
    ... def shifted(g, x, by):
    ...     return by + 1
    >>> shifted(None, None, 2.0)
    3
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(g: Any, *args: Any, **kwargs: Any) -> Any:
            given = [_parsed(kind, each) for kind, each in zip(descriptors, args)]
            return function(g, *given, *args[len(given) :], **kwargs)

        return call

    return decorate


def _parsed(kind: str, value: Any) -> Any:
    if kind not in _KINDS:
        raise ValueError(f"parse_args: expected one of {', '.join(_KINDS)}, got {kind!r}")
    convert, what = _KINDS[kind]
    if value is None:
        return None
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise SymbolicValueError(f"parse_args: expected {what}, got {value}") from None
