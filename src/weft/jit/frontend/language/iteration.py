"""What can be looped over, and enumerate, zip, range and reversed, which exist only in loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Value
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange


class Counted(NamedTuple):
    """Items whose number is known at run time: item(i) for i below length."""

    length: Value
    item: Callable[[Value], Sugared]


Source = list[Sugared] | Counted


def int_op(c: Compiler, name: str, range: SourceRange, a: Value, b: Value) -> Value:
    """An operator of two ints."""
    return c.apply(name, range, Simple(a), Simple(b)).value(c, range)


_python_range = range


class Iterable(Sugared):
    """Something made for a loop: range(n), enumerate(xs), zip(xs, ys)."""

    what = "an iterable"

    def source(self, c: Compiler, range: SourceRange) -> Source:
        """Its items."""
        raise NotImplementedError

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        found = self.source(c, range)
        return None if isinstance(found, Counted) else found

    def length(self, c: Compiler, range: SourceRange) -> Sugared | None:
        found = self.source(c, range)
        return Simple(found.length if isinstance(found, Counted) else c.constant(len(found)))


class Iterator(Iterable):
    """What Python uses up by walking through it: a zip, say. A second walk would find nothing
    there, so it is refused, as is one inside a loop that goes on with it at every step."""

    def __init__(self, c: Compiler) -> None:
        self.made_at = c.repeating
        self.walk: tuple[SourceRange, Block, Source] | None = None

    def source(self, c: Compiler, range: SourceRange) -> Source:
        if self.walk is not None:
            place, block, found = self.walk
            if place == range and c.is_visible(block) and c.repeating == self.made_at:
                return found  # the same walk, asked about once more
        if self.walk is not None or c.repeating > self.made_at:
            hint = f"a list, as xs = list({self.what.rpartition(' ')[2]}(...))"
            fail(f"for: expected {self.what} to be walked through once, got a second walk: Python "
                 "uses it up by the first", range, hint)  # fmt: skip
        found = self.items(c, range)
        self.walk = range, c.block, found
        return found

    def items(self, c: Compiler, range: SourceRange) -> Source:
        """What the walk finds."""
        raise NotImplementedError

    def length(self, c: Compiler, range: SourceRange) -> Sugared | None:
        fail(f"len: expected something with a length, got {self.what}", range, "a list of it")


class Range(Iterable):
    """range(stop), range(start, stop), range(start, stop, step)."""

    what = "a range"

    def __init__(self, start: Value | None, stop: Value, step: Value | None) -> None:
        self.start, self.stop, self.step = start, stop, step

    def source(self, c: Compiler, range: SourceRange) -> Source:
        if self.start is None:
            return Counted(self.stop, Simple)
        start, step = self.start, self.step or c.constant(1)
        bounds = [Simple(start), Simple(self.stop), Simple(step)]
        length = c.apply("aten::__range_length", range, *bounds).value(c, range)

        def item(index: Value) -> Sugared:
            return c.apply(
                "aten::__derive_index", range, Simple(index), Simple(start), Simple(step)
            )

        return Counted(length, item)

    def contains(self, c: Compiler, range: SourceRange, item: Sugared) -> Sugared:
        number = Simple(c.convert(item, ty.INT, range, "in"))
        start = Simple(c.constant(0) if self.start is None else self.start)
        step = Simple(c.constant(1) if self.step is None else self.step)
        parts = (start, Simple(self.stop), step)
        return c.call(prelude.in_range, range, number, *parts)

    def known_numbers(self, c: Compiler) -> list[int] | None:
        """The numbers, where they are known while compiling and not too many."""
        parts = [c.static_of(v) for v in (self.start, self.stop, self.step) if v is not None]
        if not all(isinstance(part, int) for part in parts) or 0 in parts[2:]:
            return None
        numbers = _python_range(*parts)
        return list(numbers) if len(numbers) <= 1000 else None

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        fail("range: expected it in a loop, got an index into it", range, "list(range(n))[i]")

    def reverse(self, c: Compiler, range: SourceRange) -> Range:
        """The same numbers, last first."""
        start, step = self.start or c.constant(0), self.step or c.constant(1)
        bounds = [Simple(start), Simple(self.stop), Simple(step)]
        count = c.apply("aten::__range_length", range, *bounds).value(c, range)
        last = int_op(c, "aten::sub", range, count, c.constant(1))
        reach = int_op(c, "aten::mul", range, last, step)
        first = int_op(c, "aten::add", range, start, reach)
        stop = int_op(c, "aten::sub", range, start, step)
        back = c.apply("aten::neg", range, Simple(step)).value(c, range)
        return Range(first, stop, back)


class Zip(Iterator):
    """zip(a, b, ...): as many items as the shortest has; ValueError where it is strict and another
    has more."""

    what = "a zip"

    def __init__(
        self, c: Compiler, parts: Sequence[Sugared], strict: Sugared | None = None
    ) -> None:
        super().__init__(c)
        self.parts = list(parts)
        self.strict = strict

    def items(self, c: Compiler, range: SourceRange) -> Source:
        sources = [c.iterate(part, range) for part in self.parts]
        if not sources:
            return []
        if self.strict is not None and self.strict.static(c) is not False:
            lengths = [_length(c, source) for source in sources]
            made = Simple(c.emit("prim::ListConstruct", lengths, ty.ListType(ty.INT), range=range))
            c.call(prelude.check_lengths, range, made, self.strict)
        if not any(isinstance(s, Counted) for s in sources):
            return [TupleLiteral(row) for row in zip(*sources)]
        fixed = [len(s) for s in sources if not isinstance(s, Counted)]
        if fixed and any(_is_heterogeneous(s) for s in sources):
            fail("zip: expected lists only, or things of known length only, got both", range)
        counted = [_as_counted(c, s, range) for s in sources]
        length = counted[0].length
        for other in counted[1:]:
            length = int_op(c, "prim::min", range, length, other.length)
        return Counted(length, lambda i: TupleLiteral([each.item(i) for each in counted]))


def _length(c: Compiler, source: Source) -> Value:
    return source.length if isinstance(source, Counted) else c.constant(len(source))


def _is_heterogeneous(source: Source) -> bool:
    if isinstance(source, Counted):
        return False
    return not source or not all(isinstance(item, Simple) for item in source)


def _as_counted(c: Compiler, source: Source, range: SourceRange) -> Counted:
    if isinstance(source, Counted):
        return source

    found = c.iterate(Simple(c.make_list(source, None, range)), range)
    assert isinstance(found, Counted)
    return found


class Enumerate(Iterator):
    """enumerate(xs, start)."""

    what = "an enumerate"

    def __init__(self, c: Compiler, inner: Sugared, start: Value | None) -> None:
        super().__init__(c)
        self.inner, self.start = inner, start

    def items(self, c: Compiler, range: SourceRange) -> Source:
        found = c.iterate(self.inner, range)
        if not isinstance(found, Counted):
            return [
                TupleLiteral([self._number(c, c.constant(i), range), item])
                for i, item in enumerate(found)
            ]
        counted = found
        return Counted(
            counted.length, lambda i: TupleLiteral([self._number(c, i, range), counted.item(i)])
        )

    def _number(self, c: Compiler, index: Value, range: SourceRange) -> Sugared:
        if self.start is None:
            return Simple(index)
        known, offset = c.static_of(index), c.static_of(self.start)
        if isinstance(known, int) and isinstance(offset, int):
            return Simple(c.constant(known + offset))
        return Simple(int_op(c, "aten::add", range, index, self.start))


class Mapped(Iterator):
    """map(f, xs, ...): f of the items, each when the loop comes to it."""

    what = "a map"

    def __init__(self, c: Compiler, function: Sugared, parts: Sequence[Sugared]) -> None:
        super().__init__(c)
        self.function, self.rows = function, Zip(c, parts)

    def items(self, c: Compiler, range: SourceRange) -> Source:
        found = self.rows.source(c, range)
        if isinstance(found, Counted):
            return Counted(found.length, lambda i: self._of(c, found.item(i), range))
        return [self._later(c, row, range) for row in found]

    def _later(self, c: Compiler, row: Sugared, range: SourceRange) -> Sugared:
        return Deferred(lambda: self._of(c, row, range))

    def _of(self, c: Compiler, row: Sugared, range: SourceRange) -> Sugared:
        items = row.unrolled(c, range) or []
        return self.function.call(c, Call.of(range, *items))


class Gathered(Iterator):
    """A filter or a product, whose items are a list or tuple when it is made."""

    def __init__(self, c: Compiler, what: str, held: Sugared) -> None:
        super().__init__(c)
        self.what, self.held = what, held

    def items(self, c: Compiler, range: SourceRange) -> Source:
        return c.iterate(self.held, range)


class Deferred(Sugared):
    """An item of a map that is unrolled: computed when the loop comes to it."""

    what = "an item of a map"

    def __init__(self, make: Callable[[], Sugared]) -> None:
        self.make = make

    def value(self, c: Compiler, range: SourceRange) -> Value:
        return self.make().value(c, range)


def settled(held: Sugared) -> Sugared:
    """An item of a loop, computed if it was not."""
    if isinstance(held, Deferred):
        return held.make()
    if isinstance(held, TupleLiteral) and any(
        isinstance(item, Deferred | TupleLiteral) for item in held.items
    ):
        held.items = [settled(item) for item in held.items]
    return held


class Chain(Iterator):
    """itertools.chain(a, b, ...): the items of the first, then those of the next."""

    what = "a chain"

    def __init__(self, c: Compiler, parts: Sequence[Sugared]) -> None:
        super().__init__(c)
        self.parts = list(parts)

    def items(self, c: Compiler, range: SourceRange) -> Source:
        sources = [c.iterate(part, range) for part in self.parts]
        known = [each for each in sources if not isinstance(each, Counted)]
        if len(known) == len(sources):
            return [item for each in known for item in each]
        whole = c.as_list(self.parts[0], range)
        for part in self.parts[1:]:
            whole = c.binary(ast.Add, whole, c.as_list(part, range), range)
        return c.iterate(whole, range)


class Reversed(Iterator):
    """reversed(xs)."""

    what = "a reversed"

    def __init__(self, c: Compiler, inner: Sugared) -> None:
        super().__init__(c)
        self.inner = inner

    def items(self, c: Compiler, range: SourceRange) -> Source:
        if isinstance(self.inner, Range):
            return self.inner.reverse(c, range).source(c, range)
        found = c.iterate(self.inner, range)
        if not isinstance(found, Counted):
            return found[::-1]
        counted = found
        last = int_op(c, "aten::sub", range, counted.length, c.constant(1))
        return Counted(
            counted.length, lambda i: counted.item(int_op(c, "aten::sub", range, last, i))
        )


def rows_of(c: Compiler, tensor: Sugared, range: SourceRange) -> Sugared:
    """The list of a tensor's rows."""
    return c.apply("aten::unbind", range, tensor, Simple(c.constant(0)))


