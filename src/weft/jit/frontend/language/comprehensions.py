"""List and dict comprehensions, with conditions and several generators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, Scope
from weft.jit.frontend.language import loops
from weft.jit.frontend.language.control_flow import branch, join, refine_all
from weft.jit.frontend.language.displays import check_key
from weft.jit.frontend.language.iteration import Counted, Source
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import FrontendError, NotSupportedError, fail
from weft.jit.frontend.values import Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


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
