"""What an expression means while a program is compiled: a value of the graph, or something that
exists only here (a Python module, a function, a class, a range, a list of modules).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.jit.frontend.source.errors import fail
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange

if TYPE_CHECKING:
    from weft.jit.frontend.compiler import Compiler


NO_KEYWORDS: Mapping[str, Arg] = {}


class Arg(NamedTuple):
    """An argument of a call, with its place for messages."""

    value: Sugared
    range: SourceRange


class Call(NamedTuple):
    """The arguments of a call, and the type that its result should have, where one is known."""

    range: SourceRange
    args: Sequence[Arg] = ()
    kwargs: Mapping[str, Arg] = NO_KEYWORDS
    hint: ty.Type | None = None

    @classmethod
    def of(cls, range: SourceRange, *values: Sugared) -> Call:
        """A call with values, whose place is the call's."""
        return cls(range, [Arg(value, range) for value in values])

    def behind(self, first: Sugared) -> Call:
        """The same call with a value before its arguments."""
        return self._replace(args=[Arg(first, self.range), *self.args])

    @property
    def is_of_one(self) -> bool:
        """Whether there is one argument, by position."""
        return len(self.args) == 1 and not self.kwargs

    def expect_count(self, name: str, low: int, high: int) -> None:
        """FrontendError unless there are between `low` and `high` arguments by position."""
        if not low <= len(self.args) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            fail(f"{name}: expected {wanted} arguments, got {len(self.args)}", self.range)

    def expect_no_keywords(self, name: str, *but: str) -> None:
        """FrontendError for keyword arguments other than these."""
        for keyword in self.kwargs:
            if keyword not in but:
                fail(f"{name}: expected no keyword arguments, got {keyword!r}", self.range)

    def expect_nothing(self, name: str) -> None:
        """FrontendError for any argument."""
        count = len(self.args) + len(self.kwargs)
        if count:
            fail(f"{name}: expected no arguments, got {count}", self.range)


