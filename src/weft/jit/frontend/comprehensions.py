"""List and dict comprehensions, with conditions and several generators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend import loops
from weft.jit.frontend.assignment import assign
from weft.jit.frontend.calls import apply_operator
from weft.jit.frontend.conditions import condition, refine_all
from weft.jit.frontend.control_flow import branch, join
from weft.jit.frontend.conversions import coerce
from weft.jit.frontend.displays import check_key
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import FALLS, Scope
from weft.jit.frontend.errors import FrontendError, NotSupportedError, fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.iteration import Counted, Source, iterate
from weft.jit.frontend.scaffold import expression
from weft.jit.frontend.sugared import Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@expression(ast.ListComp)
def comprehension(
    e: Emitter, node: ast.ListComp | ast.GeneratorExp, hint: ty.Type | None
) -> Sugared:
    """[f(x) for x in xs if p(x)]; over things of known length without conditions a tuple of known
    length where the list would hold several types, otherwise a list."""
    if any(generator.is_async for generator in node.generators):
        raise NotSupportedError(
            "expected syntax of the language, got async for", e.range(node), "for x in xs"
        )
    first = node.generators[0]
    source = iterate(e, expr(e, first.iter), e.range(first.iter))
    if len(node.generators) == 1 and not first.ifs and not isinstance(source, Counted):
        return _unrolled(e, node, source, hint)
    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    out = e.emit("prim::ListConstruct", (), ty.ListType(wanted or ty.TENSOR), range=e.range(node))
    found: list[ty.Type] = [] if wanted is None else [wanted]

    def add() -> None:
        held = expr(e, node.elt, found[0] if found else None)
        item = _item(e, held, found, out, node.elt)
        out.type = ty.ListType(found[0])
        range = e.range(node.elt)
        apply_operator(e, "aten::append", range, Simple(out), Simple(item))

    _generate(e, node.generators, add, source)
    return Simple(out)


def _item(e: Emitter, held: Sugared, found: list[ty.Type], out: Value, node: ast.expr) -> Value:
    """An item of the type found so far. The first one may be of another type than is wanted."""
    if found:
        try:
            return coerce(e, held, found[0], e.range(node), "comprehension")
        except FrontendError:
            if out.has_uses:
                raise
    item = held.value(e, e.range(node))
    found[:] = [item.type]
    return item


def _unrolled(
    e: Emitter,
    node: ast.ListComp | ast.GeneratorExp,
    source: Sequence[Sugared],
    hint: ty.Type | None,
) -> Sugared:
    """One generator over a tuple or list of modules, without conditions."""
    generator = node.generators[0]
    items = []
    outer = e.scope
    inner = Scope(outer)
    with e.within(e.block, inner), loops.repeated(e):
        for item in source:
            assign(e, generator.target, item, e.range(generator.target))
            items.append(expr(e, node.elt, hint.elem if isinstance(hint, ty.ListType) else None))
    if isinstance(node, ast.GeneratorExp):
        return TupleLiteral(items)
    from weft.jit.frontend.displays import make_list

    wanted = hint.elem if isinstance(hint, ty.ListType) else None
    return Simple(make_list(e, items, wanted, e.range(node)))


@expression(ast.DictComp)
def _dict_comprehension(e: Emitter, node: ast.DictComp, hint: ty.Type | None) -> Sugared:
    wanted = hint if isinstance(hint, ty.DictType) else None
    type = wanted or ty.DictType(ty.STR, ty.TENSOR)
    out = e.emit("prim::DictConstruct", (), type, range=e.range(node))
    keys: list[ty.Type] = [] if wanted is None else [wanted.key]
    values: list[ty.Type] = [] if wanted is None else [wanted.value]

    def add() -> None:
        key = _item(e, expr(e, node.key), keys, out, node.key)
        check_key(keys[0], e.range(node.key))
        held = expr(e, node.value, values[0] if values else None)
        item = _item(e, held, values, out, node.value)
        out.type = ty.DictType(keys[0], values[0])
        range = e.range(node)
        apply_operator(e, "aten::_set_item", range, Simple(out), Simple(key), Simple(item))

    _generate(e, node.generators, add)
    return Simple(out)


def static_dict(e: Emitter, node: ast.DictComp) -> dict[str, Sugared] | None:
    """{k: v for ...} whose keys are known while compiling: what ** takes apart. None otherwise."""
    generator = node.generators[0]
    source = iterate(e, expr(e, generator.iter), e.range(generator.iter))
    if isinstance(source, Counted) or len(node.generators) != 1 or generator.ifs:
        return None
    found: dict[str, Sugared] = {}
    with e.within(e.block, Scope(e.scope)), loops.repeated(e):
        for item in source:
            assign(e, generator.target, item, e.range(generator.target))
            key = expr(e, node.key).static(e)
            if not isinstance(key, str):
                return None
            found[key] = expr(e, node.value)
    return found


def _generate(
    e: Emitter,
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
    range = e.range(first.iter)
    if source is None:
        source = iterate(e, expr(e, first.iter), range)

    def bind(item: Sugared) -> None:
        assign(e, first.target, item, e.range(first.target))

    def body() -> frozenset[str]:
        _filter(e, first.ifs, lambda: _generate(e, rest, add))
        return FALLS

    outer = e.scope
    inner = Scope(outer)
    with e.within(e.block, inner):
        if not isinstance(source, Counted):
            loops.unroll(e, source, bind, body, range)
        else:
            counted = source
            tests = [test for generator in generators for test in generator.ifs]
            names = [n for n in loops.assigned_names(tests) if outer.find(n) is not None]
            plan = loops.Plan(
                trips=counted.length,
                first=e.constant(True),
                start=lambda step: bind(counted.item(step)),
                again=None,
                body=body,
                assigned=names,
                forever=False,
                wants_broke=False,
            )
            loops.run(e, plan, range)
    for name in loops.assigned_names([test for g in generators for test in g.ifs]):
        if name in inner.names:
            outer.set(name, inner.names[name])


def _never(e: Emitter, then: Callable[[], None], range: SourceRange) -> None:
    """Compiles what is never run, for the type of the items it would have made: code that is
    there only for other types of the arguments may be wrong for these."""
    node = e.node("prim::If", (e.constant(False),), (), range=range)
    try:
        with e.within(node.add_block(), Scope(e.scope)):
            then()
    except FrontendError:
        node.blocks[0].clear()
    node.blocks[0].set_returns([])
    node.add_block().set_returns([])


def _filter(e: Emitter, tests: Sequence[ast.expr], then: Callable[[], None]) -> None:
    """then() where all tests hold."""
    if not tests:
        then()
        return
    test = condition(e, tests[0])
    if test.known is False:
        _never(e, lambda: _filter(e, tests[1:], then), e.range(tests[0]))
        return
    if test.known is True:
        refine_all(e, test.yes)
        _filter(e, tests[1:], then)
        return

    def yes() -> frozenset[str]:
        refine_all(e, test.yes)
        _filter(e, tests[1:], then)
        return FALLS

    if test.value is None:
        fail("comprehension: expected a condition", e.range(tests[0]))
    range = e.range(tests[0])
    node, sides = branch(e, test.value, (yes, lambda: FALLS), range)
    join(e, node, sides, range)
