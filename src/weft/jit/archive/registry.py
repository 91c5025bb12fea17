"""weft.jit.register_operator: operators that archives call, by users."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from weft.jit.archive.functions import COMPOSED
from weft.jit.archive.operators import is_known
from weft.library._operator import OPERATORS, PROVIDED

_registered: set[str] = set()


def has_operators_of_users() -> bool:
    """Whether the process has operators of others than weft."""
    return bool(_registered or OPERATORS.keys() - PROVIDED)


def register_operator(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Gives the operator of a name, as "mylib::op", a function: programs of archives loaded from
    now on call it for `ops.mylib.op`. With the name alone it is a decorator.

    The function is compiled as `script` compiles, or called in Python where `@ignore` marks it; it
    takes the operator's arguments in their order. Registering a name again replaces the function.

    ValueError for names of another form and for operators that weft has; TypeError for what is no
    function.

    >>> import weft
    >>> @weft.jit.register_operator("mylib::twice")
    ... def twice(x: weft.Tensor) -> weft.Tensor:
    ...     return x * 2
    """
    if function is None:
        return lambda function: register_operator(name, function)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name):
        raise ValueError(f"register_operator: expected a name as 'mylib::op', got {name!r}")
    if not callable(function):
        raise TypeError(f"register_operator: expected a function, got {type(function).__name__}")
    if name not in _registered and is_known(name):
        raise ValueError(f"register_operator: expected an operator weft has not, got {name!r}")
    _registered.add(name)
    COMPOSED[name] = [function]
    return function
