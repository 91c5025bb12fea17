"""Python classes as types: script classes, dataclasses, enums, NamedTuples, interfaces."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import weft
from weft import _C
from weft.jit.frontend import written
from weft.jit.frontend.annotations import Annotations, type_of_value
from weft.jit.frontend.calls import convert_arguments
from weft.jit.frontend.conversions import Parameter, coerce
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.functions import Compiled, qualified_name
from weft.jit.frontend.python_objects import PythonObject
from weft.jit.frontend.resolver import MISSING, Resolver, resolver_of_class
from weft.jit.frontend.source import Code
from weft.jit.frontend.sugared import Call, Simple, Sugared
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import Later
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

if TYPE_CHECKING:
    import dataclasses
    import inspect
else:
    dataclasses = Later("dataclasses")
    inspect = Later("inspect")


class ClassInfo:
    """What the compiler knows of a class: the Python class and its compiled methods."""

    def __init__(self, type: ty.ClassType, python_class: type) -> None:
        self.type = type
        self.python_class = python_class
        self.compiled: dict[str, Compiled] = {}
        self.extra: dict[str, Any] = {}  # names where script() was called
        self.open = True  # its __init__ has not been compiled: attributes may still be added

    def names(self) -> dict[str, Any]:
        """The class and its bases by name: a class is not a global yet while it is decorated."""
        return {base.__name__: base for base in reversed(self.python_class.__mro__[:-1])}

    def find(self, name: str) -> Any:
        """The class attribute of that name as it stands in the class, or MISSING."""
        return inspect.getattr_static(self.python_class, name, MISSING)


_classes: dict[type, ClassInfo] = {}
_enums: dict[type, ty.EnumType] = {}
_tuples: dict[type, ty.TupleType] = {}
_names: dict[str, int] = {}


def unique_name(name: str) -> str:
    """The name, or one that tells it from an earlier class of the same name."""
    count = _names.get(name, 0)
    _names[name] = count + 1
    if not count:
        return name
    head, _, rest = name.partition(".")
    return f"{head}.___torch_mangle_{count - 1}.{rest}"


def known_info(type: ty.Type) -> ClassInfo | None:
    """What the compiler knows of a class type; None for other types and types without source."""
    return type.info if isinstance(type, ty.ClassType) else None


def python_class_of(type: ty.Type) -> type | None:
    """The Python class behind a class type."""
    info = known_info(type)
    return None if info is None else info.python_class


def type_of_class(cls: type, range: Any = None) -> ty.Type:
    """The type of instances of a Python class used as annotation."""
    from weft.jit.frontend.interfaces import interface_type, is_interface

    if issubclass(cls, enum.Enum):
        return enum_type(cls, range)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return named_tuple_type(cls, range)
    if is_interface(cls):
        return interface_type(cls)
    if issubclass(cls, weft.nn.Module):
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
    known = _enums.get(cls)
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
    made = ty.EnumType(unique_name(qualified_name(cls)), value_type, pairs)
    _enums[cls] = made
    _C._jit_types[made.name] = cls
    return made


def as_plain(e: Emitter, value: Sugared, range: Any) -> Sugared:
    """The number or text that a member of an IntEnum or a (str, Enum) is; other values as they
    are."""
    type = value.v.type if isinstance(value, Simple) else None
    if not isinstance(type, ty.EnumType):
        return value
    cls = _C._jit_types.get(type.name)
    is_plain = inspect.isclass(cls) and issubclass(cls, int | float | str)
    return value.attr(e, range, "value") if is_plain else value


class EnumClass(Sugared):
    """An enum class: E.A, E["A"], for e in E."""

    def __init__(self, cls: type[enum.Enum]) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the enum {self.cls.__name__}"

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        from weft.jit.frontend.objects import enum_constant

        members: Any = self.cls.__members__
        if name not in members:
            fail(f"{self.cls.__name__}: expected one of {', '.join(members)}, got {name!r}", range)
        return Simple(enum_constant(e, members[name], range))

    def has_attr(self, e: Emitter, name: str) -> bool:
        return name in self.cls.__members__

    def item(self, e: Emitter, range: SourceRange, index: Sugared) -> Sugared:
        known = index.static(e)
        if not isinstance(known, str):
            fail(f"{self.cls.__name__}: expected a name known while compiling, got another", range)
        return self.attr(e, range, known)

    def unrolled(self, e: Emitter, range: SourceRange) -> list[Sugared] | None:
        return [self.attr(e, range, member.name) for member in self.cls]

    def call(self, e: Emitter, call: Call) -> Sugared:
        """E(value): the member of a value."""
        name = self.cls.__name__
        call.expect_no_keywords(name)
        call.expect_count(name, 1, 1)
        type = enum_type(self.cls, call.range)
        given = call.args[0].value
        if isinstance(given, Simple) and given.v.type is type:
            return given
        wanted = Simple(coerce(e, given, type.value_type, call.range, name, strict=True))
        held = [self.attr(e, call.range, n).value(e, call.range) for n, _ in type.members]
        values = [e.constant(value) for _, value in type.members]
        lists = [
            Simple(
                e.emit("prim::ListConstruct", items, ty.ListType(items[0].type), range=call.range)
            )
            for items in (values, held)
        ]
        return call_written(e, written.member, call.range, *lists, wanted, Simple(e.constant(name)))

    def key(self) -> Any:
        return self.cls


# NamedTuples ----------------------------------------------------------------------------------


def named_tuple_type(cls: type, range: Any) -> ty.TupleType:
    """The type of a NamedTuple; fields without annotation hold tensors."""
    known = _tuples.get(cls)
    if known is not None:
        return known
    fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
    types = [declared_types(cls).get(field, ty.TENSOR) for field in fields]
    made = ty.TupleType(tuple(types), unique_name(qualified_name(cls)), tuple(fields))
    _tuples[cls] = made
    _C._jit_types[made.name] = cls
    return made


# Script classes -------------------------------------------------------------------------------


class _ClassCode:
    """Annotations of a class body are read without their source: messages name the class."""

    def __init__(self, cls: type) -> None:
        text = f"class {cls.__name__}: ...\n"
        self.code = Code(text, f"<annotations of {cls.__qualname__}>", 1)


def annotations_of(
    cls: type, extra: dict[str, Any] | None = None, generic: bool = False
) -> Annotations:
    """A reader of the annotations in a class body."""
    resolver: Resolver = resolver_of_class(cls, extra or {})
    return Annotations(_ClassCode(cls).code, resolver, generic)


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
        try:
            written = inspect.get_annotations(base)
        except Exception:  # names that do not exist: the annotation is for readers only
            continue
        found.update({name: (base, annotation) for name, annotation in written.items()})
    return found


def is_library_layer(cls: type) -> bool:
    """Whether the class stands in weft.nn.modules."""
    return cls.__module__.startswith("weft.nn.modules.")


def class_info(cls: type, range: Any = None, extra: dict[str, Any] | None = None) -> ClassInfo:
    """The compiled form of a class: its type, with the attributes that __init__ sets."""
    known = _classes.get(cls)
    if known is not None:
        return known
    if cls.__module__.partition(".")[0] == "weft" and not hasattr(cls, "__weft_script__"):
        fail(f"expected a class of the program, got {cls.__module__}.{cls.__name__}", range)
    info = ClassInfo(ty.ClassType(unique_name(qualified_name(cls))), cls)
    info.extra = extra or {}
    _classes[cls] = info
    info.type.info = info
    from weft.jit.script_class import register_class

    register_class(info.type.name, cls)
    try:
        _declare(info, extra)
    except FrontendError:
        del _classes[cls]
        raise
    return info


def _declare(info: ClassInfo, extra: dict[str, Any] | None) -> None:
    cls = info.python_class
    for name, type_ in declared_types(cls, extra).items():
        info.type.attributes[name] = ty.Attribute(type_)
    if dataclasses.is_dataclass(cls):
        names = {field.name for field in dataclasses.fields(cls)}
        info.type.attributes = {k: v for k, v in info.type.attributes.items() if k in names}
        if inspect.isfunction(info.find("__post_init__")):  # which may set further ones
            from weft.jit.frontend.class_methods import compile_method

            compile_method(info, "__post_init__", "", None)
    elif inspect.isfunction(info.find("__init__")):
        from weft.jit.frontend.class_methods import compile_method

        compile_method(info, "__init__", "", None)
    info.open = False


class ScriptClass(Sugared):
    """A class of the program: its constructor, static methods and constants."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the class {self.cls.__name__}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        from weft.jit.frontend.class_attributes import call_method

        info, v = self.new(e, call)
        if dataclasses.is_dataclass(self.cls):
            _fill_dataclass(e, info, v, call)
        elif inspect.isfunction(info.find("__init__")):
            call_method(e, v, "__init__", call)
        else:
            call.expect_nothing(self.cls.__name__)
        return Simple(v)

    def new(self, e: Emitter, call: Call) -> tuple[ClassInfo, Value]:
        """An object whose attributes are not set."""
        from weft.jit.frontend.errors import compiling

        with compiling(self.cls.__qualname__, e.name, call.range):
            info = class_info(self.cls, call.range)
        return info, e.emit("prim::CreateObject", (), info.type, range=call.range)

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        from weft.jit.frontend.class_attributes import of_class

        return New(self) if name == "__new__" else of_class(e, self.cls, range, name)

    def has_attr(self, e: Emitter, name: str) -> bool:
        return hasattr(self.cls, name)

    def key(self) -> Any:
        return self.cls


