"""Python classes as types: script classes, dataclasses, enums, NamedTuples, interfaces."""

from __future__ import annotations

import ast
import enum
from types import FunctionType
from typing import Any

from weft._runtime import lazy
from weft._runtime.annotations import OF_PYTHON, annotations_in
from weft._runtime.public import weft
from weft.jit import memo, python_classes
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.code import Code, function_definition
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.source.resolver import MISSING, resolver_of_class, resolver_of_function
from weft.jit.frontend.types.annotations import Annotations, type_of_value
from weft.jit.frontend.types.names import (
    is_library_layer,
    qualified_name,
    static_attribute,
    unique_name,
)
from weft.jit.frontend.types.signatures import Compiled, defaults_of, signature_of, type_or_tensor
from weft.jit.frontend.values import Simple, Sugared
from weft.jit.ir import types as ty

dataclasses = lazy.module("dataclasses")  # slow to import; who has a dataclass has done it


class ClassInfo:
    """What the compiler knows of a class: the Python class and its compiled methods."""

    def __init__(self, type: ty.ClassType, python_class: type) -> None:
        self.type = type
        self.python_class = python_class
        self.compiled: dict[str, Compiled] = {}
        self.extra: dict[str, Any] = {}  # names where script() was called
        self.open = True  # its __init__ has not been compiled: attributes may still be added
        self.assigned: set[str] = set()  # what methods set that have been compiled so far
        self.unset: dict[str, ty.Type] = {}  # what __init__ sets on some paths only, None before

    def names(self) -> dict[str, Any]:
        """The class and its bases by name: a class is not a global yet while it is decorated."""
        return {base.__name__: base for base in reversed(self.python_class.__mro__[:-1])}

    def find(self, name: str) -> Any:
        """The class attribute of that name as it stands in the class, or MISSING."""
        return static_attribute(self.python_class, name, MISSING)


def known_info(type: ty.Type) -> ClassInfo | None:
    """What the compiler knows of a class type; None for other types and types without source."""
    return type.info if isinstance(type, ty.ClassType) else None


def python_class_of(type: ty.Type) -> type | None:
    """The Python class behind a class type."""
    info = known_info(type)
    return None if info is None else info.python_class


@verb("type_of_class")
def type_of_class(cls: type, range: Any = None) -> ty.Type:
    """The type of instances of a Python class used as annotation."""
    if issubclass(cls, enum.Enum):
        return enum_type(cls, range)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return named_tuple_type(cls, range)
    if is_interface(cls):
        return interface_type(cls)
    if issubclass(cls, weft.nn.Module):
        known = memo.known(cls)  # of an archive: a reference to what its modules keep
        info = None if known is None else known()
        if info is not None:
            return info.type
        fail(
            f"annotation: expected a type of the language, got the module class {cls.__name__}",
            range,
            "an interface: a class marked @weft.jit.interface with the methods that are called",
        )
    if cls.__module__ in ("builtins", "typing", "collections", "collections.abc", "numpy"):
        fail(
            f"annotation: expected a type of the language, got {cls.__module__}.{cls.__qualname__}",
            range,
            {"set": "Dict[T, bool]", "bytes": "str", "slice": "int"}.get(cls.__name__),
        )
    return class_info(cls, range).type


# Enums ----------------------------------------------------------------------------------------


def enum_type(cls: type[enum.Enum], range: Any) -> ty.EnumType:
    """The type of an enum, whose values must be of one type."""
    known = memo.known(cls)
    if known is not None:
        return known
    members = [(member.name, member.value) for member in cls]
    types = {type_of_value(value) for _, value in members}
    if len(types) != 1 or not types <= {ty.INT, ty.FLOAT, ty.STR}:
        shown = ", ".join(sorted(type(value).__name__ for _, value in members)) or "no members"
        fail(f"{cls.__name__}: expected an enum of ints, of floats or of strs, got {shown}", range)
    plain: dict[Any, Any] = {ty.INT: int, ty.FLOAT: float, ty.STR: str}
    (value_type,) = types
    assert value_type is not None
    convert = plain[value_type]
    pairs = tuple((name, convert(value)) for name, value in members)
    made = ty.EnumType(unique_name(qualified_name(cls), cls), value_type, pairs)
    memo.keep(cls, made)
    python_classes.register(made.name, cls)
    return made


# NamedTuples ----------------------------------------------------------------------------------


def named_tuple_type(cls: type, range: Any) -> ty.TupleType:
    """The type of a NamedTuple; fields without annotation hold tensors."""
    known = memo.known(cls)
    if known is not None:
        return known
    fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
    types = [declared_types(cls).get(field, ty.TENSOR) for field in fields]
    name = unique_name(qualified_name(cls), cls)
    made = ty.TupleType(tuple(types), name, tuple(fields))
    memo.keep(cls, made)
    python_classes.register(name, cls)
    return made


# Script classes -------------------------------------------------------------------------------


def annotations_of(cls: type, extra: dict[str, Any] | None = None) -> Annotations:
    """A reader of the annotations in a class body. It has no source: messages name the class."""
    text, name = f"class {cls.__name__}: ...\n", f"<annotations of {cls.__qualname__}>"
    code = Code(text, name, 1, tree=ast.Module([], []))
    return Annotations(code, resolver_of_class(cls, extra or {}))