class Unknown:
    """The static value of something only known at run time."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class Sugared:
    """Base: what is not defined for a kind of thing is refused, naming the thing."""

    what = ""

    def describe(self) -> str:
        """What this is, for messages."""
        return self.what or type(self).__name__

    def value(self, c: Compiler, range: SourceRange) -> Value:
        """The value in the graph."""
        fail(f"expected a value, got {self.describe()}", range)

    def changed(self, c: Compiler, range: SourceRange) -> Value:
        """The value in the graph, which is changed in place."""
        return self.value(c, range)

    def static(self, c: Compiler) -> Any:
        """The Python value known while compiling, or UNKNOWN."""
        return UNKNOWN

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        """`self.name`."""
        fail(f"expected an attribute of {self.describe()}, got {name!r}, which it has not", range)

    def has_attr(self, c: Compiler, name: str) -> bool:
        """Whether `self.name` is there."""
        return False

    def set_attr(self, c: Compiler, range: SourceRange, name: str, value: Sugared) -> None:
        """`self.name = value`."""
        fail(f"expected something whose attributes can be set, got {self.describe()}", range)

    def call(self, c: Compiler, call: Call) -> Sugared:
        """`self(...)`."""
        fail(f"expected something that can be called, got {self.describe()}", call.range)

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        """`self[index]`, for what is no value of the graph."""
        fail(f"expected something with items, got {self.describe()}", range)

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        """The items, where their number is known now; None otherwise."""
        return None

    def length(self, c: Compiler, range: SourceRange) -> Sugared | None:
        """len(self) for what is no value of the graph."""
        items = self.unrolled(c, range)
        return None if items is None else Simple(c.constant(len(items)))

    def contains(self, c: Compiler, range: SourceRange, item: Sugared) -> Sugared:
        """`item in self` for what is no value of the graph."""
        fail(f"expected something that holds items, got {self.describe()}", range)

    def key(self) -> Any:
        """Equal for things that are the same while compiling."""
        return id(self)


class Simple(Sugared):
    """A value of the graph. `declared`: what it is annotated as, where None may become more."""

    def __init__(self, v: Value, declared: ty.Type | None = None) -> None:
        self.v, self.declared = v, declared

    @property
    def type(self) -> ty.Type:
        """Its type."""
        return self.v.type

    def describe(self) -> str:
        return f"a value of type {self.v.type.annotation}"

    def value(self, c: Compiler, range: SourceRange) -> Value:
        return self.v

    def static(self, c: Compiler) -> Any:
        return c.static_of(self.v)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        return c.get_attr(self.v, name, range)

    def has_attr(self, c: Compiler, name: str) -> bool:
        return c.has_attr(self.v.type, name)

    def set_attr(self, c: Compiler, range: SourceRange, name: str, value: Sugared) -> None:
        c.set_attr(self.v, name, value, range)

    def call(self, c: Compiler, call: Call) -> Sugared:
        if isinstance(self.v.type, ty.ClassType | ty.InterfaceType):
            is_interface = isinstance(self.v.type, ty.InterfaceType) and self.v.type.is_module
            name = "forward" if is_interface else "__call__"
            return self.attr(c, call.range, name).call(c, call)
        return super().call(c, call)

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        return c.items(self.v, range)

    def key(self) -> Any:
        return self.v


class Path(Simple):
    """An attribute that was read and tested, as self.x in `if self.x is not None`. It stands for
    further reads until something might have changed it: see Compiler.epoch."""

    def __init__(self, v: Value, epoch: int, refined: bool = False) -> None:
        super().__init__(v)
        self.epoch = epoch
        self.refined = refined


class TupleLiteral(Sugared):
    """A tuple whose items are known one by one; some may be no values of the graph.

    `fields` names items, as the results of an operator have names. `range` is where it stands.
    """

    def __init__(
        self,
        items: Sequence[Sugared],
        fields: tuple[str, ...] = (),
        type: ty.Type | None = None,
        range: SourceRange | None = None,
    ) -> None:
        self.items, self.range = list(items), range
        self.fields = fields
        self.type = type
        inner = (each.part_count if isinstance(each, TupleLiteral) else 1 for each in self.items)
        self.part_count: int = ty.few_parts(inner)
        self._made: tuple[Any, Value] | None = None

    def describe(self) -> str:
        inner = ", ".join(item.describe() for item in self.items)
        return f"a tuple of ({inner})"

    def value(self, c: Compiler, range: SourceRange) -> Value:
        if self._made is not None and c.is_visible(self._made[0]):
            return self._made[1]
        range = self.range or range
        values = [item.value(c, range) for item in self.items]
        wanted = self.type or ty.TupleType(tuple(v.type for v in values))
        made = c.emit("prim::TupleConstruct", values, wanted, range=range)
        self._made = (c.block, made)
        return made

    def static(self, c: Compiler) -> Any:
        values = [item.static(c) for item in self.items]
        return UNKNOWN if any(v is UNKNOWN for v in values) else tuple(values)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name in self.fields:
            return self.items[self.fields.index(name)]
        return Simple(self.value(c, range)).attr(c, range, name)

    def has_attr(self, c: Compiler, name: str) -> bool:
        return name in self.fields

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        at = index.static(c)
        if isinstance(at, bool) or not isinstance(at, int):
            return self._item_at_run_time(c, range, index)
        if not -len(self.items) <= at < len(self.items):
            fail(
                f"tuple: expected an index in [-{len(self.items)}, {len(self.items)}), got {at}",
                range,
            )
        return self.items[at]

    def _item_at_run_time(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        """By an int of the program, where all items are of one type: that of their list."""
        v, at = self.value(c, range), index.value(c, range)
        assert isinstance(v.type, ty.TupleType)
        elems = v.type.elems
        if at.type != ty.INT or len(set(elems)) != 1:
            fail("tuple: expected an index known while compiling, got one that is not", range)
        items = [item.value(c, range) for item in c.unpack_tuple(v, range)]
        made = c.emit("prim::ListConstruct", items, ty.ListType(elems[0]), range=range)
        return c.apply("aten::__getitem__", range, Simple(made), Simple(at))

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        return list(self.items)

    def key(self) -> Any:
        return ("tuple", tuple(item.key() for item in self.items))


class Known(Sugared):
    """Something that is called while compiling; `run(c, call)` is what a call of it means."""

    def __init__(self, what: str, run: Callable[[Compiler, Call], Sugared]) -> None:
        self.what, self.run = what, run

    def call(self, c: Compiler, call: Call) -> Sugared:
        return self.run(c, call)


class Spread(Sugared):
    """*xs of a list in a call: only operators that take any number of ints understand it."""

    def __init__(self, v: Value) -> None:
        self.v = v

    def describe(self) -> str:
        return f"*{self.v.type.annotation}, whose length is not known"

    def value(self, c: Compiler, range: SourceRange) -> Value:
        fail(f"expected arguments one by one, got {self.describe()}", range, "the items one by one")


class Slice(Sugared):
    """a:b:c inside an index."""

    what = "a slice"

    def __init__(self, parts: Sequence[Sugared | None]) -> None:
        self.parts = list(parts)

    def static(self, c: Compiler) -> object:
        known = [None if part is None else part.static(c) for part in self.parts]
        return UNKNOWN if any(k is UNKNOWN for k in known) else slice(*known)


class Dots(Sugared):
    """... inside an index."""

    what = "..."

    def value(self, c: Compiler, range: SourceRange) -> Value:
        fail("expected ... only inside an index, got it as a value", range, "x[..., 0]")
