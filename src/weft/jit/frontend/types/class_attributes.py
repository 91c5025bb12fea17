"""Attributes and methods of objects, modules among them, and how methods are compiled."""

from __future__ import annotations

import ast
import functools
from types import FunctionType, GetSetDescriptorType
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.objects import ignored_value
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.class_methods import ClassMethod, Method, ReadyMethod
from weft.jit.frontend.types.classes import ClassInfo, info_of, known_info
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.frontend.types.modules import module_item, module_member, overrides
from weft.jit.frontend.types.names import static_attribute
from weft.jit.frontend.values import Call, Known, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

# Reading and writing --------------------------------------------------------------------------


@verb(("get_attr", ty.ClassType))
def class_attribute(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared:
    """v.name for an object."""
    assert isinstance(v.type, ty.ClassType)
    info = known_info(v.type)
    declared = v.type.attributes.get(name)
    if declared is not None and declared.kind == "constant":
        return c.sugar(declared.value, range, name)
    if declared is not None:
        if declared.type is ty.NONE:
            return c.none()
        value = c.emit("prim::GetAttr", (v,), declared.type, {"name": name}, range)
        return Simple(value if info is None else _set_value(c, info, value, name, range))
    if info is None:
        if name in v.type.methods:
            return ReadyMethod(v, name)
        fail(f"{v.type.name}: expected an attribute it has, got {name!r}", range)
    if isinstance(info, ModuleInfo):
        found = module_member(c, info, v, name, range)
        if found is not None:
            return found
    return member(c, info, v, info.find(name), name, range)


def _set_value(c: Compiler, info: ClassInfo, value: Value, name: str, range: SourceRange) -> Value:
    """The value of an attribute; AttributeError where __init__ took a path that does not set it."""
    known = info.unset.get(name)
    if known is None:
        return value

    def missing() -> Value:
        text = f"'{info.python_class.__name__}' object has no attribute {name!r}"
        c.raise_error(AttributeError, c.constant(text), range)
        return c.uninitialized(known)

    is_unset = c.apply("aten::__is__", range, Simple(value), c.none()).value(c, range)
    return c.either(is_unset, known, missing, lambda: c.cast(value, known), range)


def member(
    c: Compiler, info: ClassInfo, v: Value, found: Any, name: str, range: SourceRange
) -> Sugared:
    """A class attribute read through an object: a method, property or constant."""
    cls = info.python_class
    if found is MISSING:
        fail(
            f"{cls.__name__}: expected an attribute it has, got {name!r}",
            range,
            f"self.{name} = ... in __init__" if info.type.is_module else None,
        )
    if isinstance(found, staticmethod):
        return c.sugar(found.__func__, range, f"{cls.__name__}.{name}")
    if isinstance(found, classmethod):
        return ClassMethod(cls, found.__func__)
    if isinstance(found, property):
        if found.fget is None:
            fail(f"{cls.__name__}.{name}: expected a property that can be read", range)
        return Method(v, name, found.fget).call(c, Call(range))
    if isinstance(found, functools.cached_property):
        return Method(v, name, found.func).call(c, Call(range))
    if isinstance(found, FunctionType):
        marked = ignored_value(found, v)
        return marked if marked is not None else Method(v, name, found)
    return c.sugar(found, range, f"{cls.__name__}.{name}")


@verb(("has_attr", ty.ClassType))
def class_has(type: ty.ClassType, name: str) -> bool:
    """Whether objects of the class have the attribute."""
    if name in type.attributes:
        return True
    info = known_info(type)
    if info is None:
        return name in type.methods
    if isinstance(info, ModuleInfo):
        return info.has(name)
    found = info.find(name)
    return found is not MISSING and found is not vars(object).get(name)


@verb(("set_attr", ty.ClassType))
def set_class_attribute(
    c: Compiler, v: Value, name: str, held: Sugared, range: SourceRange
) -> None:
    """v.name = held."""
    assert isinstance(v.type, ty.ClassType)
    info = known_info(v.type)
    declared = v.type.attributes.get(name)
    if info is not None:
        info.assigned.add(name)
    if declared is None and info is not None:
        found = info.find(name)
        if isinstance(found, property):
            if found.fset is None:
                fail(f"{name}: expected a property that can be set, got one that cannot", range)
            Method(v, f"{name}.setter", found.fset).call(c, Call.of(range, held))
            return
        if not info.open:
            _refuse_new(info, name, range)
        value = held.value(c, range)
        annotated = getattr(held, "declared", None)
        wanted = annotated or value.type
        if c.block is not c.graph.block and not ty.is_subtype(ty.NONE, wanted):
            info.unset[name], wanted = wanted, ty.optional_of(wanted)
        info.type.attributes[name] = declared = ty.Attribute(wanted)
    if declared is None:
        fail(f"{v.type.name}: expected an attribute it has, got {name!r}", range)
    if declared.kind == "constant":
        fail(
            f"{name}: expected an attribute that may change, got the constant {name}",
            range,
            f"{name} without Final and without __constants__",
        )
    wanted = declared.type if info is None else info.unset.get(name, declared.type)
    value = c.convert(held, wanted, range, name, strict=True)
    c.node("prim::SetAttr", (v, value), (), {"name": name}, range)


def _refuse_new(info: ClassInfo, name: str, range: SourceRange) -> None:
    cls = info.python_class.__name__
    fail(
        f"{cls}: expected an attribute that __init__ sets, got the new attribute {name!r}",
        range,
        f"self.{name}: T = ... in __init__",
    )


# Methods --------------------------------------------------------------------------------------


def call_method(c: Compiler, v: Value, name: str, call: Call) -> Sugared:
    """v.name(...)."""
    return c.get_attr(v, name, call.range).call(c, call)


def of_class(c: Compiler, cls: type, range: SourceRange, name: str) -> Sugared:
    """Cls.name: a static method, class method, constant, or a method called with its object."""
    found = static_attribute(cls, name, static_attribute(type(cls), name, MISSING))
    if isinstance(found, GetSetDescriptorType):  # what every class tells of itself, as __name__
        found = getattr(cls, name)
    if found is MISSING:
        fail(f"{cls.__name__}: expected an attribute it has, got {name!r}", range)
    if isinstance(found, staticmethod):
        return c.sugar(found.__func__, range, f"{cls.__name__}.{name}")
    if isinstance(found, classmethod):
        return ClassMethod(cls, found.__func__)
    if isinstance(found, FunctionType):
        return UnboundMethod(cls, name, found)
    return c.sugar(found, range, f"{cls.__name__}.{name}")


class UnboundMethod(Sugared):
    """Base.method: called with the object first, as in Base.__init__(self)."""

    def __init__(self, cls: type, name: str, function: Any) -> None:
        self.cls, self.name, self.function = cls, name, function

    def call(self, c: Compiler, call: Call) -> Sugared:
        range, args = call.range, call.args
        if not args or not isinstance(c.type_of(args[0].value, range), ty.ClassType):
            fail(f"{self.cls.__name__}.{self.name}: expected an object as first argument", range)
        method = of_base(args[0].value.value(c, range), self.cls, self.name, self.function)
        return method.call(c, call._replace(args=args[1:]))


def of_base(v: Value, base: type, name: str, function: Any) -> Sugared:
    """A method of a base class, called for an object of a derived one."""
    info = info_of(v.type)
    own = static_attribute(info.python_class, name, None)
    kept = name if own is function else f"{base.__name__}__{name}"
    return Method(v, kept, function)


class Super(Sugared):
    """super(): the attributes of the classes behind the one a method stands in."""

    what = "super()"

    def __init__(self, v: Value, after: type) -> None:
        self.v, self.after = v, after

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        info = info_of(self.v.type)
        order = info.python_class.__mro__
        for base in order[order.index(self.after) + 1 :]:
            if name not in vars(base):
                continue
            found = vars(base)[name]
            if base is object and name == "__init__":
                return Known("object.__init__", lambda c, call: c.none())
            if isinstance(found, FunctionType):
                return of_base(self.v, base, name, found)
            return member(c, info, self.v, found, name, range)
        fail(f"super(): expected an attribute of a base class, got {name!r}", range)


@verb("super_of")
def super_of(c: Compiler, node: ast.Call) -> Sugared:
    """super() or super(Cls, self) inside a method."""
    if isinstance(c.owner, Sugared):  # inside of a NamedTuple's __new__
        return c.owner
    range = c.range(node)
    first = next(iter(c.graph.inputs), None)
    if c.owner is None or first is None or not isinstance(first.type, ty.ClassType):
        fail("super: expected it inside a method, got it elsewhere", range)
    return Super(first, c.owner)


@verb(("get_item", ty.ClassType))
def container_item(
    c: Compiler, owner: Sugared, index: Sugared, range: SourceRange, hint: ty.Type | None
) -> Sugared:
    """owner[index] for an object: a container of modules, or one with __getitem__."""
    v = owner.value(c, range)
    info = info_of(v.type)
    is_container = isinstance(info, ModuleInfo) and info.container is not None
    if isinstance(info, ModuleInfo) and is_container and not overrides(info, "__getitem__"):
        return module_item(c, info, v, index, range, hint)
    if not class_has(info.type, "__getitem__"):
        fail(f"[]: expected something with items, got {info.python_class.__name__}", range)
    return c.get_attr(v, "__getitem__", range).call(c, Call.of(range, index))


@verb(("get_attr", ty.InterfaceType))
def interface_method(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared:
    """v.name for a value of an interface."""
    assert isinstance(v.type, ty.InterfaceType)
    if name not in v.type.methods:
        have = ", ".join(v.type.methods) or "none"
        fail(f"{v.type.name}: expected one of its methods ({have}), got {name!r}", range)
    return ReadyMethod(v, name)


@verb(("has_attr", ty.InterfaceType))
def has_interface_method(type: ty.InterfaceType, name: str) -> bool:
    """Whether the interface has the method."""
    return name in type.methods
