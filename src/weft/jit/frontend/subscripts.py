"""Indexing: lists, dicts, strings and tuples; tensors by ints, slices, None, ... and tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import weft
from weft.jit import schemas
from weft.jit.frontend import written
from weft.jit.frontend.calls import apply_operator, call_operator
from weft.jit.frontend.conditions import Condition, choose
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.scaffold import expression
from weft.jit.frontend.sugared import UNKNOWN, Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.node_rules import RULES
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange


class Slice(Sugared):
    """a:b:c inside an index."""

    def __init__(self, parts: Sequence[Sugared | None]) -> None:
        self.parts = list(parts)

    def describe(self) -> str:
        return "a slice"

    def static(self, e: Emitter) -> object:
        known = [None if part is None else part.static(e) for part in self.parts]
        return UNKNOWN if any(k is UNKNOWN for k in known) else slice(*known)


class Dots(Sugared):
    """... inside an index."""

    def describe(self) -> str:
        return "..."

    def value(self, e: Emitter, range: SourceRange) -> Value:
        fail("expected ... only inside an index, got it as a value", range, "x[..., 0]")


def index_of(e: Emitter, node: ast.expr) -> Sugared:
    """What stands between [ and ]."""
    if isinstance(node, ast.Slice):
        parts = [node.lower, node.upper, node.step]
        return Slice([None if part is None else expr(e, part) for part in parts])
    if isinstance(node, ast.Tuple):
        return TupleLiteral([index_of(e, item) for item in node.elts])
    return expr(e, node)


@expression(ast.Subscript)
def _subscript(e: Emitter, node: ast.Subscript, hint: ty.Type | None) -> Sugared:
    return get_item(e, expr(e, node.value), index_of(e, node.slice), e.range(node), hint)


@expression(ast.Slice)
def _slice(e: Emitter, node: ast.Slice, hint: ty.Type | None) -> Sugared:
    return index_of(e, node)


def get_item(
    e: Emitter, owner: Sugared, index: Sugared, range: SourceRange, hint: ty.Type | None = None
) -> Sugared:
    """owner[index], where a value of type `hint` is wanted."""
    if not isinstance(owner, Simple | TupleLiteral):
        return owner.item(e, range, index)
    actual = type_of(e, owner, range) if isinstance(owner, Simple) else None
    if isinstance(owner, TupleLiteral) or isinstance(actual, ty.TupleType):
        return _tuple_item(e, owner, index, range)
    if actual is ty.TENSOR:
        return _tensor_item(e, owner.value(e, range), index, range)
    if isinstance(actual, ty.ClassType):
        from weft.jit.frontend.class_attributes import container_item

        return container_item(e, owner, index, range, hint)
    if isinstance(actual, ty.ListType) or actual is ty.STR:
        return _sequence_item(e, owner, index, range)
    if isinstance(actual, ty.DictType):
        key = coerce(e, index, actual.key, range, "key")
        return apply_operator(e, "aten::__getitem__", range, owner, Simple(key))
    shown = actual.annotation if actual is not None else owner.describe()
    instead = "a test of x is not None before" if isinstance(actual, ty.OptionalType) else None
    fail(f"[]: expected a list, tuple, dict, str or tensor, got {shown}", range, instead)


def _sequence_item(e: Emitter, owner: Sugared, index: Sugared, range: SourceRange) -> Sugared:
    if isinstance(index, Slice):
        parts = [e.none() if part is None else part for part in index.parts[:2]]
        step = index.parts[2] or Simple(e.constant(1))
        return apply_operator(e, "aten::slice", range, owner, *parts, step)
    if isinstance(index, Dots):
        fail("[]: expected ... only in the index of a tensor, got it elsewhere", range)
    at = coerce(e, index, ty.INT, range, "index")
    return apply_operator(e, "aten::__getitem__", range, owner, Simple(at))


def _tuple_item(e: Emitter, owner: Sugared, index: Sugared, range: SourceRange) -> Sugared:
    if isinstance(index, Slice):
        known: Any = index.static(e)
        numbers = (known.start, known.stop, known.step) if isinstance(known, slice) else ("",)
        if not all(n is None or isinstance(n, int) for n in numbers) or numbers[-1] == 0:
            fail("tuple: expected a slice known while compiling, got another", range, "a list")
        return TupleLiteral((owner.unrolled(e, range) or [])[known])
    at = index.static(e)
    if isinstance(owner, Simple) and isinstance(at, int) and not isinstance(at, bool):
        assert isinstance(owner.v.type, ty.TupleType)
        elems = owner.v.type.elems
        if -len(elems) <= at < len(elems):
            made = owner.v.node
            if made is None or made.kind != "prim::TupleConstruct":
                at %= len(elems)
                kind = "prim::TupleIndex"
                return Simple(e.emit(kind, (owner.v,), elems[at], {"index": at}, range))
    literal = (
        owner if isinstance(owner, TupleLiteral) else TupleLiteral(owner.unrolled(e, range) or [])
    )
    return literal.item(e, range, index)


# Tensors --------------------------------------------------------------------------------------


class Indexed(NamedTuple):
    """A tensor after ints, slices and None; `advanced` are the tensors left, by dimension, and
    `behind` those of the last dimensions, from ... on; None for a dimension without."""

    view: Value
    advanced: dict[int, Value]
    behind: list[Value | None]
    plain: bool  # nothing but tensors and whole slices stands behind ...

    @property
    def is_view(self) -> bool:
        """Whether no tensors are left."""
        return not self.tensors

    @property
    def tensors(self) -> list[Value]:
        """The tensors that are left."""
        return [*self.advanced.values(), *(each for each in self.behind if each is not None)]


def _tensor_item(e: Emitter, v: Value, index: Sugared, range: SourceRange) -> Sugared:
    found = indexed(e, v, index, range)
    if found.is_view:
        return Simple(found.view)
    view, indices = Simple(found.view), index_list(e, found, range)

    return by_dimensions(
        e,
        found,
        range,
        lambda: apply_operator(e, "aten::index", range, view, indices),
        lambda selected: selected,
        lambda: call_written(e, written.gather, range, view, indices),
    )


def by_dimensions(
    e: Emitter,
    found: Indexed,
    range: SourceRange,
    gathered: Callable[[], Sugared],
    selected: Callable[[Sugared], Sugared],
    mixed: Callable[[], Sugared],
) -> Sugared:
    """What is done with the items of a tensor: `gathered` with those of lists and masks, `selected`
    with the view of an int tensor without dimensions, `mixed` where there are several tensors."""
    if not any(_may_be_number(each) for each in found.tensors):
        return gathered()
    if len(found.tensors) > 1 or not found.advanced:
        return mixed()
    ((dim, index),) = found.advanced.items()
    test = call_written(e, written.is_number, range, Simple(index)).value(e, range)

    def of_view() -> Sugared:
        at = apply_operator(e, "aten::Int", range, Simple(index))
        given = Simple(found.view), Simple(e.constant(dim)), at
        return selected(apply_operator(e, "aten::select", range, *given))

    return choose(e, Condition(test), of_view, gathered, range)


def _may_be_number(v: Value) -> bool:
    """Whether a tensor in an index may be an int without dimensions; not all that may not are
    known."""
    node = v.node
    if node is None:
        return True
    row = None if node.kind in RULES else schemas.of(node.kind).row
    if row is not None and "bitwise" in row.tags:
        return any(_may_be_number(each) for each in node.inputs)
    if node.name == "aten::tensor":
        return not isinstance(node.inputs[0].type, ty.ListType)
    if row is None or node.name.endswith("_"):
        return True
    has_dims = row.shape.startswith("[") and row.shape != "[]"
    return not (has_dims or row.gives_mask)


def index_list(e: Emitter, found: Indexed, range: SourceRange) -> Sugared:
    """The tensors of an index, as aten::index takes them."""
    before = [found.advanced.get(i) for i in builtin_range(max(found.advanced, default=-1) + 1)]
    made = _optional_tensors(e, before, range)
    if not any(found.behind):
        return made
    behind = _optional_tensors(e, found.behind, range)
    plain = Simple(e.constant(found.plain))
    view = Simple(found.view)
    return call_written(e, written.index_behind_dots, range, view, made, behind, plain)


def _optional_tensors(e: Emitter, items: Sequence[Value | None], range: SourceRange) -> Sugared:
    values = [e.constant(None) if item is None else item for item in items]
    elem = ty.OptionalType(ty.TENSOR)
    return Simple(e.emit("prim::ListConstruct", values, ty.ListType(elem), range=range))


builtin_range = range


def indexed(e: Emitter, v: Value, index: Sugared, range: SourceRange) -> Indexed:
    """All parts of an index but the advanced ones."""
    parts = _parts(e, index, range)
    dots = [i for i, part in enumerate(parts) if isinstance(part, Dots)]
    if len(dots) > 1:
        fail("[]: expected one ... in an index, got several", range)
    dim = 0
    view = v
    advanced: dict[int, Value] = {}
    last: list[Value | None] = []
    after_dots = False
    behind = _consumed(e, parts[dots[0] + 1 :], range) if dots else 0
    before_part, plain = view, True
    for part in parts:
        plain &= view is before_part or not after_dots
        before_part = view
        if isinstance(part, Dots):
            after_dots = True
            dim = -behind
            continue
        at = dim
        actual = None if isinstance(part, Slice) else type_of(e, part, range)
        if isinstance(part, Slice):
            view = _slice_dim(e, view, dim, part, range)
            dim += 1
            last += [None] * after_dots
        elif actual is ty.NONE:
            place = dim if not after_dots else dim - 1
            view = apply_operator(
                e, "aten::unsqueeze", range, Simple(view), Simple(e.constant(place))
            ).value(e, range)
            dim += 0 if after_dots else 1
            last += [None] * after_dots
        elif actual is ty.BOOL:
            view, picked = _bool_index(e, view, dim, after_dots, part, range)
            advanced[dim if not after_dots else _from_end(dim, range)] = picked
            dim += 0 if after_dots else 1
        elif actual is ty.INT or actual is ty.NUMBER:
            place_in = Simple(coerce(e, part, ty.INT, range, "index"))
            given = (Simple(view), Simple(e.constant(at)), place_in)
            view = apply_operator(e, "aten::select", range, *given).value(e, range)
            dim += 1 if after_dots else 0
        elif actual is ty.TENSOR or isinstance(actual, ty.ListType | ty.TupleType):
            picked = _as_index_tensor(e, part, range)
            if after_dots:
                last.append(picked)
            else:
                advanced[dim] = picked
            dim += 1
        else:
            shown = actual.annotation if actual is not None else part.describe()
            fail(
                "[]: expected ints, slices, None, ..., tensors or lists as index of a tensor, "
                f"got {shown}",
                range,
            )
    plain &= view is before_part or not after_dots
    return Indexed(view, advanced, last, plain)


def _from_end(dim: int, range: SourceRange) -> int:
    fail("[]: expected bools in an index before ..., got one behind it", range)


def _consumed(e: Emitter, parts: Sequence[Sugared], range: SourceRange) -> int:
    """How many dimensions parts of an index take."""
    count = 0
    for part in parts:
        if isinstance(part, Slice) or type_of(e, part, range) is not ty.NONE:
            count += 1
    return count


def _parts(e: Emitter, index: Sugared, range: SourceRange) -> list[Sugared]:
    if isinstance(index, TupleLiteral):
        return index.items
    if isinstance(index, Simple) and isinstance(index.v.type, ty.TupleType):
        return index.unrolled(e, range) or []
    return [index]


def _slice_dim(e: Emitter, v: Value, dim: int, part: Slice, range: SourceRange) -> Value:
    lower, upper, step = part.parts
    known_step = 1 if step is None else step.static(e)
    if isinstance(known_step, int) and known_step <= 0:
        fail(
            f"[]: expected a step above 0 in the slice of a tensor, got {known_step}",
            range,
            "x.flip(dim)",
        )
    if lower is None and upper is None and known_step == 1:
        return v
    given = [
        Simple(v),
        Simple(e.constant(dim)),
        e.none() if lower is None else lower,
        e.none() if upper is None else upper,
        Simple(e.constant(1)) if step is None else step,
    ]
    return apply_operator(e, "aten::slice", range, *given).value(e, range)


def _bool_index(
    e: Emitter, v: Value, dim: int, after_dots: bool, part: Sugared, range: SourceRange
) -> tuple[Value, Value]:
    """x[True]: a new dimension of size 1, picked or not."""
    view = apply_operator(e, "aten::unsqueeze", range, Simple(v), Simple(e.constant(dim))).value(
        e, range
    )
    mask = apply_operator(e, "prim::NumToTensor", range, part)
    picked = apply_operator(e, "aten::unsqueeze", range, mask, Simple(e.constant(0))).value(
        e, range
    )
    return view, picked


def _as_index_tensor(e: Emitter, part: Sugared, range: SourceRange) -> Value:
    actual = type_of(e, part, range)
    if actual is ty.TENSOR:
        return part.value(e, range)
    if isinstance(actual, ty.TupleType):
        from weft.jit.frontend.displays import make_list

        part = Simple(make_list(e, part.unrolled(e, range) or [], None, range))
    elif isinstance(part, Simple) and part.v in e.untyped:  # []
        part = Simple(coerce(e, part, ty.ListType(ty.INT), range, "index"))
    elem = part.value(e, range).type
    while isinstance(elem, ty.ListType):
        elem = elem.elem
    if elem is not ty.INT:
        return call_written(e, written.index_of_list, range, part).value(e, range)
    dtype = Arg(Simple(e.constant(weft.int64)), range)
    call = Call.of(range, part)._replace(kwargs={"dtype": dtype})
    return call_operator(e, "aten::tensor", call).value(e, range)
