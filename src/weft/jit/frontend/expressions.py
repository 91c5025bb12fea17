"""Expressions: names, constants, attributes, containers, conditionals, calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.annotations import KEYS, is_key
from weft.jit.frontend.conditions import choose, condition, static_truth, truth
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.scaffold import EXPRESSIONS, expression, handler_of_expression, refuse_form
from weft.jit.frontend.sugared import Arg, Call, Path, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_MAX_DEPTH = 400
_LARGEST_INT = 2**63
_HELD = (bool, int, float, complex, str)


def expr(e: Emitter, node: ast.expr, hint: ty.Type | None = None) -> Sugared:
    """Compiles an expression. `hint` is the type wanted of it: what [] and {} become."""
    if type(node) is ast.Name:  # a variable: nothing is made
        known = e.scope.find(node.id)
        if isinstance(known, Simple):
            return known
    handler = EXPRESSIONS.get(type(node)) or handler_of_expression(e.code, node)
    graph, range = e.graph, e.code.range(node)
    before, graph.range = graph.range, range  # as at_range does
    e.depth += 1
    try:
        if e.depth > _MAX_DEPTH:
            fail("expected a less deeply nested expression", range)
        return handler(e, node, hint)
    finally:
        e.depth -= 1
        graph.range = before


def value(e: Emitter, node: ast.expr, hint: ty.Type | None = None) -> Value:
    """The value of an expression in the graph."""
    return expr(e, node, hint).value(e, e.range(node))


@expression(ast.Name)
def _name(e: Emitter, node: ast.Name, hint: ty.Type | None) -> Sugared:
    return e.lookup(node.id, e.range(node))


@expression(ast.Constant)
def _constant(e: Emitter, node: ast.Constant, hint: ty.Type | None) -> Sugared:
    held = node.value
    if isinstance(held, int) and not isinstance(held, bool) and abs(held) >= _LARGEST_INT:
        fail(f"expected an int of 64 bits, got {held}", e.range(node))
    if held is None or isinstance(held, _HELD):
        return Simple(e.constant(held))
    if held is ...:
        fail("expected ... only inside an index, got it as a value", e.range(node), "x[..., 0]")
    fail(f"expected a value of the language, got {type(held).__name__}", e.range(node), "a str")


@expression(ast.Attribute)
def _attribute(e: Emitter, node: ast.Attribute, hint: ty.Type | None) -> Sugared:
    name = path_of(node)
    known = e.scope.find(name) if name is not None else None
    if isinstance(known, Path) and known.refined and known.epoch == e.epoch:
        return known
    owner = expr(e, node.value)
    return owner.attr(e, e.range(node), node.attr)


def path_of(node: ast.expr) -> str | None:
    """ "self.a.b" for a chain of attributes of a variable; None for other expressions."""
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    inner = path_of(node.value)
    return None if inner is None else f"{inner}.{node.attr}"


@expression(ast.NamedExpr)
def _walrus(e: Emitter, node: ast.NamedExpr, hint: ty.Type | None) -> Sugared:
    from weft.jit.frontend.assignment import assign

    held = expr(e, node.value, hint)
    assign(e, node.target, held, e.range(node.value))
    return expr(e, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))


@expression(ast.IfExp)
def _ternary(e: Emitter, node: ast.IfExp, hint: ty.Type | None) -> Sugared:
    test = condition(e, node.test)
    return choose(
        e,
        test,
        lambda: expr(e, node.body, hint),
        lambda: expr(e, node.orelse, hint),
        e.range(node),
    )


@expression(ast.BoolOp)
def _bool_op(e: Emitter, node: ast.BoolOp, hint: ty.Type | None) -> Sugared:
    """and, or: of bools a bool; of other values the one that decides, as in Python."""
    if all(_is_test(value) for value in node.values):
        return Simple(condition(e, node).materialize(e))
    return _decide(e, node, node.values, hint)


def _is_test(node: ast.expr) -> bool:
    """Whether an expression surely gives a bool."""
    if isinstance(node, ast.Compare):
        return all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.BoolOp):
        return all(_is_test(value) for value in node.values)
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _decide(
    e: Emitter, node: ast.BoolOp, values: Sequence[ast.expr], hint: ty.Type | None
) -> Sugared:
    from weft.jit.frontend.conditions import Condition
    from weft.jit.frontend.isinstance_test import is_isinstance

    if len(values) == 1:
        return expr(e, values[0], hint)
    is_and = isinstance(node.op, ast.And)
    range = e.range(node)
    if _is_test(values[0]) or is_isinstance(e, values[0]):
        test = condition(e, values[0])
        first: Sugared = Simple(test.materialize(e))
    else:
        first = expr(e, values[0], hint)
        known = static_truth(e, first)
        test = Condition(None if known is not None else truth(e, first, range), known)
        name = values[0].id if isinstance(values[0], ast.Name) else None
        if name is not None and known is None:
            actual = type_of(e, first, range)
            test.yes = {name: ty.non_none(actual)} if actual is not ty.ANY else {}

    def rest() -> Sugared:
        return _decide(e, node, values[1:], hint)

    def itself() -> Sugared:
        is_optional = isinstance(first, Simple) and isinstance(first.v.type, ty.OptionalType)
        if is_and or not is_optional:
            return first
        held = first.value(e, range)  # what decides an `or` is true, so it is not None
        return Simple(e.cast(held, ty.non_none(held.type)))

    return choose(e, test, rest if is_and else itself, itself if is_and else rest, range, True)


# Containers -----------------------------------------------------------------------------------


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
            inner = expr(e, node.value)
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
            inner = expr(e, node.value)
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
    """A list of items; an empty one holds tensors unless something else is wanted."""
    if wanted is not None:
        values = [coerce(e, item, wanted, range, "list") for item in items]
        return e.emit("prim::ListConstruct", values, ty.ListType(wanted), range=range)
    values = [item.value(e, range) for item in items]
    elem = common_type(values, range, "list") if values else ty.TENSOR
    return e.emit("prim::ListConstruct", values, ty.ListType(elem), range=range)


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
    flat: list[Value] = []
    for key, item in zip(node.keys, node.values):
        if key is None:
            refuse_form(e.code, node, "double star")
        for part, want in ((key, wanted and wanted.key), (item, wanted and wanted.value)):
            made = expr(e, part, want)
            flat.append(
                coerce(e, made, want, e.range(part), "dict") if want else made.value(e, range)
            )
    if wanted is None and flat:
        keys = common_type(flat[::2], range, "dict keys")
        wanted = ty.DictType(keys, common_type(flat[1::2], range, "dict values"))
    type = wanted or ty.DictType(ty.STR, ty.TENSOR)
    check_key(type.key, range)
    whole = e.emit("prim::DictConstruct", flat, type, range=range)
    if not flat and hint is None:
        e.untyped.add(whole)
    return Simple(whole)


def check_key(type: ty.Type, range: SourceRange) -> None:
    """FrontendError unless values of the type can be keys."""
    if not is_key(type):
        fail(f"dict: expected keys of type {KEYS}, got {type.annotation}", range)


# Calls ----------------------------------------------------------------------------------------


@expression(ast.Call)
def _call(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    range = e.range(node)
    called = expr(e, node.func)
    if getattr(called, "obj", None) is not None:  # a Python object, maybe one with its own syntax
        from weft.jit.frontend.special_calls import special_call

        found = special_call(e, called, node, hint)
        if found is not None:
            return found
    args: list[Arg] = []
    for item in node.args:
        if isinstance(item, ast.Starred):
            args.extend(Arg(each, e.range(item)) for each in _star_argument(e, item))
        else:
            args.append(Arg(argument(e, item), e.range(item)))
    kwargs: dict[str, Arg] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            kwargs.update(_double_star(e, keyword))
        else:
            kwargs[keyword.arg] = Arg(argument(e, keyword.value), e.range(keyword.value))
    return called.call(e, Call(range, args, kwargs, hint))


def _star_argument(e: Emitter, item: ast.Starred) -> list[Sugared]:
    """*x in a call: the items of a tuple, or a list of ints for an operator that takes sizes."""
    from weft.jit.frontend.sugared import Spread

    inner = argument(e, item.value)
    parts = inner.unrolled(e, e.range(item))
    if parts is not None:
        return parts
    if isinstance(inner, Simple) and inner.v.type == ty.ListType(ty.INT):
        return [Spread(inner.v)]
    fail(
        f"*: expected a tuple, whose length is known, got {inner.describe()}",
        e.range(item),
        "the items one by one",
    )


def _double_star(e: Emitter, keyword: ast.keyword) -> dict[str, Arg]:
    """**{"a": x} with literal keys; anything else is refused."""
    node = keyword.value
    if isinstance(node, ast.DictComp):
        from weft.jit.frontend.comprehensions import static_dict

        found = static_dict(e, node)
        if found is not None:
            return {name: Arg(value, e.range(node)) for name, value in found.items()}
    if not isinstance(node, ast.Dict) or not all(
        isinstance(key, ast.Constant) and isinstance(key.value, str) for key in node.keys
    ):
        refuse_form(e.code, node, "double star")
    pairs = zip(node.keys, node.values)
    return {key.value: Arg(expr(e, item), e.range(item)) for key, item in pairs}  # type: ignore[union-attr]


def argument(e: Emitter, node: ast.expr) -> Sugared:
    """An argument of a call; a generator is a list there."""
    if isinstance(node, ast.GeneratorExp):
        from weft.jit.frontend.comprehensions import comprehension

        return comprehension(e, node, None)
    return expr(e, node)


@expression(ast.GeneratorExp)
def _generator(e: Emitter, node: ast.GeneratorExp, hint: ty.Type | None) -> Sugared:
    refuse_form(e.code, node, "generator")


@expression(ast.Lambda)
def _lambda(e: Emitter, node: ast.Lambda, hint: ty.Type | None) -> Sugared:
    from weft.jit.frontend.local_functions import LocalFunction

    return LocalFunction(e, node)
