"""Tuples, lists and dicts as they are written, with what a star spreads among the items."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.annotations import KEYS, is_key
from weft.jit.frontend.conversions import coerce
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.expressions import argument, expr
from weft.jit.frontend.scaffold import expression, refuse_form
from weft.jit.frontend.sugared import Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@expression(ast.Tuple)
def _tuple(e: Emitter, node: ast.Tuple, hint: ty.Type | None) -> Sugared:
    hints: Sequence[ty.Type | None] = [None] * len(node.elts)
    if isinstance(hint, ty.TupleType) and len(hint.elems) == len(node.elts):
        hints = hint.elems
    starred = any(isinstance(item, ast.Starred) for item in node.elts)
    if starred:
        runs = _runs(e, node.elts)
        lists = [run for run in runs if isinstance(run, Simple)]
        if not lists:
            return TupleLiteral([item for run in runs if isinstance(run, list) for item in run])
        if all(run.v.type == ty.ListType(ty.INT) for run in lists):
            return _joined(e, runs, ty.ListType(ty.INT), e.range(node))  # sizes: as x.shape is
        fail(
            f"*: expected a tuple, whose length is known, got {lists[0].describe()}",
            e.range(node),
            "a list",
        )
    return TupleLiteral([expr(e, item, wanted) for item, wanted in zip(node.elts, hints)])


def spread(e: Emitter, nodes: Sequence[ast.expr]) -> list[Sugared]:
    """The items of a display, with *x for tuples of known length taken apart."""
    items: list[Sugared] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            inner = argument(e, node.value)  # a generator too
            parts = inner.unrolled(e, e.range(node))
            if parts is None:
                fail(
                    f"*: expected a tuple, whose length is known, got {inner.describe()}",
                    e.range(node),
                    "the items one by one, or a + b for lists",
                )
            items.extend(parts)
        else:
            items.append(expr(e, node))
    return items


@expression(ast.Starred)
def _starred(e: Emitter, node: ast.Starred, hint: ty.Type | None) -> Sugared:
    fail("*: expected it inside a call, a list or a tuple, got it alone", e.range(node))


@expression(ast.List)
def _list(e: Emitter, node: ast.List, hint: ty.Type | None) -> Sugared:
    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    range = e.range(node)
    if any(isinstance(item, ast.Starred) for item in node.elts):
        runs = _runs(e, node.elts)
        if any(isinstance(run, Simple) for run in runs):
            return _joined(e, runs, hint, range)
        items = [item for run in runs if isinstance(run, list) for item in run]
    else:
        items = [expr(e, item, wanted) for item in node.elts]
    made = make_list(e, items, wanted, range)
    if not items and hint is None:
        e.untyped.add(made)
    return Simple(made)


def _runs(e: Emitter, nodes: Sequence[ast.expr]) -> list[list[Sugared] | Simple]:
    """What a display holds: runs of items, and for *xs of unknown length a list."""
    from weft.jit.frontend.builtins import as_list

    runs: list[list[Sugared] | Simple] = []
    for node in nodes:
        range = e.range(node)
        items: list[Sugared] | None
        if isinstance(node, ast.Starred):
            inner = argument(e, node.value)  # a generator too
            items = inner.unrolled(e, range)
            if items is None:
                runs.append(Simple(as_list(e, inner, range).value(e, range)))
                continue
        else:
            items = [expr(e, node)]
        if runs and isinstance(runs[-1], list):
            runs[-1].extend(items)
        else:
            runs.append(list(items))
    return runs


def _joined(
    e: Emitter, runs: Sequence[list[Sugared] | Simple], hint: ty.Type | None, range: SourceRange
) -> Sugared:
    """[a, *xs, b] for a list xs: [a] + list(xs) + [b]."""
    from weft.jit.frontend.operators import binary

    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    whole: Sugared | None = None
    for run in runs:
        part = run if isinstance(run, Simple) else Simple(make_list(e, run, wanted, range))
        whole = part if whole is None else binary(e, ast.Add, whole, part, range)
    assert whole is not None
    return whole


def make_list(
    e: Emitter, items: Sequence[Sugared], wanted: ty.Type | None, range: SourceRange
) -> Value:
    """A list of items, of the wanted type where they fit it; an empty one holds tensors unless
    something else is wanted."""
    values = _fitting(e, items, wanted, range)
    if values is None or wanted is None:
        values = [item.value(e, range) for item in items]
        wanted = common_type(values, range, "list") if values else ty.TENSOR
    return e.emit("prim::ListConstruct", values, ty.ListType(wanted), range=range)


def _fitting(
    e: Emitter, items: Sequence[Sugared], wanted: ty.Type | None, range: SourceRange
) -> list[Value] | None:
    """The items as values of the wanted type, or None. Whoever needs that type refuses another."""
    if wanted is None:
        return None
    try:
        return [coerce(e, item, wanted, range, "item") for item in items]
    except FrontendError:
        return None


def common_type(values: Sequence[Value], range: SourceRange, what: str) -> ty.Type:
    """The type of all items of a container."""
    result = values[0].type
    for each in values[1:]:
        wider = ty.unify(result, each.type)
        if wider is None:
            fail(
                f"{what}: expected items of one type, got {result.annotation} and "
                f"{each.type.annotation}",
                range,
                f"a declared type, as xs: List[Union[{result.annotation}, {each.type.annotation}]]",
            )
        result = wider
    return result


@expression(ast.Dict)
def _dict(e: Emitter, node: ast.Dict, hint: ty.Type | None) -> Sugared:
    range = e.range(node)
    wanted = hint if isinstance(hint, ty.DictType) else None
    keys: list[Sugared] = []
    items: list[Sugared] = []
    for key, item in zip(node.keys, node.values):
        if key is None:
            refuse_form(e.code, node, "double star")
        keys.append(expr(e, key, wanted and wanted.key))
        items.append(expr(e, item, wanted and wanted.value))
    of_keys = _fitting(e, keys, wanted and wanted.key, range)
    of_items = _fitting(e, items, wanted and wanted.value, range)
    type = wanted or ty.DictType(ty.STR, ty.TENSOR)
    if of_keys is None or of_items is None:
        of_keys, of_items = ([part.value(e, range) for part in each] for each in (keys, items))
        if keys:
            known = common_type(of_keys, range, "dict keys")
            type = ty.DictType(known, common_type(of_items, range, "dict values"))
    check_key(type.key, range)
    flat = [part for pair in zip(of_keys, of_items) for part in pair]
    whole = e.emit("prim::DictConstruct", flat, type, range=range)
    if not flat and hint is None:
        e.untyped.add(whole)
    return Simple(whole)


def check_key(type: ty.Type, range: SourceRange) -> None:
    """FrontendError unless values of the type can be keys."""
    if not is_key(type):
        fail(f"dict: expected keys of type {KEYS}, got {type.annotation}", range)
