"""Parameters of operators and functions, and functions that are compiled."""

from __future__ import annotations

from typing import Any

from weft.jit.frontend.source.errors import FrontendError, NotSupportedError
from weft.jit.frontend.source.refused import REFUSED_FORMS
from weft.jit.ir import types as ty
from weft.jit.ir.function import Function
from weft.jit.ir.graph import Graph
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange


class Parameter(NamedTuple):
    """What the matcher needs to know of a parameter; `length` is the 2 of `int[2]`."""

    name: str
    type: ty.Type
    default: Any = None
    has_default: bool = False
    kwarg_only: bool = False
    length: int | None = None
    var_list: bool = False  # trailing numbers may be given one by one: view(2, 3)
    rest: bool = False  # a tuple of all further arguments


def bind_type(formal: ty.Type, actual: ty.Type, bindings: dict[str, ty.Type]) -> bool:
    """Whether a value of type `actual` fits `formal`; type variables are bound."""
    if isinstance(formal, ty.TypeVar):
        known = bindings.get(formal.name)
        if known is None:
            bindings[formal.name] = actual
            return True
        return ty.is_subtype(actual, known)
    if isinstance(formal, ty.OptionalType):
        if actual is ty.NONE:
            return True
        return bind_type(formal.elem, ty.non_none(actual), bindings)
    if formal.children and type(formal) is type(actual) and not isinstance(formal, ty.UnionType):
        if len(formal.children) != len(actual.children):
            return False
        if not ty.has_variables(formal):
            return ty.is_subtype(actual, formal)
        return all(
            _bind_invariant(f, a, bindings) for f, a in zip(formal.children, actual.children)
        )
    return ty.is_subtype(actual, formal)


def _bind_invariant(formal: ty.Type, actual: ty.Type, bindings: dict[str, ty.Type]) -> bool:
    if isinstance(formal, ty.TypeVar):
        known = bindings.setdefault(formal.name, actual)
        return known == actual
    if ty.has_variables(formal):
        return bind_type(formal, actual, bindings)
    return formal == actual


class Compiled:
    """A function on its way to the IR, or there. `returns` is None until it is known."""

    def __init__(self, name: str, parameters: list[Parameter], returns: ty.Type | None) -> None:
        self.name = name
        self.parameters = parameters
        self.returns = returns
        self.function = Function(name, Graph(), [p.name for p in parameters])
        self.function.defaults = {p.name: p.default for p in parameters if p.has_default}
        self.function.lengths = {p.name: p.length for p in parameters if p.length is not None}
        self.error: FrontendError | None = None
        self.walk = ""  # the digest of what it depended on

    def known_return(self, range: SourceRange) -> ty.Type:
        """The return type; a function that is still being compiled must declare it."""
        if self.returns is None:
            refusal = REFUSED_FORMS["recursion"]
            raise NotSupportedError(
                f"expected syntax of the language, got {refusal.what}", range, refusal.instead
            )
        return self.returns
