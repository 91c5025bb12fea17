"""sorted() and list.sort(): by the runtime's order, by __lt__ of a class, or by a key."""

from __future__ import annotations

from typing import Any

from weft.jit.frontend.calls import call_operator
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


def sort_list(e: Emitter, items: Value, call: Call) -> None:
    """items.sort(reverse=..., key=...), in place."""
    from weft.jit.frontend.generic import GenericFunction

    rest = dict(call.kwargs)
    key = rest.pop("key", None)
    if key is not None and _is_none(key.value):
        key = None
    if key is None and not _has_lt(e, items):
        call_operator(e, "aten::sort", call._replace(kwargs=rest).behind(Simple(items)))
        return
    reverse = rest.pop("reverse", None) if not call.args else call.args[0]
    if reverse is None:
        reverse = Arg(Simple(e.constant(False)), call.range)
    if rest or len(call.args) > 1:
        fail("sort: expected reverse and key, got another argument", call.range)
    keys = items if key is None else keys_of(e, items, key, call.range)
    function = _by_lt if _has_lt(e, keys) else _by_order
    given = [Arg(Simple(value), call.range) for value in (items, keys)]
    GenericFunction(function).call(e, Call(call.range, [*given, reverse]))


def _is_none(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.NONE


def _has_lt(e: Emitter, items: Value) -> bool:
    """Whether the items are objects of a class with __lt__ of its own."""
    assert isinstance(items.type, ty.ListType)
    elem = items.type.elem
    return isinstance(elem, ty.ClassType) and Simple(e.uninitialized(elem)).has_attr(e, "__lt__")


def keys_of(e: Emitter, items: Value, key: Arg, range: SourceRange) -> Value:
    """[key(item) for item in items]."""
    from weft.jit.frontend.builtins import collect
    from weft.jit.frontend.iteration import Counted, iterate

    found = iterate(e, Simple(items), range)
    assert isinstance(found, Counted)
    made = Counted(
        found.length,
        lambda i: key.value.call(e, Call.of(key.range, found.item(i))),
    )
    return collect(e, made, range).value(e, range)


# Compiled as they stand, for each type of items and keys --------------------------------------


def _by_order(items: Any, keys: Any, reverse: bool) -> None:
    pairs = [(key, -i if reverse else i) for i, key in enumerate(keys)]  # equal keys keep order
    pairs.sort(reverse=reverse)
    before = list(items)
    for place, pair in enumerate(pairs):
        items[place] = before[abs(pair[1])]


def _by_lt(items: Any, keys: Any, reverse: bool) -> None:
    """Binary insertion: few comparisons, as each runs a program; keys may be the items."""
    order = [0 for _ in keys]
    for count in range(len(keys)):
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            other = keys[order[middle]]
            before = other < keys[count] if reverse else keys[count] < other
            if before:
                high = middle
            else:
                low = middle + 1
        order.insert(low, count)
        order.pop()
    before_sort = list(items)
    for place, index in enumerate(order):
        items[place] = before_sort[index]


__all__ = ["sort_list"]
