"""Indexing: lists, dicts, strings and tuples; tensors by ints, slices, None, ... and tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft.jit import schemas
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.control_flow import Condition, choose
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Dots, Simple, Slice, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.node_rules import RULES
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange


def index_of(c: Compiler, node: ast.expr) -> Sugared:
    """What stands between [ and ]."""
    if isinstance(node, ast.Slice):
        parts = [node.lower, node.upper, node.step]
        return Slice([None if part is None else c.expr(part) for part in parts])
    if isinstance(node, ast.Tuple):
        return TupleLiteral([index_of(c, item) for item in node.elts])
    return c.expr(node)


@expression(ast.Subscript)
def _subscript(c: Compiler, node: ast.Subscript, hint: ty.Type | None) -> Sugared:
    return c.get_item(c.expr(node.value), index_of(c, node.slice), c.range(node), hint)


@expression(ast.Slice)
def _slice(c: Compiler, node: ast.Slice, hint: ty.Type | None) -> Sugared:
    return index_of(c, node)


@verb("get_item")
def get_item(
    c: Compiler, owner: Sugared, index: Sugared, range: SourceRange, hint: ty.Type | None = None
) -> Sugared:
    """owner[index], where a value of type `hint` is wanted."""
    if not isinstance(owner, Simple | TupleLiteral):
        return owner.item(c, range, index)
    actual = c.type_of(owner, range) if isinstance(owner, Simple) else None
    if isinstance(owner, TupleLiteral) or isinstance(actual, ty.TupleType):
        return _tuple_item(c, owner, index, range)
    if actual is ty.TENSOR:
        return _tensor_item(c, owner.value(c, range), index, range)
    if isinstance(actual, ty.ClassType):
        return verb["get_item", ty.ClassType](c, owner, index, range, hint)
    if isinstance(actual, ty.ListType) or actual is ty.STR:
        return _sequence_item(c, owner, index, range)
    if isinstance(actual, ty.DictType):
        key = c.convert(index, actual.key, range, "key")
        return c.apply("aten::__getitem__", range, owner, Simple(key))
    shown = actual.annotation if actual is not None else owner.describe()
    instead = "a test of x is not None before" if isinstance(actual, ty.OptionalType) else None
    fail(f"[]: expected a list, tuple, dict, str or tensor, got {shown}", range, instead)


def _sequence_item(c: Compiler, owner: Sugared, index: Sugared, range: SourceRange) -> Sugared:
    if isinstance(index, Slice):
        parts = [c.none() if part is None else part for part in index.parts[:2]]
        step = index.parts[2] or Simple(c.constant(1))
        return c.apply("aten::slice", range, owner, *parts, step)
    if isinstance(index, Dots):
        fail("[]: expected ... only in the index of a tensor, got it elsewhere", range)
    at = c.convert(index, ty.INT, range, "index")
    return c.apply("aten::__getitem__", range, owner, Simple(at))


def _tuple_item(c: Compiler, owner: Sugared, index: Sugared, range: SourceRange) -> Sugared:
    if isinstance(index, Slice):
        known: Any = index.static(c)
        numbers = (known.start, known.stop, known.step) if isinstance(known, slice) else ("",)
        if not all(n is None or isinstance(n, int) for n in numbers) or numbers[-1] == 0:
            fail("tuple: expected a slice known while compiling, got another", range, "a list")
        return TupleLiteral((owner.unrolled(c, range) or [])[known])
    at = index.static(c)
    if isinstance(owner, Simple) and isinstance(at, int) and not isinstance(at, bool):
        assert isinstance(owner.v.type, ty.TupleType)
        elems = owner.v.type.elems
        if -len(elems) <= at < len(elems):
            made = owner.v.node
            if made is None or made.kind != "prim::TupleConstruct":
                at %= len(elems)
                kind = "prim::TupleIndex"
                return Simple(c.emit(kind, (owner.v,), elems[at], {"index": at}, range))
    literal = (
        owner if isinstance(owner, TupleLiteral) else TupleLiteral(owner.unrolled(c, range) or [])
    )
    return literal.item(c, range, index)


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


def _tensor_item(c: Compiler, v: Value, index: Sugared, range: SourceRange) -> Sugared:
    found = indexed(c, v, index, range)
    if found.is_view:
        return Simple(found.view)
    view, indices = Simple(found.view), index_list(c, found, range)

    return by_dimensions(
        c,
        found,
        range,
        lambda: c.apply("aten::index", range, view, indices),
        lambda selected: selected,
        lambda: c.call(prelude.gather, range, view, indices),
    )


def by_dimensions(
    c: Compiler,
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
    test = c.call(prelude.is_number, range, Simple(index)).value(c, range)

    def of_view() -> Sugared:
        at = c.apply("aten::Int", range, Simple(index))
        given = Simple(found.view), Simple(c.constant(dim)), at
        return selected(c.apply("aten::select", range, *given))

    return choose(c, Condition(test), of_view, gathered, range)


def _may_be_number(v: Value) -> bool:
    """Whether a tensor in an index may be an int without dimensions; not all that may not are
    known."""
    node = v.node
    if node is None:
        return True
    tags = schemas.tags_of(node.kind)
    if "bitwise" in tags:
        return any(_may_be_number(each) for each in node.inputs)
    if "of_data" in tags:
        return not isinstance(node.inputs[0].type, ty.ListType)
    row = None if node.kind in RULES else schemas.of(node.kind).row
    if row is None or node.name.endswith("_"):
        return True
    has_dims = row.shape.startswith("[") and row.shape != "[]"
    return not (has_dims or row.gives_mask)


def index_list(c: Compiler, found: Indexed, range: SourceRange) -> Sugared:
    """The tensors of an index, as aten::index takes them."""
    before = [found.advanced.get(i) for i in builtin_range(max(found.advanced, default=-1) + 1)]
    made = _optional_tensors(c, before, range)
    if not any(found.behind):
        return made
    behind = _optional_tensors(c, found.behind, range)
    plain = Simple(c.constant(found.plain))
    view = Simple(found.view)
    return c.call(prelude.index_behind_dots, range, view, made, behind, plain)


def _optional_tensors(c: Compiler, items: Sequence[Value | None], range: SourceRange) -> Sugared:
    values = [c.constant(None) if item is None else item for item in items]
    elem = ty.OptionalType(ty.TENSOR)
    return Simple(c.emit("prim::ListConstruct", values, ty.ListType(elem), range=range))


builtin_range = range


def indexed(c: Compiler, v: Value, index: Sugared, range: SourceRange) -> Indexed:
    """All parts of an index but the advanced ones."""
    parts = _parts(c, index, range)
    dots = [i for i, part in enumerate(parts) if isinstance(part, Dots)]
    if len(dots) > 1:
        fail("[]: expected one ... in an index, got several", range)
    dim = 0
    view = v
    advanced: dict[int, Value] = {}
    last: list[Value | None] = []
    after_dots = False
    behind = _consumed(c, parts[dots[0] + 1 :], range) if dots else 0
    before_part, plain = view, True
    for part in parts:
        plain &= view is before_part or not after_dots
        before_part = view
        if isinstance(part, Dots):
            after_dots = True
            dim = -behind
            continue
        at = dim
        actual = None if isinstance(part, Slice) else c.type_of(part, range)
        if isinstance(part, Slice):
            view = _slice_dim(c, view, dim, part, range)
            dim += 1
            last += [None] * after_dots
        elif actual is ty.NONE:
            place = dim if not after_dots else dim - 1
            view = c.apply("aten::unsqueeze", range, Simple(view), Simple(c.constant(place))).value(
                c, range
            )
            dim += 0 if after_dots else 1
            last += [None] * after_dots
        elif actual is ty.BOOL:
            if after_dots:
                fail("[]: expected bools in an index before ..., got one behind it", range)
            view, advanced[dim] = _bool_index(c, view, dim, part, range)
            dim += 1
        elif actual is ty.INT or actual is ty.NUMBER:
            place_in = Simple(c.convert(part, ty.INT, range, "index"))
            given = (Simple(view), Simple(c.constant(at)), place_in)
            view = c.apply("aten::select", range, *given).value(c, range)
            dim += 1 if after_dots else 0
        elif actual is ty.TENSOR or isinstance(actual, ty.ListType | ty.TupleType):
            picked = _as_index_tensor(c, part, range)
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


def _consumed(c: Compiler, parts: Sequence[Sugared], range: SourceRange) -> int:
    """How many dimensions parts of an index take."""
    count = 0
    for part in parts:
        if isinstance(part, Slice) or c.type_of(part, range) is not ty.NONE:
            count += 1
    return count


def _parts(c: Compiler, index: Sugared, range: SourceRange) -> list[Sugared]:
    if isinstance(index, TupleLiteral):
        return index.items
    if isinstance(index, Simple) and isinstance(index.v.type, ty.TupleType):
        return index.unrolled(c, range) or []
    return [index]


def _slice_dim(c: Compiler, v: Value, dim: int, part: Slice, range: SourceRange) -> Value:
    lower, upper, step = part.parts
    known_step = 1 if step is None else step.static(c)
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
        Simple(c.constant(dim)),
        c.none() if lower is None else lower,
        c.none() if upper is None else upper,
        Simple(c.constant(1)) if step is None else step,
    ]
    return c.apply("aten::slice", range, *given).value(c, range)


def _bool_index(
    c: Compiler, v: Value, dim: int, part: Sugared, range: SourceRange
) -> tuple[Value, Value]:
    """x[True]: a new dimension of size 1, picked or not."""
    view = c.apply("aten::unsqueeze", range, Simple(v), Simple(c.constant(dim))).value(c, range)
    mask = c.apply("prim::NumToTensor", range, part)
    picked = c.apply("aten::unsqueeze", range, mask, Simple(c.constant(0))).value(c, range)
    return view, picked


def _as_index_tensor(c: Compiler, part: Sugared, range: SourceRange) -> Value:
    actual = c.type_of(part, range)
    if actual is ty.TENSOR:
        return part.value(c, range)
    if isinstance(actual, ty.TupleType):
        part = Simple(c.make_list(part.unrolled(c, range) or [], None, range))
    elif isinstance(part, Simple) and part.v in c.untyped:  # []
        part = Simple(c.convert(part, ty.ListType(ty.INT), range, "index"))
    elem = part.value(c, range).type
    while isinstance(elem, ty.ListType):
        elem = elem.elem
    if elem is not ty.INT:
        return c.call(prelude.index_of_list, range, part).value(c, range)
    dtype = Arg(Simple(c.constant(_C.int64)), range)
    call = Call.of(range, part)._replace(kwargs={"dtype": dtype})
    return c.call_operator("aten::tensor", call).value(c, range)
