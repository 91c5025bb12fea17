"""Lists of programs. Those whose length is known are Python's; others, which loops append to, are
sequences of the model."""

from __future__ import annotations

from typing import Any

from weft._runtime.rules import Rules
from weft.onnx._memory import Ref
from weft.onnx._symbols import Symbol, Unsupported, element

LISTS = Rules()


def _items(it: Any, held: Any) -> Any:
    """The items of a list as a Python list; of a sequence, the symbol."""
    content = held.read() if isinstance(held, Ref) else held
    if isinstance(content, (list, dict, Unsupported)):
        return content
    if isinstance(content, Symbol) and content.is_sequence:
        return content
    raise ValueError(f"list: expected a list, got {content}")


def _item(it: Any, sequence: Symbol, symbol: Any) -> Any:
    """An item of a sequence: of numbers, a number."""
    symbol.is_number = sequence.is_number
    if symbol.is_number:
        symbol.sizes = ()
    return it.value(symbol)


@LISTS("append.t")
def _append(it: Any, held: Ref, item: Any) -> Any:
    items = _items(it, held)
    if isinstance(items, Symbol):
        made = it.g.op("SequenceInsert", items, it.resolve(item))
        made.is_sequence, made.dtype, made.is_number = True, items.dtype, items.is_number
        held.write(made)
    elif isinstance(items, list):
        held.write([*items, item])
    return held


@LISTS("len.t", "len.Tensor", "len.any")
def _len(it: Any, held: Ref) -> Any:
    content = held.read()
    if isinstance(content, Symbol):
        if not content.is_sequence:
            return content.shape[0]
        made = it.g.op("SequenceLength", content)
        made.is_number, made.sizes = True, ()
        return made
    return content if isinstance(content, Unsupported) else len(content)


@LISTS("__getitem__.t", "select.t")
def _get(it: Any, held: Ref, index: Any) -> Any:
    items = _items(it, held)
    if isinstance(items, list) and isinstance(index, int):
        return items[index]
    if isinstance(items, Unsupported):
        return items
    return _item(it, items, it.g.op("SequenceAt", as_sequence(it, items), index))


@LISTS("_set_item.t")
def _set(it: Any, held: Ref, index: Any, item: Any) -> Any:
    items = _items(it, held)
    if not isinstance(items, list) or not isinstance(index, int):
        raise ValueError(f"list: expected a known place to set, got {index} of {items}")
    _changed(it, held, "__setitem__", index, item)
    return held


@LISTS("__getitem__.Dict_str", "__getitem__.Dict_int", "__getitem__.str", "__getitem__.int")
def _get_key(it: Any, held: Ref, key: Any) -> Any:
    return _items(it, held)[key]


@LISTS("_set_item.str", "_set_item.int")
def _set_key(it: Any, held: Ref, key: Any, item: Any) -> Any:
    held.write({**_items(it, held), key: item})
    return held


@LISTS("slice.t")
def _slice(it: Any, held: Ref, start: Any, stop: Any, step: Any) -> Any:
    return Ref(it.memory, _items(it, held)[start:stop:step])


LISTS("add.t")(lambda it, held, other: Ref(it.memory, [*_items(it, held), *_items(it, other)]))


@LISTS("add_.t", "extend.t")
def _extend(it: Any, held: Ref, other: Ref) -> Any:
    held.write([*_items(it, held), *_items(it, other)])
    return held


def _changed(it: Any, held: Ref, method: str, *args: Any) -> Any:
    """What a method of a list gives, on a copy that the list is from now on."""
    items = [*_items(it, held)]
    result = getattr(items, method)(*args)
    held.write(items)
    return result


LISTS("insert.t")(lambda it, held, index, item: _changed(it, held, "insert", index, item))
LISTS("pop.t")(lambda it, held, index=-1: _changed(it, held, "pop", index))
LISTS("reverse.t")(lambda it, held: _changed(it, held, "reverse"))


@LISTS("copy.t", "list.t", "list")
def _copy(it: Any, held: Ref) -> Any:
    items = _items(it, held)
    return Ref(it.memory, items if isinstance(items, Symbol) else [*items])


LISTS("mul.left_t")(lambda it, held, count: Ref(it.memory, _items(it, held) * count))


def as_sequence(it: Any, items: Any, dtype: Any = None) -> Symbol:
    """A list as a sequence of the model. `dtype`: of the items, where there are none."""
    if isinstance(items, Symbol):
        return items
    held = [it.resolve(each) for each in items]
    is_number = bool(held) and (not isinstance(held[0], Symbol) or held[0].is_number)
    symbols = [it.g.symbol(each) for each in held]
    if symbols:
        made = it.g.op("SequenceConstruct", *symbols)
        dtype = symbols[0].dtype
    else:
        made = it.g.op("SequenceEmpty", dtype=element(dtype))
    made.is_sequence, made.dtype, made.is_number = True, dtype, is_number
    return made
