"""Tuples, lists and dicts as they are written, with what a star spreads among the items, and
comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, Scope
from weft.jit.frontend.language import loops
from weft.jit.frontend.language.control_flow import branch, join, refine_all
from weft.jit.frontend.language.iteration import Counted, Source
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import FrontendError, NotSupportedError, fail, refuse_form
from weft.jit.frontend.types.annotations import KEYS, is_key
from weft.jit.frontend.values import Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@expression(ast.Tuple)
def _tuple(c: Compiler, node: ast.Tuple, hint: ty.Type | None) -> Sugared:
    hints: Sequence[ty.Type | None] = [None] * len(node.elts)
    if isinstance(hint, ty.TupleType) and len(hint.elems) == len(node.elts):
        hints = hint.elems
    starred = any(isinstance(item, ast.Starred) for item in node.elts)
    if starred:
        runs = _runs(c, node.elts)
        lists = [run for run in runs if isinstance(run, Simple)]
        if not lists:
            return TupleLiteral([item for run in runs if isinstance(run, list) for item in run])
        if all(run.v.type == ty.ListType(ty.INT) for run in lists):
            return _joined(c, runs, ty.ListType(ty.INT), c.range(node))  # sizes: as x.shape is
        fail(
            f"*: expected a tuple, whose length is known, got {lists[0].describe()}",
            c.range(node),
            "a list",
        )
    items = [c.expr(item, wanted) for item, wanted in zip(node.elts, hints)]
    return TupleLiteral(items, range=c.range(node))


@expression(ast.Starred)
def _starred(c: Compiler, node: ast.Starred, hint: ty.Type | None) -> Sugared:
    fail("*: expected it inside a call, a list or a tuple, got it alone", c.range(node))


@expression(ast.List)
def _list(c: Compiler, node: ast.List, hint: ty.Type | None) -> Sugared:
    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    range = c.range(node)
    if any(isinstance(item, ast.Starred) for item in node.elts):
        runs = _runs(c, node.elts)
        if any(isinstance(run, Simple) for run in runs):
            return _joined(c, runs, hint, range)
        items = [item for run in runs if isinstance(run, list) for item in run]
    else:
        items = [c.expr(item, wanted) for item in node.elts]
    made = c.make_list(items, wanted, range)
    if not items and hint is None:
        c.untyped.add(made)
    return Simple(made)


def _runs(c: Compiler, nodes: Sequence[ast.expr]) -> list[list[Sugared] | Simple]:
    """What a display holds: runs of items, and for *xs of unknown length a list."""
    runs: list[list[Sugared] | Simple] = []
    for node in nodes:
        range = c.range(node)
        items: list[Sugared] | None
        if isinstance(node, ast.Starred):
            inner = c.argument(node.value)  # a generator too
            items = inner.unrolled(c, range)
            if items is None:
                runs.append(Simple(c.as_list(inner, range).value(c, range)))
                continue
        else:
            items = [c.expr(node)]
        if runs and isinstance(runs[-1], list):
            runs[-1].extend(items)
        else:
            runs.append(list(items))
    return runs


def _joined(
    c: Compiler, runs: Sequence[list[Sugared] | Simple], hint: ty.Type | None, range: SourceRange
) -> Sugared:
    """[a, *xs, b] for a list xs: [a] + list(xs) + [b]."""
    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    whole: Sugared | None = None
    for run in runs:
        part = run if isinstance(run, Simple) else Simple(c.make_list(run, wanted, range))
        whole = part if whole is None else c.binary(ast.Add, whole, part, range)
    assert whole is not None
    return whole


@verb("make_list")
def make_list(
    c: Compiler, items: Sequence[Sugared], wanted: ty.Type | None, range: SourceRange
) -> Value:
    """A list of items, of the wanted type where they fit it; an empty one holds tensors unless
    something else is wanted."""
    values = _fitting(c, items, wanted, range)
    if values is None or wanted is None:
        values = [item.value(c, range) for item in items]
        wanted = common_type(values) if values else ty.TENSOR
    return c.emit("prim::ListConstruct", values, ty.ListType(wanted), range=range)


def _fitting(
    c: Compiler, items: Sequence[Sugared], wanted: ty.Type | None, range: SourceRange
) -> list[Value] | None:
    """The items as values of the wanted type, or None. Whoever needs that type refuses another."""
    if wanted is None:
        return None
    try:
        return [c.convert(item, wanted, range, "item") for item in items]
    except FrontendError:
        return None


def common_type(values: Sequence[Value]) -> ty.Type:
    """The type of all items of a container: of several types, their union."""
    result = values[0].type
    for each in values[1:]:
        result = ty.unify(result, each.type) or ty.union_of([result, each.type])
    return result


@expression(ast.Dict)
def _dict(c: Compiler, node: ast.Dict, hint: ty.Type | None) -> Sugared:
    range = c.range(node)
    wanted = hint if isinstance(hint, ty.DictType) else None
    keys: list[Sugared] = []
    items: list[Sugared] = []
    for key, item in zip(node.keys, node.values):
        if key is None:
            refuse_form(c.code, node, "double star")
        keys.append(c.expr(key, wanted and wanted.key))
        items.append(c.expr(item, wanted and wanted.value))
    of_keys = _fitting(c, keys, wanted and wanted.key, range)
    of_items = _fitting(c, items, wanted and wanted.value, range)
    type = wanted or ty.DictType(ty.STR, ty.TENSOR)
    if of_keys is None or of_items is None:
        of_keys, of_items = ([part.value(c, range) for part in each] for each in (keys, items))
        if keys:
            known = common_type(of_keys)
            type = ty.DictType(known, common_type(of_items))
    check_key(type.key, range)
    flat = [part for pair in zip(of_keys, of_items) for part in pair]
    whole = c.emit("prim::DictConstruct", flat, type, range=range)
    if not flat and hint is None:
        c.untyped.add(whole)
    return Simple(whole)


def check_key(type: ty.Type, range: SourceRange) -> None:
    """FrontendError unless values of the type can be keys."""
    if not is_key(type):
        fail(f"dict: expected keys of type {KEYS}, got {type.annotation}", range)


@expression(ast.ListComp)
def comprehension(
    c: Compiler, node: ast.ListComp | ast.GeneratorExp, hint: ty.Type | None
) -> Sugared:
    """[f(x) for x in xs if p(x)]; over things of known length without conditions a tuple of known
    length where the list would hold several types, otherwise a list."""
    if any(generator.is_async for generator in node.generators):
        raise NotSupportedError(
            "expected syntax of the language, got async for", c.range(node), "for x in xs"
        )
    first = node.generators[0]
    source = c.iterate(c.expr(first.iter), c.range(first.iter))
    if len(node.generators) == 1 and not first.ifs and not isinstance(source, Counted):
        return _unrolled(c, node, source, hint)
    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    out = c.emit("prim::ListConstruct", (), ty.ListType(wanted or ty.TENSOR), range=c.range(node))
    found: list[ty.Type] = [] if wanted is None else [wanted]

    def add() -> None:
        held = c.expr(node.elt, found[0] if found else None)
        item = _item(c, held, found, out, node.elt)
        out.type = ty.ListType(found[0])
        range = c.range(node.elt)
        c.apply("aten::append", range, Simple(out), Simple(item))

    _generate(c, node.generators, add, source)
    return Simple(out)


def _item(c: Compiler, held: Sugared, found: list[ty.Type], out: Value, node: ast.expr) -> Value:
    """An item of the type found so far. The first one may be of another type than is wanted."""
    if found:
        try:
            return c.convert(held, found[0], c.range(node), "comprehension")
        except FrontendError:
            if out.has_uses:
                raise
    item = held.value(c, c.range(node))
    found[:] = [item.type]
    return item


def _unrolled(
    c: Compiler,
    node: ast.ListComp | ast.GeneratorExp,
    source: Sequence[Sugared],
    hint: ty.Type | None,
) -> Sugared:
    """One generator over a tuple or list of modules, without conditions."""
    generator = node.generators[0]
    items = []
    outer = c.scope
    inner = Scope(outer)
    with c.within(c.block, inner), loops.repeated(c):
        for item in source:
            c.assign(generator.target, item, c.range(generator.target))
            items.append(c.expr(node.elt, hint.elem if isinstance(hint, ty.ListType) else None))
    if isinstance(node, ast.GeneratorExp):
        return TupleLiteral(items)

    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    return Simple(c.make_list(items, wanted, c.range(node)))


@expression(ast.DictComp)
def _dict_comprehension(c: Compiler, node: ast.DictComp, hint: ty.Type | None) -> Sugared:
    wanted = hint if isinstance(hint, ty.DictType) else None
    type = wanted or ty.DictType(ty.STR, ty.TENSOR)
    out = c.emit("prim::DictConstruct", (), type, range=c.range(node))
    keys: list[ty.Type] = [] if wanted is None else [wanted.key]
    values: list[ty.Type] = [] if wanted is None else [wanted.value]

    def add() -> None:
        key = _item(c, c.expr(node.key), keys, out, node.key)
        check_key(keys[0], c.range(node.key))
        held = c.expr(node.value, values[0] if values else None)
        item = _item(c, held, values, out, node.value)
        out.type = ty.DictType(keys[0], values[0])
        range = c.range(node)
        c.apply("aten::_set_item", range, Simple(out), Simple(key), Simple(item))

    _generate(c, node.generators, add)
    return Simple(out)


@verb("static_dict")
def static_dict(c: Compiler, node: ast.DictComp) -> dict[str, Sugared] | None:
    """{k: v for ...} whose keys are known while compiling: what ** takes apart. None otherwise."""
    generator = node.generators[0]
    source = c.iterate(c.expr(generator.iter), c.range(generator.iter))
    if isinstance(source, Counted) or len(node.generators) != 1 or generator.ifs:
        return None
    found: dict[str, Sugared] = {}
    with c.within(c.block, Scope(c.scope)), loops.repeated(c):
        for item in source:
            c.assign(generator.target, item, c.range(generator.target))
            key = c.expr(node.key).static(c)
            if not isinstance(key, str):
                return None
            found[key] = c.expr(node.value)
    return found


def _generate(
    c: Compiler,
    generators: Sequence[ast.comprehension],
    add: Callable[[], None],
    source: Source | None = None,
) -> None:
    """The loops of a comprehension, nested from left to right; `source` is what the first runs
    over, where that is compiled already."""
    if not generators:
        add()
        return
    first, rest = generators[0], generators[1:]
    range = c.range(first.iter)
    if source is None:
        source = c.iterate(c.expr(first.iter), range)

    def bind(item: Sugared) -> None:
        c.assign(first.target, item, c.range(first.target))

    def body() -> frozenset[str]:
        _filter(c, first.ifs, lambda: _generate(c, rest, add))
        return FALLS

    outer = c.scope
    inner = Scope(outer)
    set_by_tests = loops.assigned_names([test for g in generators for test in g.ifs])
    with c.within(c.block, inner):
        if not isinstance(source, Counted):
            loops.unroll(c, source, bind, body, range)
        else:
            names = [name for name in set_by_tests if outer.find(name) is not None]
            loops.run(c, loops.over(c, source, bind, body, names), range)
    for name in set_by_tests:
        if name in inner.names:
            outer.set(name, inner.names[name])


def _never(c: Compiler, then: Callable[[], None], range: SourceRange) -> None:
    """Compiles what is never run, for the type of the items it would have made: code that is
    there only for other types of the arguments may be wrong for these."""
    node = c.node("prim::If", (c.constant(False),), (), range=range)
    try:
        with c.within(node.add_block(), Scope(c.scope)):
            then()
    except FrontendError:
        node.blocks[0].clear()
    node.blocks[0].set_returns([])
    node.add_block().set_returns([])


def _filter(c: Compiler, tests: Sequence[ast.expr], then: Callable[[], None]) -> None:
    """then() where all tests hold."""
    if not tests:
        then()
        return
    test = c.condition(tests[0])
    if test.known is False:
        _never(c, lambda: _filter(c, tests[1:], then), c.range(tests[0]))
        return
    if test.known is True:
        refine_all(c, test.yes)
        _filter(c, tests[1:], then)
        return

    def yes() -> frozenset[str]:
        refine_all(c, test.yes)
        _filter(c, tests[1:], then)
        return FALLS

    if test.value is None:
        fail("comprehension: expected a condition", c.range(tests[0]))
    range = c.range(tests[0])
    node, sides = branch(c, test.value, (yes, lambda: FALLS), range)
    join(c, node, sides, range)
