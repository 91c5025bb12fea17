"""Objects of classes, taken apart as pickles have them."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable
from types import FunctionType
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft.nn.modules._layout import torch_layout
from weft.nn.modules.module import Module


class Reduced(NamedTuple):
    """What makes an object again: a call (or a new object without `__init__`), then its state,
    then what is appended and set in it."""

    function: Any
    arguments: tuple[Any, ...]
    state: Any = None
    items: Iterable[Any] | None = None
    pairs: Iterable[tuple[Any, Any]] | None = None


def reduce(value: Any) -> Reduced | None:
    """An object in parts; None for a class or function, which is its name.

    The state of a module has PyTorch's layout. TypeError for what no pickle can hold.
    """
    kind = type(value)
    if isinstance(value, Tensor):
        raise _refused(kind, "a subclass of Tensor; save the plain tensor")
    if isinstance(value, (type, FunctionType, _C._OpFunction)):
        return None
    special = copyreg.dispatch_table.get(kind)
    try:
        parts = special(value) if special is not None else value.__reduce_ex__(2)
    except TypeError as error:
        raise _refused(kind, str(error)) from None
    if isinstance(parts, str):
        return None
    made = Reduced(*parts[:5])
    if isinstance(value, Module):
        made = made._replace(state=torch_layout(value, made.state))
    return made


def _refused(kind: type, reason: str) -> TypeError:
    return TypeError(
        "save: expected tensors, containers and objects that can be pickled, got "
        f"{kind.__module__}.{kind.__qualname__}: {reason}"
    )