class ModuleClass(PythonObject):
    """A class of modules: Base.forward(self, x) calls its method for a module."""

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        from weft.jit.frontend.class_attributes import of_class

        return of_class(e, self.obj, range, name)


class New(Sugared):
    """C.__new__, as archives write it: C.__new__(C) is an object whose attributes are not set."""

    def __init__(self, of: ScriptClass) -> None:
        self.of = of

    def call(self, e: Emitter, call: Call) -> Sugared:
        if len(call.args) != 1 or call.args[0].value.key() is not self.of.cls or call.kwargs:
            fail("__new__: expected the class as its only argument", call.range)
        return Simple(self.of.new(e, call)[1])


def _fill_dataclass(e: Emitter, info: ClassInfo, v: Any, call: Call) -> None:
    from weft.jit.frontend.class_attributes import call_method

    parameters = []
    factories: dict[str, Any] = {}
    for field in dataclasses.fields(info.python_class):
        if not field.init:
            continue
        has_default = field.default is not dataclasses.MISSING
        if field.default_factory is not dataclasses.MISSING:
            factories[field.name] = field.default_factory()
            has_default = True
        default = factories.get(field.name, field.default if has_default else None)
        type_ = info.type.attributes[field.name].type
        parameters.append(Parameter(field.name, type_, default, has_default, bool(field.kw_only)))
    values = convert_arguments(e, info.python_class.__name__, parameters, call)
    for parameter, value in zip(parameters, values):
        e.node("prim::SetAttr", (v, value), (), {"name": parameter.name}, call.range)
    if inspect.isfunction(info.find("__post_init__")):
        call_method(e, v, "__post_init__", Call(call.range))


_LIBRARIES = frozenset(("weft", "builtins", "typing", "collections", "nanobind"))
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8


def is_written(cls: type) -> bool:
    """Whether a class of values is written in Python by users, and not in C as itertools.count."""
    module: Any = cls.__module__  # of a type written in C it may be a descriptor
    if not isinstance(module, str) or module.partition(".")[0] in _LIBRARIES:
        return False
    if not cls.__flags__ & _HEAP_TYPE or cls.__flags__ & _IMMUTABLE_TYPE:
        return False
    return not issubclass(cls, weft.nn.Module | weft.Tensor)


def class_value(cls: type, what: str) -> Sugared:
    """What a Python class means in a program."""
    if issubclass(cls, enum.Enum):
        return EnumClass(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        from weft.jit.frontend.named_tuple_new import TupleClass

        return TupleClass(cls)
    from weft.jit.frontend.context_managers import MANAGERS, AutocastClass, ManagerClass

    if cls in MANAGERS:
        return ManagerClass(cls)
    if issubclass(cls, weft.autocast):
        return AutocastClass(cls)
    if issubclass(cls, weft.nn.Module):
        return ModuleClass(cls, what)
    return ScriptClass(cls) if is_written(cls) else PythonObject(cls, what)