@verb("iterate")
def iterate(c: Compiler, value: Sugared, range: SourceRange) -> Source:
    """The items of anything that can be looped over; FrontendError for what cannot."""
    if isinstance(value, Iterable):
        return value.source(c, range)
    items = value.unrolled(c, range)
    if items is not None:
        return items
    actual = c.type_of(value, range)
    if actual is ty.TENSOR:
        value = rows_of(c, value, range)
    elif isinstance(actual, ty.DictType):
        value = c.apply("aten::keys", range, value)
    elif isinstance(actual, ty.ClassType):
        return _iterate_object(c, value, range)
    elif not isinstance(actual, ty.ListType) and actual is not ty.STR:
        hint = "a test of x is not None before" if isinstance(actual, ty.OptionalType) else None
        fail(
            "for: expected a list, tuple, dict, str, tensor, range, or list of modules, got "
            f"{actual.annotation}",
            range,
            hint or ("range(n)" if actual is ty.INT else None),
        )
    container = Simple(value.value(c, range))
    length = c.apply("aten::len", range, container).value(c, range)
    return Counted(length, lambda i: c.apply("aten::__getitem__", range, container, Simple(i)))


def _iterate_object(c: Compiler, value: Sugared, range: SourceRange) -> Source:
    """An object with __len__ and __getitem__."""
    if not (value.has_attr(c, "__len__") and value.has_attr(c, "__getitem__")):
        fail(f"for: expected an object with __len__ and __getitem__, got {value.describe()}", range)
    length = value.attr(c, range, "__len__").call(c, Call(range)).value(c, range)
    get = value.attr(c, range, "__getitem__")
    return Counted(length, lambda i: get.call(c, Call.of(range, Simple(i))))


