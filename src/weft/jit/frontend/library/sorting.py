"""sorted() and list.sort(): by the runtime's order, by __lt__ of a class, or by a key."""

from __future__ import annotations

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.iteration import Counted, collect
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@verb("sort_list")
def sort_list(c: Compiler, items: Value, call: Call) -> None:
    """items.sort(reverse=..., key=...), in place."""
    rest = dict(call.kwargs)
    key = rest.pop("key", None)
    if key is not None and _is_none(key.value):
        key = None
    if key is None and not _has_lt(c, items):
        c.call_operator("aten::sort", call._replace(kwargs=rest).behind(Simple(items)))
        return
    reverse = rest.pop("reverse", None) if not call.args else call.args[0]
    if reverse is None:
        reverse = Arg(Simple(c.constant(False)), call.range)
    if rest or len(call.args) > 1:
        fail("sort: expected reverse and key, got another argument", call.range)
    keys = items if key is None else keys_of(c, items, key, call.range)
    function = prelude.sort_by_lt if _has_lt(c, keys) else prelude.sort_by_order
    c.call(function, call.range, Simple(items), Simple(keys), reverse.value)


def _is_none(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.NONE


def _has_lt(c: Compiler, items: Value) -> bool:
    """Whether the items are objects of a class with __lt__ of its own."""
    assert isinstance(items.type, ty.ListType)
    elem = items.type.elem
    return isinstance(elem, ty.ClassType) and Simple(c.uninitialized(elem)).has_attr(c, "__lt__")


def keys_of(c: Compiler, items: Value, key: Arg, range: SourceRange) -> Value:
    """[key(item) for item in items]."""
    found = c.iterate(Simple(items), range)
    assert isinstance(found, Counted)
    made = Counted(
        found.length,
        lambda i: key.value.call(c, Call.of(key.range, found.item(i))),
    )
    return collect(c, made, range).value(c, range)
