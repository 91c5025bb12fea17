"""What can be looped over, and enumerate, zip, range and reversed, which exist only in loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend import written
from weft.jit.frontend.calls import apply_operator
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.sugared import Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Value
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange


class Counted(NamedTuple):
    """Items whose number is known at run time: item(i) for i below length."""

    length: Value
    item: Callable[[Value], Sugared]


Source = list[Sugared] | Counted


def int_op(e: Emitter, name: str, range: SourceRange, a: Value, b: Value) -> Value:
    """An operator of two ints."""
    return apply_operator(e, name, range, Simple(a), Simple(b)).value(e, range)


_python_range = range


class Iterable(Sugared):
    """Something made for a loop: range(n), enumerate(xs), zip(xs, ys)."""

    what = "an iterable"

    def describe(self) -> str:
        return self.what

    def source(self, e: Emitter, range: SourceRange) -> Source:
        """Its items."""
        raise NotImplementedError

    def unrolled(self, e: Emitter, range: SourceRange) -> list[Sugared] | None:
        found = self.source(e, range)
        return None if isinstance(found, Counted) else found

    def length(self, e: Emitter, range: SourceRange) -> Sugared | None:
        found = self.source(e, range)
        return Simple(found.length if isinstance(found, Counted) else e.constant(len(found)))


class Iterator(Iterable):
    """What Python uses up by walking through it: a zip, say. A second walk would find nothing
    there, so it is refused, as is one inside a loop that goes on with it at every step."""

    def __init__(self, e: Emitter) -> None:
        self.made_at = e.repeating
        self.walk: tuple[SourceRange, Block, Source] | None = None

    def source(self, e: Emitter, range: SourceRange) -> Source:
        if self.walk is not None:
            place, block, found = self.walk
            if place == range and e.is_visible(block) and e.repeating == self.made_at:
                return found  # the same walk, asked about once more
        if self.walk is not None or e.repeating > self.made_at:
            hint = f"a list, as xs = list({self.what.rpartition(' ')[2]}(...))"
            fail(f"for: expected {self.what} to be walked through once, got a second walk: Python "
                 "uses it up by the first", range, hint)  # fmt: skip
        found = self.items(e, range)
        self.walk = range, e.block, found
        return found

    def items(self, e: Emitter, range: SourceRange) -> Source:
        """What the walk finds."""
        raise NotImplementedError

    def length(self, e: Emitter, range: SourceRange) -> Sugared | None:
        fail(f"len: expected something with a length, got {self.what}", range, "a list of it")


class Range(Iterable):
    """range(stop), range(start, stop), range(start, stop, step)."""

    what = "a range"

    def __init__(self, start: Value | None, stop: Value, step: Value | None) -> None:
        self.start, self.stop, self.step = start, stop, step

    def source(self, e: Emitter, range: SourceRange) -> Source:
        if self.start is None:
            return Counted(self.stop, Simple)
        start, step = self.start, self.step or e.constant(1)
        bounds = [Simple(start), Simple(self.stop), Simple(step)]
        length = apply_operator(e, "aten::__range_length", range, *bounds).value(e, range)

        def item(index: Value) -> Sugared:
            return apply_operator(
                e, "aten::__derive_index", range, Simple(index), Simple(start), Simple(step)
            )

        return Counted(length, item)

    def contains(self, e: Emitter, range: SourceRange, item: Sugared) -> Sugared:
        from weft.jit.frontend import written
        from weft.jit.frontend.conversions import coerce

        number = Simple(coerce(e, item, ty.INT, range, "in"))
        start = Simple(e.constant(0) if self.start is None else self.start)
        step = Simple(e.constant(1) if self.step is None else self.step)
        parts = (start, Simple(self.stop), step)
        return written.call_written(e, written.in_range, range, number, *parts)

    def known_numbers(self, e: Emitter) -> list[int] | None:
        """The numbers, where they are known while compiling and not too many."""
        parts = [e.static_of(v) for v in (self.start, self.stop, self.step) if v is not None]
        if not all(isinstance(part, int) for part in parts) or 0 in parts[2:]:
            return None
        numbers = _python_range(*parts)
        return list(numbers) if len(numbers) <= 1000 else None

    def item(self, e: Emitter, range: SourceRange, index: Sugared) -> Sugared:
        fail("range: expected it in a loop, got an index into it", range, "list(range(n))[i]")

    def reverse(self, e: Emitter, range: SourceRange) -> Range:
        """The same numbers, last first."""
        start, step = self.start or e.constant(0), self.step or e.constant(1)
        bounds = [Simple(start), Simple(self.stop), Simple(step)]
        count = apply_operator(e, "aten::__range_length", range, *bounds).value(e, range)
        last = int_op(e, "aten::sub", range, count, e.constant(1))
        reach = int_op(e, "aten::mul", range, last, step)
        first = int_op(e, "aten::add", range, start, reach)
        stop = int_op(e, "aten::sub", range, start, step)
        back = apply_operator(e, "aten::neg", range, Simple(step)).value(e, range)
        return Range(first, stop, back)


class Zip(Iterator):
    """zip(a, b, ...): as many items as the shortest has; ValueError where it is strict and another
    has more."""

    what = "a zip"

    def __init__(self, e: Emitter, parts: Sequence[Sugared], strict: Sugared | None = None) -> None:
        super().__init__(e)
        self.parts = list(parts)
        self.strict = strict

    def items(self, e: Emitter, range: SourceRange) -> Source:
        sources = [iterate(e, part, range) for part in self.parts]
        if not sources:
            return []
        if self.strict is not None and self.strict.static(e) is not False:
            lengths = [_length(e, source) for source in sources]
            made = Simple(e.emit("prim::ListConstruct", lengths, ty.ListType(ty.INT), range=range))
            call_written(e, written.check_lengths, range, made, self.strict)
        if not any(isinstance(s, Counted) for s in sources):
            return [TupleLiteral(row) for row in zip(*sources)]
        fixed = [len(s) for s in sources if not isinstance(s, Counted)]
        if fixed and any(_is_heterogeneous(e, s, range) for s in sources):
            fail("zip: expected lists only, or things of known length only, got both", range)
        counted = [_as_counted(e, s, range) for s in sources]
        length = counted[0].length
        for other in counted[1:]:
            length = int_op(e, "prim::min", range, length, other.length)
        return Counted(length, lambda i: TupleLiteral([c.item(i) for c in counted]))


def _length(e: Emitter, source: Source) -> Value:
    return source.length if isinstance(source, Counted) else e.constant(len(source))


def _is_heterogeneous(e: Emitter, source: Source, range: SourceRange) -> bool:
    if isinstance(source, Counted):
        return False
    return not source or not all(isinstance(item, Simple) for item in source)


def _as_counted(e: Emitter, source: Source, range: SourceRange) -> Counted:
    if isinstance(source, Counted):
        return source
    from weft.jit.frontend.displays import make_list

    found = iterate(e, Simple(make_list(e, source, None, range)), range)
    assert isinstance(found, Counted)
    return found


class Enumerate(Iterator):
    """enumerate(xs, start)."""

    what = "an enumerate"

    def __init__(self, e: Emitter, inner: Sugared, start: Value | None) -> None:
        super().__init__(e)
        self.inner, self.start = inner, start

    def items(self, e: Emitter, range: SourceRange) -> Source:
        found = iterate(e, self.inner, range)
        if not isinstance(found, Counted):
            return [
                TupleLiteral([self._number(e, e.constant(i), range), item])
                for i, item in enumerate(found)
            ]
        counted = found
        return Counted(
            counted.length,
            lambda i: TupleLiteral([self._number(e, i, range), counted.item(i)]),
        )

    def _number(self, e: Emitter, index: Value, range: SourceRange) -> Sugared:
        if self.start is None:
            return Simple(index)
        known, offset = e.static_of(index), e.static_of(self.start)
        if isinstance(known, int) and isinstance(offset, int):
            return Simple(e.constant(known + offset))
        return Simple(int_op(e, "aten::add", range, index, self.start))


class Mapped(Iterator):
    """map(f, xs, ...): f of the items, each when the loop comes to it."""

    what = "a map"

    def __init__(self, e: Emitter, function: Sugared, parts: Sequence[Sugared]) -> None:
        super().__init__(e)
        self.function, self.rows = function, Zip(e, parts)

    def items(self, e: Emitter, range: SourceRange) -> Source:
        found = self.rows.source(e, range)
        if isinstance(found, Counted):
            return Counted(found.length, lambda i: self._of(e, found.item(i), range))
        return [self._later(e, row, range) for row in found]

    def _later(self, e: Emitter, row: Sugared, range: SourceRange) -> Sugared:
        return Deferred(lambda: self._of(e, row, range))

    def _of(self, e: Emitter, row: Sugared, range: SourceRange) -> Sugared:
        items = row.unrolled(e, range) or []
        return self.function.call(e, Call.of(range, *items))


class Gathered(Iterator):
    """A filter or a product, whose items are a list or tuple when it is made."""

    def __init__(self, e: Emitter, what: str, held: Sugared) -> None:
        super().__init__(e)
        self.what, self.held = what, held

    def items(self, e: Emitter, range: SourceRange) -> Source:
        return iterate(e, self.held, range)


class Deferred(Sugared):
    """An item of a map that is unrolled: computed when the loop comes to it."""

    def __init__(self, make: Callable[[], Sugared]) -> None:
        self.make = make

    def describe(self) -> str:
        return "an item of a map"

    def value(self, e: Emitter, range: SourceRange) -> Value:
        return self.make().value(e, range)


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

    def __init__(self, e: Emitter, parts: Sequence[Sugared]) -> None:
        super().__init__(e)
        self.parts = list(parts)

    def items(self, e: Emitter, range: SourceRange) -> Source:
        from weft.jit.frontend.builtins import as_list
        from weft.jit.frontend.operators import binary

        sources = [iterate(e, part, range) for part in self.parts]
        known = [each for each in sources if not isinstance(each, Counted)]
        if len(known) == len(sources):
            return [item for each in known for item in each]
        whole = as_list(e, self.parts[0], range)
        for part in self.parts[1:]:
            whole = binary(e, ast.Add, whole, as_list(e, part, range), range)
        return iterate(e, whole, range)


class Reversed(Iterator):
    """reversed(xs)."""

    what = "a reversed"

    def __init__(self, e: Emitter, inner: Sugared) -> None:
        super().__init__(e)
        self.inner = inner

    def items(self, e: Emitter, range: SourceRange) -> Source:
        if isinstance(self.inner, Range):
            return self.inner.reverse(e, range).source(e, range)
        found = iterate(e, self.inner, range)
        if not isinstance(found, Counted):
            return found[::-1]
        counted = found
        last = int_op(e, "aten::sub", range, counted.length, e.constant(1))
        return Counted(
            counted.length, lambda i: counted.item(int_op(e, "aten::sub", range, last, i))
        )


def rows_of(e: Emitter, tensor: Sugared, range: SourceRange) -> Sugared:
    """The list of a tensor's rows."""
    return apply_operator(e, "aten::unbind", range, tensor, Simple(e.constant(0)))