@verb("as_list")
def as_list(
    c: Compiler, value: Sugared, range: SourceRange, hint: ty.Type | None = None
) -> Sugared:
    """A new list of the items of anything that can be looped over."""
    actual = None
    if isinstance(value, Simple):
        actual = value.v.type
    if isinstance(actual, ty.ListType):
        return c.apply("aten::list", range, value)
    if actual is ty.STR:
        return c.apply("aten::list", range, value)
    if isinstance(actual, ty.DictType):
        return c.apply("aten::keys", range, value)
    found = c.iterate(value, range)
    if not isinstance(found, Counted):
        wanted = hint.elem if isinstance(hint, ty.ListType) else None
        return Simple(c.make_list(found, wanted, range))
    return collect(c, found, range)


def collect(c: Compiler, found: Counted, range: SourceRange) -> Sugared:
    """A list of what a loop gives."""
    out = c.emit("prim::ListConstruct", (), ty.ListType(ty.TENSOR), range=range)

    def add(held: Sugared) -> None:
        item = held.value(c, range)
        out.type = ty.ListType(item.type)
        c.apply("aten::append", range, Simple(out), Simple(item))

    for_each(c, found, add, range)
    return Simple(out)


def for_each(
    c: Compiler, found: Counted, step: Callable[[Sugared], None], range: SourceRange
) -> None:
    """step(item) for every item."""
    node = c.node("prim::Loop", (found.length, c.constant(True)), (), range=range)
    block = node.add_block()
    index = block.add_param(ty.INT, "i")
    with c.within(block, Scope(c.scope)):
        step(found.item(index))
        again = c.constant(True)
    block.set_returns([again])
