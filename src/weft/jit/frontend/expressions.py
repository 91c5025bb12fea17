"""Expressions: names, constants, attributes, conditionals, calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.conditions import choose, condition, static_truth, truth
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.scaffold import EXPRESSIONS, expression, handler_of_expression, refuse_form
from weft.jit.frontend.sugared import Arg, Call, Path, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value

_MAX_DEPTH = 4_000
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
        from weft.jit.frontend.subscripts import Dots

        return Dots()
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