def iterate(e: Emitter, value: Sugared, range: SourceRange) -> Source:
    """The items of anything that can be looped over; FrontendError for what cannot."""
    if isinstance(value, Iterable):
        return value.source(e, range)
    items = value.unrolled(e, range)
    if items is not None:
        return items
    actual = type_of(e, value, range)
    if actual is ty.TENSOR:
        value = rows_of(e, value, range)
    elif isinstance(actual, ty.DictType):
        value = apply_operator(e, "aten::keys", range, value)
    elif isinstance(actual, ty.ClassType):
        return _iterate_object(e, value, range)
    elif not isinstance(actual, ty.ListType) and actual is not ty.STR:
        hint = "a test of x is not None before" if isinstance(actual, ty.OptionalType) else None
        fail(
            "for: expected a list, tuple, dict, str, tensor, range, or list of modules, got "
            f"{actual.annotation}",
            range,
            hint or ("range(n)" if actual is ty.INT else None),
        )
    container = Simple(value.value(e, range))
    length = apply_operator(e, "aten::len", range, container).value(e, range)
    return Counted(
        length, lambda i: apply_operator(e, "aten::__getitem__", range, container, Simple(i))
    )


def _iterate_object(e: Emitter, value: Sugared, range: SourceRange) -> Source:
    """An object with __len__ and __getitem__."""
    if not (value.has_attr(e, "__len__") and value.has_attr(e, "__getitem__")):
        fail(f"for: expected an object with __len__ and __getitem__, got {value.describe()}", range)
    length = value.attr(e, range, "__len__").call(e, Call(range)).value(e, range)
    get = value.attr(e, range, "__getitem__")
    return Counted(length, lambda i: get.call(e, Call.of(range, Simple(i))))
