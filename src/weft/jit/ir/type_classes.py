"""Types of the IR that compare by structure; those with a name of their own are in named_types.py.

`str(t)` is the IR text, `t.annotation` what a user writes in Python:

>>> str(ListType(INT)), ListType(INT).annotation
('int[]', 'List[int]')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.jit.ir.record import record


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


MOST_PARTS = 100_000  # of a type: in a program their number may double from line to line


class TooManyParts(ValueError):
    """A tuple, or the type of one, that is too large to be compared and printed."""


def few_parts(parts: Iterable[int]) -> int:
    """How many parts a tuple of these has. TooManyParts for more than are good."""
    count = 1 + sum(parts)
    if count > MOST_PARTS:
        raise TooManyParts(f"expected tuples of at most {MOST_PARTS} parts, got one of {count}")
    return count


def parts_of(type: Type) -> int:
    """How many types a type is made of, with itself."""
    known = type.__dict__.get("parts")
    return known if known is not None else 1 + sum(map(parts_of, type.children))


@record(frozen=True, repr=False)
class TupleType(Type):
    """A tuple; a NamedTuple where it has a name. The IR text of one element is `(int,)`."""

    elems: tuple[Type, ...]
    name: str | None = None
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name is not None and len(self.fields) != len(self.elems):
            raise ValueError(f"TupleType: expected {len(self.elems)} fields, got {self.fields}")
        self.__dict__["parts"] = few_parts(map(parts_of, self.elems))

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
