"""Relations between types: which values fit where, and what two paths have in common."""

from __future__ import annotations

from weft.jit.ir.named_types import Argument, ClassType, FunctionSchema, InterfaceType
from weft.jit.ir.type_classes import (
    ANY,
    NONE,
    NUMBER,
    FutureType,
    OptionalType,
    TupleType,
    Type,
    TypeVar,
    UnionType,
    members_of,
    non_none,
    optional_of,
)


def is_subtype(a: Type, b: Type) -> bool:
    """Whether every value of `a` is one of `b`. Lists and dicts are invariant, tuples covariant.

    >>> from weft.jit.ir.types import INT, ListType
    >>> is_subtype(INT, OptionalType(INT)), is_subtype(ListType(INT), ListType(NUMBER))
    (True, False)
    """
    if a == b or b == ANY:
        return True
    if isinstance(a, (OptionalType, UnionType)) or a == NUMBER:
        return all(is_subtype(member, b) for member in members_of(a))
    if isinstance(b, (OptionalType, UnionType)) or b == NUMBER:
        inside = (b.elem, NONE) if isinstance(b, OptionalType) else members_of(b)
        return any(is_subtype(a, member) for member in inside)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        named = b.name is None or a.name == b.name
        return named and len(a.elems) == len(b.elems) and all(map(is_subtype, a.elems, b.elems))
    if isinstance(a, FutureType) and isinstance(b, FutureType):
        return is_subtype(a.elem, b.elem)
    if isinstance(b, InterfaceType):
        return _implements(a, b)
    return False


def _implements(a: Type, interface: InterfaceType) -> bool:
    """Whether a class (or another interface) has every method of the interface."""
    if isinstance(a, ClassType):
        have = {name: method.schema for name, method in a.methods.items()}
        skip = 1
    elif isinstance(a, InterfaceType):
        have, skip = dict(a.methods), 0
    else:
        return False
    if interface.is_module and not a.is_module:
        return False
    return all(
        name in have and _fits(have[name], have[name].args[skip:], want)
        for name, want in interface.methods.items()
    )


def _fits(have: FunctionSchema, args: tuple[Argument, ...], want: FunctionSchema) -> bool:
    """Whether a method can stand for the one an interface asks for."""
    if len(args) != len(want.args) or not is_subtype(have.returns, want.returns):
        return False
    pairs = zip(args, want.args)
    return all(a.name == w.name and is_subtype(w.type, a.type) for a, w in pairs)


def unify(a: Type, b: Type) -> Type | None:
    """The type of a value that is `a` on one path and `b` on another; None if there is none.

    >>> from weft.jit.ir.types import FLOAT, INT
    >>> unify(INT, NONE), unify(INT, FLOAT)
    (int?, None)
    """
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if NONE in (a, b) or isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner = _unify_plain(non_none(a), non_none(b))
        return None if inner is None else optional_of(inner)
    return _unify_plain(a, b)


def _unify_plain(a: Type, b: Type) -> Type | None:
    if a == NONE or b == NONE:
        return b if a == NONE else a
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elems) == len(b.elems):
        parts = [unify(x, y) for x, y in zip(a.elems, b.elems)]
        known = [part for part in parts if part is not None]
        return TupleType(tuple(known)) if len(known) == len(parts) else None
    return None


def substitute(t: Type, bindings: dict[str, Type]) -> Type:
    """The type with its type variables replaced; unbound ones stay.

    >>> from weft.jit.ir.types import INT, ListType
    >>> substitute(ListType(TypeVar("t")), {"t": INT})
    int[]
    """
    if isinstance(t, TypeVar):
        return bindings.get(t.name, t)
    if not t.children:
        return t
    return t.rebuild(tuple(substitute(child, bindings) for child in t.children))


def bind(formal: Type, actual: Type, bindings: dict[str, Type]) -> bool:
    """Whether a value of the type `actual` may be passed for `formal`, the type of an argument of a
    schema. Type variables are bound on the way, the same variable always to one type.

    >>> from weft.jit.ir.types import INT, ListType
    >>> bindings = {}
    >>> bind(ListType(TypeVar("t")), ListType(INT), bindings), bindings
    (True, {'t': int})
    """
    if isinstance(formal, TypeVar):
        known = bindings.setdefault(formal.name, actual)
        if is_subtype(actual, known):
            return True
        wider = unify(known, actual)
        if wider is not None:
            bindings[formal.name] = wider
        return wider is not None
    if isinstance(formal, OptionalType) and has_variables(formal):
        return actual == NONE or bind(formal.elem, non_none(actual), bindings)
    if type(formal) is type(actual) and has_variables(formal):
        pairs = zip(formal.children, actual.children)
        same = len(formal.children) == len(actual.children)
        return same and all(bind(f, a, bindings) for f, a in pairs)
    return is_subtype(actual, formal)


def has_variables(t: Type) -> bool:
    """Whether a type variable is among its parts."""
    return isinstance(t, TypeVar) or any(map(has_variables, t.children))
