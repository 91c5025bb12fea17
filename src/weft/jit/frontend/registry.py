"""Which function compiles what. A rule registers itself under what it compiles, and the compiler
looks it up: neither the compiler nor a rule imports the files of other rules. The package imports
all of them (weft/jit/frontend/__init__.py), so a rule is there before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft._runtime.rules import Rules

F = TypeVar("F", bound=Callable[..., Any])


expression = Rules()
"""rule(c, node, hint) -> Sugared, by the class of an expression."""

statement = Rules()
"""rule(c, node) -> exits, by the class of a statement. An `if` has none: what follows it may belong
to one of its branches (statements.py)."""

verb = Rules()
"""What the compiler does by a rule, by the name of its method, or by that and the class of the type
of the value that it is done to."""

method = Rules()
"""rule(c, v, call) -> Sugared or None, by a type and the name of its method: those that are more
than the operator of their name. None: this call is not."""

CONVERSIONS = (
    *("bfloat16", "bool", "byte", "cdouble", "cfloat", "chalf", "char", "double", "float", "half"),
    *("int", "long", "short", "type"),
)

# What is called by its Python object: len, print, math.prod.
_builtins: dict[Any, tuple[str, Callable[..., Any]]] = {}


def builtin(
    *objects: Any,
    name: str = "",
    takes: int | tuple[int, int] | None = None,
    keywords: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Registers the rule of Python objects: rule(c, call) -> Sugared. `takes` is how many arguments
    by position there may be, and then of others only `keywords`; None: the rule looks itself."""

    def register(rule: F) -> F:
        for obj in objects:
            known = name or getattr(obj, "__name__", str(obj))
            checked = rule if takes is None else _checked(rule, known, takes, keywords)
            # Imported while weft.fx traces, which has another function in the place of math.sqrt.
            _builtins[getattr(obj, "_weft_recorded", obj)] = (known, checked)
        return rule

    return register


def _checked(
    rule: Callable[..., Any], name: str, takes: int | tuple[int, int], keywords: tuple[str, ...]
) -> Callable[..., Any]:
    low, high = takes if isinstance(takes, tuple) else (takes, takes)

    def run(c: Any, call: Any) -> Any:
        call.expect_no_keywords(name, *keywords)
        call.expect_count(name, low, high)
        return rule(c, call)

    return run


def find_builtin(obj: Any) -> tuple[str, Callable[..., Any]] | None:
    """The name and the rule of a Python object, or None."""
    if getattr(obj, "__module__", None) == "dataclasses":  # which is slow to import
        obj = ("dataclasses", getattr(obj, "__name__", ""))
    try:
        return _builtins.get(obj)
    except TypeError:
        return None
