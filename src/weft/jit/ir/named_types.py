"""Types that programs give names: classes, enums, interfaces, and the schemas of their methods.

Classes and interfaces are nominal: two are the same type only if they are the same object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.jit.ir.record import field, record
from weft.jit.ir.type_classes import Type

if TYPE_CHECKING:
    from weft.jit.ir.graph import Function


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

    `info` and `runtime`: what the frontend knows of it, and its class in programs, which was `told`
    so many methods. They are freed with it, as all that belongs to a program that nobody has any
    more.
    """

    name: str
    attributes: dict[str, Attribute] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)
    is_module: bool = False
    info: Any = None
    runtime: Any = None
    told: int = 0

    def __str__(self) -> str:
        return self.name


@record(frozen=True, repr=False)
class EnumType(Type):
    """An enum: members are pairs of name and value."""

    name: str
    value_type: Type
    members: tuple[tuple[str, Any], ...]

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


@record(frozen=True, repr=False)
class FunctionSchema:
    """What a function takes and gives; methods include `self`."""

    name: str
    args: tuple[Argument, ...]
    returns: Type

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))}) -> {self.returns}"

    __repr__ = __str__


@record(eq=False, repr=False)
class InterfaceType(Type):
    """Methods that a class must have; `self` is no argument of their schemas. Nominal."""

    name: str
    methods: dict[str, FunctionSchema] = field(default_factory=dict)
    is_module: bool = False

    def __str__(self) -> str:
        return self.name


NamedType = ClassType | EnumType | InterfaceType
