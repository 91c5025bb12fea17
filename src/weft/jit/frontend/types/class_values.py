"""Classes in a program: their constructors, members of enums; named tuples."""

from __future__ import annotations

import enum
from types import FunctionType
from typing import Any

from weft._runtime.public import weft
from weft._tensor import legacy_types
from weft.amp.autocast_mode import autocast
from weft.jit import python_classes
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.assignment import take_apart
from weft.jit.frontend.language.attributes import refuse_attribute
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.context_managers import MANAGERS, AutocastClass, ManagerClass
from weft.jit.frontend.language.conversions import enum_constant
from weft.jit.frontend.language.generic import call_template, template_of
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import compiling, fail
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.class_attributes import call_method, of_class
from weft.jit.frontend.types.classes import (
    ClassInfo,
    class_info,
    dataclass_fields,
    declared_types,
    enum_type,
    init_vars,
    is_dataclass,
    named_tuple_type,
    written_annotations,
)
from weft.jit.frontend.types.names import is_written, static_attribute
from weft.jit.frontend.types.signatures import Parameter
from weft.jit.frontend.values import Arg, Call, Known, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


class _OfClass(Sugared):
    """A class of the program; messages call it `what` and its name."""

    what = "the class"

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"{self.what} {self.cls.__name__}"

    def has_attr(self, c: Compiler, name: str) -> bool:
        return hasattr(self.cls, name)

    def key(self) -> Any:
        return self.cls


class EnumClass(_OfClass):
    """An enum class: E.A, E["A"], for e in E."""

    what = "the enum"

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        members: Any = self.cls.__members__
        if name not in members:
            fail(f"{self.cls.__name__}: expected one of {', '.join(members)}, got {name!r}", range)
        return Simple(enum_constant(c, members[name], range))

    def has_attr(self, c: Compiler, name: str) -> bool:
        return name in self.cls.__members__

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        known = index.static(c)
        if not isinstance(known, str):
            fail(f"{self.cls.__name__}: expected a name known while compiling, got another", range)
        return self.attr(c, range, known)

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        return [self.attr(c, range, member.name) for member in self.cls]

    def call(self, c: Compiler, call: Call) -> Sugared:
        """E(value): the member of a value."""
        name = self.cls.__name__
        call.expect_no_keywords(name)
        call.expect_count(name, 1, 1)
        type = enum_type(self.cls, call.range)
        given = call.args[0].value
        if isinstance(given, Simple) and given.v.type is type:
            return given
        wanted = Simple(c.convert(given, type.value_type, call.range, name, strict=True))
        held = [self.attr(c, call.range, n).value(c, call.range) for n, _ in type.members]
        values = [c.constant(value) for _, value in type.members]
        lists = [
            Simple(
                c.emit("prim::ListConstruct", items, ty.ListType(items[0].type), range=call.range)
            )
            for items in (values, held)
        ]
        return c.call(prelude.member, call.range, *lists, wanted, Simple(c.constant(name)))


class ScriptClass(_OfClass):
    """A class of the program: its constructor, static methods and constants."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        info, v = self.new(c, call)
        if is_dataclass(self.cls):
            _fill_dataclass(c, info, v, call)
        elif isinstance(info.find("__init__"), FunctionType):
            call_method(c, v, "__init__", call)
        else:
            call.expect_nothing(self.cls.__name__)
        return Simple(v)

    def new(self, c: Compiler, call: Call) -> tuple[ClassInfo, Value]:
        """An object whose attributes are not set."""
        with compiling(self.cls.__qualname__, c.name, call.range):
            info = class_info(self.cls, call.range)
        return info, c.emit("prim::CreateObject", (), info.type, range=call.range)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name == "__new__":
            return Known("__new__", self._bare)
        return of_class(c, self.cls, range, name)

    def _bare(self, c: Compiler, call: Call) -> Sugared:
        """C.__new__(C), as archives write it: an object whose attributes are not set."""
        if len(call.args) != 1 or call.args[0].value.key() is not self.cls or call.kwargs:
            fail("__new__: expected the class as its only argument", call.range)
        return Simple(self.new(c, call)[1])


class TensorsOfType(_OfClass):
    """weft.FloatTensor: FloatTensor(2, 3) has those sizes, FloatTensor([2, 3]) those items."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        call.expect_no_keywords(self.cls.__name__)
        sizes = all(c.type_of(arg.value, arg.range) is ty.INT for arg in call.args)
        if not sizes:
            call.expect_count(self.cls.__name__, 1, 1)
        numbers = [arg.value for arg in call.args] or [Simple(c.constant(0))]
        what = [Arg(TupleLiteral(numbers), call.range)] if sizes else call.args
        dtype = Arg(Simple(c.constant(self.cls.dtype)), call.range)
        function = weft.empty if sizes else weft.tensor
        made = c.sugar(function, call.range, self.cls.__name__)
        return made.call(c, call._replace(args=what, kwargs={"dtype": dtype}))


