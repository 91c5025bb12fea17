"""Pickles of the operators' functions: names, under which another process finds them."""

from __future__ import annotations

from typing import Any

from weft import _C

_PLACES = ("_nn", "_aten")  # of operators that the public package does not show by their own names


def _function(place: str, name: str) -> Any:
    return getattr(getattr(_C, place), name)


def reduced(function: Any) -> str | tuple[Any, ...]:
    """What `copyreg` wants of an operator's function. TypeError for one without a name."""
    name = function.__qualname__
    if getattr(_C, name, None) is function:
        return name
    for place in _PLACES:
        if getattr(getattr(_C, place), name, None) is function:
            return _function, (place, name)
    raise TypeError(f"pickle: expected a function that has a name, got {function!r}")
