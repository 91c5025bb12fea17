"""Types of the IR. They are immutable and compare by structure, except classes and interfaces,
which are nominal: two classes are the same type only if they are the same object.

`str(t)` is the IR text, `t.annotation` what a user writes in Python:

>>> str(ListType(INT)), ListType(INT).annotation
('int[]', 'List[int]')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from weft.jit.ir.record import field, record

if TYPE_CHECKING:
    from weft.jit.ir.function import Function

__all__ = [
    "ANY",
    "ANY_DICT",
    "ANY_LIST",
    "ANY_TUPLE",
    "BASE_TYPES",
    "BOOL",
    "COMPLEX",
    "DEVICE",
    "DTYPE",
    "FLOAT",
    "GENERATOR",
    "INT",
    "LAYOUT",
    "MEMORY_FORMAT",
    "NONE",
    "NUMBER",
    "STR",
    "TENSOR",
    "Argument",
    "Attribute",
    "BaseType",
    "ClassType",
    "DictType",
    "EnumType",
    "EnumValue",
    "FunctionSchema",
    "FutureType",
    "InterfaceType",
    "ListType",
    "NamedType",
    "OptionalType",
    "TupleType",
    "Type",
    "TypeVar",
    "UnionType",
    "members_of",
    "non_none",
    "optional_of",
    "union_of",
]


class Type:
    """Base of all types."""

    @property
    def annotation(self) -> str:
        """The type as Python text."""
        return str(self)

    @property
    def children(self) -> tuple[Type, ...]:
        """The types it is made of."""
        return ()

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        """The same type made of other parts."""
        return self

    def __repr__(self) -> str:
        return str(self)


@record(frozen=True, eq=False, repr=False)
class BaseType(Type):
    """A type with no parts: `name` is the IR text, `python` the annotation. There is one object of
    each, so that they compare quickly."""

    name: str
    python: str

    def __reduce__(self) -> Any:
        return _base_type, (self.name,)

    @property
    def annotation(self) -> str:
        return self.python

    def __str__(self) -> str:
        return self.name


def _base_type(name: str) -> BaseType:
    return BASE_TYPES[name]


TENSOR = BaseType("Tensor", "Tensor")
INT = BaseType("int", "int")
FLOAT = BaseType("float", "float")
BOOL = BaseType("bool", "bool")
COMPLEX = BaseType("complex", "complex")
STR = BaseType("str", "str")
NONE = BaseType("NoneType", "None")
DEVICE = BaseType("Device", "torch.device")
DTYPE = BaseType("dtype", "torch.dtype")
LAYOUT = BaseType("Layout", "torch.layout")
MEMORY_FORMAT = BaseType("MemoryFormat", "torch.memory_format")
GENERATOR = BaseType("Generator", "torch.Generator")
NUMBER = BaseType("Scalar", "Union[int, float, complex, bool]")
ANY = BaseType("Any", "Any")
# What isinstance asks of a value of type Any: a container of anything. No value has such a type.
ANY_LIST = BaseType("AnyList", "list")
ANY_TUPLE = BaseType("AnyTuple", "tuple")
ANY_DICT = BaseType("AnyDict", "dict")

BASE_TYPES: dict[str, BaseType] = {
    t.name: t
    for t in (
        TENSOR,
        INT,
        FLOAT,
        BOOL,
        COMPLEX,
        STR,
        NONE,
        DEVICE,
        DTYPE,
        LAYOUT,
        MEMORY_FORMAT,
        GENERATOR,
        NUMBER,
        ANY,
        ANY_LIST,
        ANY_TUPLE,
        ANY_DICT,
    )
}


@record(frozen=True, repr=False)
class ListType(Type):
    """A list, shared by reference."""

    elem: Type

    @property
    def annotation(self) -> str:
        return f"List[{self.elem.annotation}]"

    @property
    def children(self) -> tuple[Type, ...]:
        return (self.elem,)

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        return ListType(*children)

    def __str__(self) -> str:
        return f"{self.elem}[]"


@record(frozen=True, repr=False)
class DictType(Type):
    """A dict in order of insertion, shared by reference."""

    key: Type
    value: Type

    @property
    def annotation(self) -> str:
        return f"Dict[{self.key.annotation}, {self.value.annotation}]"

    @property
    def children(self) -> tuple[Type, ...]:
        return (self.key, self.value)

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        return DictType(*children)

    def __str__(self) -> str:
        return f"Dict({self.key}, {self.value})"


@record(frozen=True, repr=False)
class TupleType(Type):
    """A tuple; a NamedTuple where it has a name. The IR text of one element is `(int,)`."""

    elems: tuple[Type, ...]
    name: str | None = None
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name is not None and len(self.fields) != len(self.elems):
            raise ValueError(f"TupleType: expected {len(self.elems)} fields, got {self.fields}")

    @property
    def annotation(self) -> str:
        if self.name is not None:
            return self.name
        return f"Tuple[{', '.join(t.annotation for t in self.elems) or '()'}]"

    @property
    def children(self) -> tuple[Type, ...]:
        return self.elems

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        return TupleType(children, self.name, self.fields)

    def __str__(self) -> str:
        if self.name is not None:
            return f"{self.name}({', '.join(f'{f}: {t}' for f, t in zip(self.fields, self.elems))})"
        return f"({', '.join(map(str, self.elems))}{',' if len(self.elems) == 1 else ''})"


@record(frozen=True, repr=False)
class OptionalType(Type):
    """A value or None. `optional_of` makes one from any type, this constructor only from others."""

    elem: Type

    def __post_init__(self) -> None:
        if isinstance(self.elem, (OptionalType, UnionType)) or self.elem in (NONE, ANY):
            raise ValueError(f"OptionalType: expected a type without None, got {self.elem}")

    @property
    def annotation(self) -> str:
        return f"Optional[{self.elem.annotation}]"

    @property
    def children(self) -> tuple[Type, ...]:
        return (self.elem,)

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        return optional_of(*children)

    def __str__(self) -> str:
        return f"{self.elem}?"


@record(frozen=True, repr=False)
class UnionType(Type):
    """One of several types, in no order; NoneType may be among them. Made by `union_of`."""

    members: tuple[Type, ...]

    @property
    def annotation(self) -> str:
        return f"Union[{', '.join(t.annotation for t in self.members)}]"

    @property
    def children(self) -> tuple[Type, ...]:
        return self.members

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        return union_of(children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnionType) and set(self.members) == set(other.members)

    def __hash__(self) -> int:
        return hash(frozenset(self.members))

    def __str__(self) -> str:
        return f"Union({', '.join(map(str, self.members))})"


@record(frozen=True, repr=False)
class FutureType(Type):
    """What `fork` gives back."""

    elem: Type

    @property
    def annotation(self) -> str:
        return f"Future[{self.elem.annotation}]"

    @property
    def children(self) -> tuple[Type, ...]:
        return (self.elem,)

    def rebuild(self, children: tuple[Type, ...]) -> Type:
        return FutureType(*children)

    def __str__(self) -> str:
        return f"Future({self.elem})"


@record(frozen=True, repr=False)
class TypeVar(Type):
    """A type left open in a schema: the `t` of `append(t[] self, t item)`."""

    name: str

    def __str__(self) -> str:
        return self.name


@record(frozen=True)
class Attribute:
    """An attribute of a class. `kind`: parameter, buffer, attribute, constant or module; a constant
    has a value."""

    type: Type
    kind: str = "attribute"
    value: Any = None


@record(eq=False, repr=False)
class ClassType(Type):
    """A class: attributes in order of declaration, compiled methods. Mutable, nominal.

    `info` and `runtime`: what the frontend knows of it, and its class in programs. They are freed
    with it, as all that belongs to a program that nobody has any more.
    """

    name: str
    attributes: dict[str, Attribute] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)
    is_module: bool = False
    info: Any = None
    runtime: Any = None

    @property
    def annotation(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


@record(frozen=True, repr=False)
class EnumType(Type):
    """An enum: members are pairs of name and value."""

    name: str
    value_type: Type
    members: tuple[tuple[str, Any], ...]

    @property
    def annotation(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


@record(frozen=True)
class EnumValue:
    """A member of an enum, as the value of a constant."""

    type: EnumType
    name: str

    @property
    def value(self) -> Any:
        """The value the member stands for."""
        return dict(self.type.members)[self.name]

    def __str__(self) -> str:
        return f"{self.type.name}.{self.name}"


@record(frozen=True)
class Argument:
    """A parameter of a function; `has_default` tells a default of None from none."""

    name: str
    type: Type
    default: Any = None
    has_default: bool = False

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + (f"={self.default!r}" if self.has_default else "")


@record(frozen=True)
class FunctionSchema:
    """What a function takes and gives; methods include `self`."""

    name: str
    args: tuple[Argument, ...]
    returns: Type

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))}) -> {self.returns}"


@record(eq=False, repr=False)
class InterfaceType(Type):
    """Methods that a class must have; `self` is no argument of their schemas. Nominal."""

    name: str
    methods: dict[str, FunctionSchema] = field(default_factory=dict)
    is_module: bool = False

    @property
    def annotation(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


NamedType = ClassType | EnumType | InterfaceType


def union_of(members: Iterable[Type]) -> Type:
    """The smallest type that holds all members: flattened, without repetitions; `T` and None give
    `T?`.

    >>> union_of([INT, NONE]), union_of([INT, FLOAT, INT])
    (int?, Union(int, float))
    """
    flat: dict[Type, None] = {}
    for member in members:
        if isinstance(member, OptionalType):
            flat.update({member.elem: None, NONE: None})
        elif isinstance(member, UnionType):
            flat.update(dict.fromkeys(member.members))
        else:
            flat[member] = None
    if not flat:
        raise ValueError("union_of: expected at least one type, got none")
    if ANY in flat:
        return ANY
    others = [t for t in flat if t != NONE]
    if NONE in flat and len(others) == 1:
        return OptionalType(others[0])
    return UnionType(tuple(flat)) if len(flat) > 1 else next(iter(flat))


def optional_of(t: Type) -> Type:
    """The type, or None."""
    return union_of([t, NONE])


def non_none(t: Type) -> Type:
    """What is left of a type once its value is known not to be None."""
    if isinstance(t, OptionalType):
        return t.elem
    if isinstance(t, UnionType) and NONE in t.members:
        return union_of(m for m in t.members if m != NONE)
    return t


def members_of(t: Type) -> tuple[Type, ...]:
    """The types a value may have: members of a union, all kinds of number, else itself."""
    if isinstance(t, OptionalType):
        return (*members_of(t.elem), NONE)
    if isinstance(t, UnionType):
        return tuple(m for member in t.members for m in members_of(member))
    return (INT, FLOAT, COMPLEX, BOOL) if t == NUMBER else (t,)