class ModuleClass(PythonObject):
    """A class of modules: Base.forward(self, x) calls its method for a module."""

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if isinstance(static_attribute(self.obj, name, None), FunctionType):
            return of_class(c, self.obj, range, name)
        return super().attr(c, range, name)


def _fill_dataclass(c: Compiler, info: ClassInfo, v: Any, call: Call) -> None:
    parameters = []
    factories: dict[str, Any] = {}
    types = {name: each.type for name, each in info.type.attributes.items()}
    only_given = init_vars(info.python_class)
    if only_given:
        types.update(declared_types(info.python_class, info.extra))
    for field in (*dataclass_fields(info.python_class), *only_given):
        if not field.init:
            continue
        has_default = True
        if callable(field.default_factory):
            factories[field.name] = field.default_factory()
        else:  # which is dataclasses.MISSING
            has_default = field.default is not field.default_factory
        default = factories.get(field.name, field.default if has_default else None)
        type_ = types[field.name]
        parameters.append(Parameter(field.name, type_, default, has_default, bool(field.kw_only)))
    order = list(written_annotations(info.python_class))
    parameters.sort(key=lambda each: order.index(each.name))
    values = convert_arguments(c, info.python_class.__name__, parameters, call)
    names, rest = [field.name for field in only_given], []
    for parameter, value in zip(parameters, values):
        if parameter.name in names:
            rest.append(Simple(value))
            continue
        c.node("prim::SetAttr", (v, value), (), {"name": parameter.name}, call.range)
    if isinstance(info.find("__post_init__"), FunctionType):
        call_method(c, v, "__post_init__", Call.of(call.range, *rest))


@verb("class_value")
def class_value(cls: type, what: str) -> Sugared:
    """What a Python class means in a program."""
    if issubclass(cls, enum.Enum):
        return EnumClass(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return NamedTupleClass(cls)

    if isinstance(cls, legacy_types._Typed):
        return TensorsOfType(cls)
    if cls in MANAGERS:
        return ManagerClass(cls)
    if issubclass(cls, autocast):
        return AutocastClass(cls)
    if issubclass(cls, weft.nn.Module):
        return ModuleClass(cls, what)
    return ScriptClass(cls) if is_written(cls) else PythonObject(cls, what)


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
    if found is MISSING or name.startswith("_") or name in cls._fields:
        fail(f"expected an attribute of the NamedTuple {cls.__name__}, got {name!r}", range)
    if isinstance(found, FunctionType):
        return TupleFunction(cls, found, None)
    return c.sugar(found, range, f"{cls.__name__}.{name}")


class NamedTupleClass(_OfClass):
    """A NamedTuple class: its constructor."""

    what = "the NamedTuple"

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
        fields = owner.cls._fields
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

    what = "super()"

    def __init__(self, after: type) -> None:
        self.after = after

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name != "__new__":
            fail(f"super(): expected __new__ inside of __new__, got {name!r}", range)
        return TupleNew(self.after.__mro__[1])