def declared_types(cls: type, extra: dict[str, Any] | None = None) -> dict[str, ty.Type]:
    """The types that the bodies of a class and its bases declare for attributes."""
    found: dict[str, ty.Type] = {}
    for name, (base, annotation) in written_annotations(cls).items():
        made = annotations_of(base, extra).of_object(annotation)
        if isinstance(made, ty.Type):
            found[name] = made
    return found


def written_annotations(cls: type) -> dict[str, tuple[type, Any]]:
    """Annotations in the bodies of a class and its bases, bases first, not evaluated: by the name
    of the attribute the class whose names they use, and the annotation. Those of the library's
    layers are for readers."""
    found: dict[str, tuple[type, Any]] = {}
    for base in reversed(cls.__mro__):
        if base is object or is_library_layer(base):
            continue
        found.update({name: (base, each) for name, each in annotations_in(base).items()})
    return found


def is_dataclass(cls: type) -> bool:
    """Whether @dataclass made the class."""
    return hasattr(cls, "__dataclass_fields__")


def dataclass_fields(cls: type) -> tuple[Any, ...]:
    """The fields of a dataclass: dataclasses.Field objects."""
    return dataclasses.fields(cls)


def init_vars(cls: Any) -> list[Any]:
    """The arguments of a dataclass that are no fields: __post_init__ gets them."""
    return [f for f in cls.__dataclass_fields__.values() if f._field_type.name == "_FIELD_INITVAR"]


def class_info(cls: type, range: Any = None, extra: dict[str, Any] | None = None) -> ClassInfo:
    """The compiled form of a class: its type, with the attributes that __init__ sets."""
    known = memo.known(cls)
    if known is not None:
        return known
    if cls.__module__.partition(".")[0] == "weft" and not hasattr(cls, "__weft_script__"):
        fail(f"expected a class of the program, got {cls.__module__}.{cls.__name__}", range)
    info = ClassInfo(ty.ClassType(unique_name(qualified_name(cls), cls)), cls)
    info.extra = extra or {}
    memo.keep(cls, info)
    info.type.info = info
    verb["register_class"](info.type.name, cls)
    try:
        _declare(info, extra)
    except FrontendError:
        memo.forget(cls)
        raise
    return info


def _declare(info: ClassInfo, extra: dict[str, Any] | None) -> None:
    cls = info.python_class
    for name, type_ in declared_types(cls, extra).items():
        info.type.attributes[name] = ty.Attribute(type_)
    if is_dataclass(cls):
        names = {field.name for field in dataclass_fields(cls)}
        info.type.attributes = {k: v for k, v in info.type.attributes.items() if k in names}
        if isinstance(info.find("__post_init__"), FunctionType):  # which may set further ones
            verb["compile_method"](info, "__post_init__", "", None)
    elif isinstance(info.find("__init__"), FunctionType):
        verb["compile_method"](info, "__init__", "", None)
        for name in info.type.attributes.keys() - info.assigned:  # declared, and not there
            del info.type.attributes[name]
    info.open = False


# Interfaces -----------------------------------------------------------------------------------


def is_interface(cls: type) -> bool:
    """Whether a class was marked @interface."""
    return "__weft_interface__" in vars(cls)


def interface_type(cls: type) -> ty.InterfaceType:
    """The type of an interface class."""
    known = memo.known(cls)
    if known is not None:
        return known
    made = ty.InterfaceType(unique_name(qualified_name(cls), cls))
    made.is_module = issubclass(cls, weft.nn.Module)
    memo.keep(cls, made)
    for base in reversed(cls.__mro__):
        if base is object or is_library_layer(base):
            continue
        for name, member in vars(base).items():
            if isinstance(member, FunctionType) and name not in OF_PYTHON:
                made.methods[name] = _schema(member)
    return made


def _schema(function: Any) -> ty.FunctionSchema:
    node, code = function_definition(function, "a method")
    annotations = Annotations(code, resolver_of_function(function))
    signature = signature_of(node, code, annotations, defaults_of(function), True)
    if signature.returns is None:
        fail(
            f"{function.__qualname__}: expected a return annotation in an interface, got none",
            code.range(node),
            f"def {node.name}(...) -> Tensor",
        )
    args = tuple(
        ty.Argument(
            each.name,
            type_or_tensor(each, code),
            each.default if each.has_default else None,
            each.has_default,
        )
        for each in signature.parameters[1:]
    )
    return ty.FunctionSchema(node.name, args, signature.returns)


def implement(type: ty.Type, interface: ty.InterfaceType) -> None:
    """Compiles the methods of a class that an interface asks for."""
    info = known_info(type)
    if info is None or (interface.is_module and not info.type.is_module):
        return
    for name in interface.methods:
        if isinstance(info.find(name), FunctionType) and name not in info.compiled:
            verb["compile_method"](info, name, "", None)


def info_of(type: ty.Type) -> ClassInfo:
    """What the compiler knows of a class type."""
    assert isinstance(type, ty.ClassType)
    assert isinstance(type.info, ClassInfo)
    return type.info


def is_property(owner: Sugared, name: str) -> bool:
    """Whether owner.name is a property of its class."""
    if not isinstance(owner, Simple) or not isinstance(owner.v.type, ty.ClassType):
        return False
    info = known_info(owner.v.type)
    return info is not None and isinstance(info.find(name), property)
