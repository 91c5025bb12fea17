"""Expressions: names, constants, attributes, conditionals, calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.conditions import path_of, test_of
from weft.jit.frontend.language.control_flow import choose
from weft.jit.frontend.language.isinstance_test import is_isinstance
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import fail, refuse_form
from weft.jit.frontend.values import Arg, Call, Dots, Path, Simple, Spread, Sugared
from weft.jit.ir import types as ty

_LARGEST_INT = 2**63
_HELD = (bool, int, float, complex, str)


@expression(ast.Name)
def _name(c: Compiler, node: ast.Name, hint: ty.Type | None) -> Sugared:
    return c.lookup(node.id, c.range(node))


@expression(ast.Constant)
def _constant(c: Compiler, node: ast.Constant, hint: ty.Type | None) -> Sugared:
    held = node.value
    if isinstance(held, int) and not isinstance(held, bool) and abs(held) >= _LARGEST_INT:
        fail(f"expected an int of 64 bits, got {held}", c.range(node))
    if held is None or isinstance(held, _HELD):
        return Simple(c.constant(held))
    if held is ...:
        return Dots()
    fail(f"expected a value of the language, got {type(held).__name__}", c.range(node), "a str")


@expression(ast.Attribute)
def _attribute(c: Compiler, node: ast.Attribute, hint: ty.Type | None) -> Sugared:
    name = path_of(node)
    known = c.scope.find(name) if name is not None else None
    if isinstance(known, Path) and known.refined and known.epoch == c.epoch:
        return known
    owner = c.expr(node.value)
    return owner.attr(c, c.range(node), node.attr)


@expression(ast.NamedExpr)
def _walrus(c: Compiler, node: ast.NamedExpr, hint: ty.Type | None) -> Sugared:
    held = c.expr(node.value, hint)
    c.assign(node.target, held, c.range(node.value))
    return c.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))


@expression(ast.IfExp)
def _ternary(c: Compiler, node: ast.IfExp, hint: ty.Type | None) -> Sugared:
    test = c.condition(node.test)
    return choose(
        c, test, lambda: c.expr(node.body, hint), lambda: c.expr(node.orelse, hint), c.range(node)
    )


@expression(ast.BoolOp)
def _bool_op(c: Compiler, node: ast.BoolOp, hint: ty.Type | None) -> Sugared:
    """and, or: of bools a bool; of other values the one that decides, as in Python."""
    if all(_is_test(value) for value in node.values):
        return Simple(c.condition(node).materialize(c))
    return _decide(c, node, node.values, hint)


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
    c: Compiler, node: ast.BoolOp, values: Sequence[ast.expr], hint: ty.Type | None
) -> Sugared:
    if len(values) == 1:
        return c.expr(values[0], hint)
    is_and = isinstance(node.op, ast.And)
    range = c.range(node)
    if _is_test(values[0]) or is_isinstance(c, values[0]):
        test = c.condition(values[0])
        first: Sugared = Simple(test.materialize(c))
    else:
        first = c.expr(values[0], hint)
        test = test_of(c, first, range)
        name = values[0].id if isinstance(values[0], ast.Name) else None
        if name is not None and test.known is None:
            actual = c.type_of(first, range)
            test.yes = {name: ty.non_none(actual)} if actual is not ty.ANY else {}

    def rest() -> Sugared:
        return _decide(c, node, values[1:], hint)

    def itself() -> Sugared:
        is_optional = isinstance(first, Simple) and isinstance(first.v.type, ty.OptionalType)
        if is_and or not is_optional:
            return first
        held = first.value(c, range)  # what decides an `or` is true, so it is not None
        return Simple(c.cast(held, ty.non_none(held.type)))

    return choose(c, test, rest if is_and else itself, itself if is_and else rest, range, True)


# Calls ----------------------------------------------------------------------------------------


@expression(ast.Call)
def _call(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    range = c.range(node)
    called = c.expr(node.func)
    if getattr(called, "obj", None) is not None:  # a Python object, maybe one with its own syntax
        found = verb["special_call"](c, called, node, hint)
        if found is not None:
            return found
    args: list[Arg] = []
    for item in node.args:
        if isinstance(item, ast.Starred):
            args.extend(Arg(each, c.range(item)) for each in star_argument(c, item))
        else:
            args.append(Arg(c.argument(item), c.range(item)))
    kwargs: dict[str, Arg] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            kwargs.update(_double_star(c, keyword))
        else:
            kwargs[keyword.arg] = Arg(c.argument(keyword.value), c.range(keyword.value))
    return called.call(c, Call(range, args, kwargs, hint))


def star_argument(c: Compiler, item: ast.Starred) -> list[Sugared]:
    """*x in a call: the items of a tuple, or a list of ints for an operator that takes sizes."""
    inner = c.argument(item.value)
    parts = inner.unrolled(c, c.range(item))
    if parts is not None:
        return parts
    if isinstance(inner, Simple) and inner.v.type == ty.ListType(ty.INT):
        return [Spread(inner.v)]
    fail(
        f"*: expected a tuple, whose length is known, got {inner.describe()}",
        c.range(item),
        "the items one by one",
    )


def _double_star(c: Compiler, keyword: ast.keyword) -> dict[str, Arg]:
    """**{"a": x} with literal keys; anything else is refused."""
    node = keyword.value
    if isinstance(node, ast.DictComp):
        found = verb["static_dict"](c, node)
        if found is not None:
            return {name: Arg(value, c.range(node)) for name, value in found.items()}
    if not isinstance(node, ast.Dict) or not all(
        isinstance(key, ast.Constant) and isinstance(key.value, str) for key in node.keys
    ):
        refuse_form(c.code, node, "double star")
    pairs = zip(node.keys, node.values)
    return {key.value: Arg(c.expr(item), c.range(item)) for key, item in pairs}  # type: ignore[union-attr]


@expression(ast.GeneratorExp)
def _generator(c: Compiler, node: ast.GeneratorExp, hint: ty.Type | None) -> Sugared:
    refuse_form(c.code, node, "generator")
