"""What tuples and NamedTuples have besides items: _replace, _fields, index, count, and the methods,
properties and __new__ that a NamedTuple class defines."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from weft.jit import python_classes
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.assignment import take_apart
from weft.jit.frontend.language.attributes import refuse_attribute
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.generic import call_template, template_of
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import compiling, fail
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.classes import named_tuple_type
from weft.jit.frontend.types.parameters import Parameter
from weft.jit.frontend.types.python_values import static_attribute
from weft.jit.frontend.values import Call, Known, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


def _python_class(type: ty.TupleType) -> Any:
    return python_classes.find(type.name) if type.name and type.fields else None


def _own(cls: Any, name: str) -> Any:
    """What a NamedTuple class defines by itself, or MISSING."""
    found = static_attribute(cls, name, MISSING)
    is_inherited = found is static_attribute(tuple, name, MISSING)
    return MISSING if is_inherited or name.startswith("_") else found


@verb(("has_attr", ty.TupleType))
def has_tuple_attribute(type: ty.TupleType, name: str) -> bool:
    """Whether tuples of the type have a field or more by that name."""
    known = ("index", "count", *type.fields)
    if name in known or (type.fields and name in ("_replace", "_fields")):
        return True
    cls = _python_class(type)
    return cls is not None and _own(cls, name) is not MISSING


@verb(("get_attr", ty.TupleType))
def tuple_attribute(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared:
    """v.name for a tuple."""
    assert isinstance(v.type, ty.TupleType)
    if name in v.type.fields:
        return c.unpack_tuple(v, range)[v.type.fields.index(name)]
    return _besides_fields(c, v, name, range) or refuse_attribute(v.type, name, range)


def _besides_fields(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared | None:
    assert isinstance(v.type, ty.TupleType)
    method = tuple_method(v, name)
    if method is not None:
        return method
    cls = _python_class(v.type)
    if cls is None:
        return None
    if name == "_fields":
        return c.sugar(cls._fields, range, name)
    found = _own(cls, name)
    if isinstance(found, property) and found.fget is not None:
        return TupleFunction(cls, found.fget, Simple(v)).call(c, Call(range))
    if isinstance(found, FunctionType):
        return TupleFunction(cls, found, Simple(v))
    return None if found is MISSING else class_member(c, NamedTupleClass(cls), range, name)


def class_member(c: Compiler, owner: NamedTupleClass, range: SourceRange, name: str) -> Sugared:
    """Cls.name of a NamedTuple class: a static or class method, a constant, the names of fields."""
    cls = owner.cls
    found = static_attribute(cls, name, MISSING)
    if name == "_fields":
        return c.sugar(found, range, name)
    if name == "_make":
        return Known("the method _make of a tuple", lambda c, call: _made(c, owner, call))
    if isinstance(found, classmethod):
        return TupleFunction(cls, found.__func__, owner)
    if isinstance(found, staticmethod):
        return c.sugar(found.__func__, range, f"{cls.__name__}.{name}")
    if found is MISSING or name.startswith("_") or name in cls._fields:  # type: ignore[attr-defined]
        fail(f"expected an attribute of the NamedTuple {cls.__name__}, got {name!r}", range)
    if isinstance(found, FunctionType):
        return TupleFunction(cls, found, None)
    return c.sugar(found, range, f"{cls.__name__}.{name}")


class NamedTupleClass(Sugared):
    """A NamedTuple class: its constructor."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the NamedTuple {self.cls.__name__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        """Does what its __new__ does."""
        return TupleNew(self.cls).call(c, call.behind(self)._replace(hint=None))

    def construct(self, c: Compiler, call: Call) -> Sugared:
        """A tuple of the arguments."""
        made = named_tuple_type(self.cls, call.range)
        defaults: dict[str, Any] = getattr(self.cls, "_field_defaults", {})
        parameters = [
            Parameter(field, type_, defaults.get(field), field in defaults)
            for field, type_ in zip(made.fields, made.elems)
        ]
        values = convert_arguments(c, self.cls.__name__, parameters, call)
        return Simple(c.emit("prim::TupleConstruct", values, made, range=call.range))

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        is_new = name == "__new__"
        return TupleNew(self.cls) if is_new else class_member(c, self, range, name)

    def has_attr(self, c: Compiler, name: str) -> bool:
        return hasattr(self.cls, name)

    def key(self) -> Any:
        return self.cls


class TupleFunction(Sugared):
    """A function in the body of a NamedTuple class, with what it is called for."""

    def __init__(self, cls: Any, function: Any, owner: Sugared | None) -> None:
        self.cls, self.function, self.owner = cls, function, owner

    def describe(self) -> str:
        return f"the method {self.function.__qualname__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        with compiling(self.function.__qualname__, c.name, call.range):
            template = template_of(self.function, is_method=True)
            owner, given = self.owner, call.args
            if owner is None:  # Cls.method(object)
                call.expect_count(self.function.__name__, 1, 1000)
                owner, given = call.args[0].value, call.args[1:]
            return call_template(c, template, call._replace(args=given), owner)


def tuple_method(v: Value, name: str) -> Sugared | None:
    """t.index, t.count and t._replace."""
    assert isinstance(v.type, ty.TupleType)
    if name == "_replace" and v.type.fields:
        return Known("the method _replace of a tuple", lambda c, call: _replaced(c, v, call))
    if name in ("index", "count"):
        what = f"the method {name} of a tuple"
        return Known(what, lambda c, call: _as_of_list(c, v, name, call))
    return None


def _as_of_list(c: Compiler, v: Value, name: str, call: Call) -> Sugared:
    call.expect_no_keywords(name)
    call.expect_count(name, 1, 1)
    items = list(c.unpack_tuple(v, call.range))
    return Simple(c.make_list(items, None, call.range)).attr(c, call.range, name).call(c, call)


def _replaced(c: Compiler, v: Value, call: Call) -> Sugared:
    """t._replace(field=value)."""
    made = v.type
    assert isinstance(made, ty.TupleType)
    call.expect_count("_replace", 0, 0)
    items = Call.of(call.range, *c.unpack_tuple(v, call.range)).args
    given = {**dict(zip(made.fields, items)), **call.kwargs}
    parameters = [Parameter(f, type_) for f, type_ in zip(made.fields, made.elems)]
    values = convert_arguments(c, "_replace", parameters, call._replace(kwargs=given))
    return Simple(c.emit("prim::TupleConstruct", values, made, range=call.range))


def _made(c: Compiler, owner: NamedTupleClass, call: Call) -> Sugared:
    """Cls._make(items)."""
    call.expect_no_keywords("_make")
    call.expect_count("_make", 1, 1)
    held = call.args[0].value
    items = held.unrolled(c, call.range)
    if items is None:
        fields = owner.cls._fields  # type: ignore[attr-defined]
        items = take_apart(c, held, len(fields), call.range, "_make")
    return owner.call(c, Call.of(call.range, *items))


# A __new__ in the class ------------------------------------------------------------------------


class TupleNew(Sugared):
    """Cls.__new__(cls, ...): what is written in the body of Cls or of its bases."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the function {self.cls.__name__}.__new__"

    def call(self, c: Compiler, call: Call) -> Sugared:
        made = call.args[0].value if call.args else None
        if not isinstance(made, NamedTupleClass):
            fail("__new__: expected a NamedTuple class as first argument, got none", call.range)
        writer = next(base for base in self.cls.__mro__ if "__new__" in vars(base))
        rest = call._replace(args=call.args[1:], hint=None)
        if "_fields" in vars(writer):  # namedtuple made both
            return made.construct(c, rest)
        before, c.owner = c.owner, SuperOfNew(writer)
        try:
            written = TupleFunction(writer, vars(writer)["__new__"].__func__, made)
            return written.call(c, rest)
        finally:
            c.owner = before


class SuperOfNew(Sugared):
    """super() inside of __new__."""

    def __init__(self, after: type) -> None:
        self.after = after

    def describe(self) -> str:
        return "super()"

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name != "__new__":
            fail(f"super(): expected __new__ inside of __new__, got {name!r}", range)
        return TupleNew(self.after.__mro__[1])
