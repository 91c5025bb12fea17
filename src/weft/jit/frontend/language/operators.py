"""Arithmetic, comparison and the operators of user classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from weft.jit import python_classes, schemas
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import candidates, emit_operator, try_operator
from weft.jit.frontend.language.control_flow import Condition, choose
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

# symbol, method of user classes, operator of tensors, operator of everything else
_BINARY: dict[type[ast.operator], tuple[str, str, str, str]] = {
    ast.Add: ("+", "add", "aten::add", "aten::add"),
    ast.Sub: ("-", "sub", "aten::sub", "aten::sub"),
    ast.Mult: ("*", "mul", "aten::mul", "aten::mul"),
    ast.Div: ("/", "truediv", "aten::div", "aten::div"),
    ast.FloorDiv: ("//", "floordiv", "aten::floor_divide", "aten::floordiv"),
    ast.Mod: ("%", "mod", "aten::remainder", "aten::remainder"),
    ast.Pow: ("**", "pow", "aten::pow", "aten::pow"),
    ast.MatMult: ("@", "matmul", "aten::matmul", "aten::matmul"),
    ast.LShift: ("<<", "lshift", "aten::bitwise_left_shift", "aten::__lshift__"),
    ast.RShift: (">>", "rshift", "aten::bitwise_right_shift", "aten::__rshift__"),
    ast.BitAnd: ("&", "and", "aten::bitwise_and", "aten::__and__"),
    ast.BitOr: ("|", "or", "aten::bitwise_or", "aten::__or__"),
    ast.BitXor: ("^", "xor", "aten::bitwise_xor", "aten::__xor__"),
}
# number <op> tensor as an operator of the tensor and the number
_REFLECTED: dict[type[ast.operator], str] = {
    ast.Add: "aten::add",
    ast.Mult: "aten::mul",
    ast.Sub: "aten::rsub",
    ast.BitAnd: "aten::bitwise_and",
    ast.BitOr: "aten::bitwise_or",
    ast.BitXor: "aten::bitwise_xor",
}
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
NUMBERS = (ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.NUMBER)


@expression(ast.BinOp)
def _binary(c: Compiler, node: ast.BinOp, hint: ty.Type | None) -> Sugared:
    if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr):
        found = verb["percent"](c, node)
        if found is not None:
            return found
    left_hint = hint if isinstance(hint, ty.ListType) else None
    left, right = c.expr(node.left, left_hint), c.expr(node.right, left_hint)
    return c.binary(type(node.op), left, right, c.range(node))


@verb("binary")
def binary(
    c: Compiler, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
) -> Sugared:
    """left <op> right."""
    symbol, method, of_tensors, of_others = _BINARY[op]
    if _are_tensor_and_plain(left, right):  # what comes below is for others, or for messages
        found = try_operator(c, candidates(of_tensors), Call.of(range, left, right))
        if not isinstance(found, list):
            return found
    special = _static_sequence(c, op, left, right, range)
    if special is not None:
        return special
    a, b = c.type_of(left, range), c.type_of(right, range)
    if isinstance(a, ty.EnumType) or isinstance(b, ty.EnumType):
        left, right = as_plain(c, left, range), as_plain(c, right, range)
        a, b = c.type_of(left, range), c.type_of(right, range)
    if isinstance(a, ty.ClassType) or isinstance(b, ty.ClassType):
        special = _method_of_class(c, method, left, right, range)
        if special is not None:
            return special
    args = [Arg(left, range), Arg(right, range)]
    if {a, b} in ({ty.BOOL}, {ty.BOOL, ty.INT}) and not (a is b and op in _OF_BITS):
        a, b = ty.INT, ty.INT  # as in Python
        args = [Arg(_as_int(c, arg), arg.range) for arg in args]
    if a in NUMBERS and b is ty.TENSOR:
        return _number_and_tensor(c, op, args, range)
    name = of_tensors if ty.TENSOR in (a, b) else of_others
    if op is ast.Mod and a is ty.STR:
        name = "aten::percentFormat"
    if op is ast.Pow and _may_be_int(a) and _may_be_int(b):
        base, power = (arg.value for arg in args)
        if a is b is ty.INT:
            return _power_of_ints(c, base, power, range)
        return c.call(prelude.power, range, base, power)
    result = try_operator(c, candidates(name), Call(range, args))
    if isinstance(result, list):
        hint = None
        if any(isinstance(each, ty.OptionalType) for each in (a, b)):
            hint = "assert x is not None first, or a test of x is not None around it"
        fail(
            f"{symbol}: expected types it is defined for, got {a.annotation} and {b.annotation}",
            range,
            hint,
        )
    return result


def _may_be_int(type: ty.Type) -> bool:
    """Whether some of the type's values are ints, and all are numbers."""
    return ty.is_subtype(ty.INT, type) and ty.is_subtype(type, ty.NUMBER)


def _power_of_ints(c: Compiler, base: Sugared, power: Sugared, range: SourceRange) -> Sugared:
    """base ** power: an int, or a float where the power is below 0."""
    given = {False: "aten::pow.int_to_int", True: "aten::pow.int"}  # by whether it is below 0
    values = [base.value(c, range), power.value(c, range)]

    def power_of(is_below: bool) -> Sugared:
        return emit_operator(c, schemas.of(given[is_below]), values, {}, range)

    def number_of(is_below: bool) -> Callable[[], Sugared]:
        return lambda: Simple(c.cast(power_of(is_below).value(c, range), ty.NUMBER))

    known = power.static(c)
    if isinstance(known, int):
        return power_of(known < 0)
    test = c.apply("aten::lt", range, power, Simple(c.constant(0))).value(c, range)
    return choose(c, Condition(test), number_of(True), number_of(False), range)


def _are_tensor_and_plain(left: Sugared, right: Sugared) -> bool:
    """Whether it is a tensor on the left, and on the right another or a number."""
    if not (isinstance(left, Simple) and isinstance(right, Simple)):
        return False
    other = right.v.type
    return left.v.type is ty.TENSOR and (other is ty.TENSOR or other in NUMBERS)


def _method_of_class(
    c: Compiler, method: str, left: Sugared, right: Sugared, range: SourceRange
) -> Sugared | None:
    """left.__add__(right) or right.__radd__(left), where that is an object with such a method."""
    for owner, other, name in ((left, right, f"__{method}__"), (right, left, f"__r{method}__")):
        if (
            isinstance(owner, Simple)
            and isinstance(owner.v.type, ty.ClassType)
            and owner.has_attr(c, name)
        ):
            return owner.attr(c, range, name).call(c, Call.of(range, other))
    return None


def _as_int(c: Compiler, arg: Arg) -> Sugared:
    """The number as an int: a bool as 0 or 1."""
    known = arg.value.static(c)
    if isinstance(known, bool):
        return Simple(c.constant(int(known)))
    if c.type_of(arg.value, arg.range) is ty.INT:
        return arg.value
    return c.call_operator("aten::Int", Call(arg.range, [arg]))


def _number_and_tensor(
    c: Compiler, op: type[ast.operator], args: Sequence[Arg], range: SourceRange
) -> Sugared:
    """2 - x and the like: the same operator that eager code uses."""
    number, tensor = (arg.value for arg in args)
    if op in _REFLECTED:
        return c.apply(_REFLECTED[op], range, tensor, number)
    if op is ast.Div:
        return c.apply("aten::mul", range, c.apply("aten::reciprocal", range, tensor), number)
    if op is ast.Pow:
        return c.apply("aten::pow", range, number, tensor)
    wrapped = c.apply("prim::NumToTensor", range, number)
    return c.apply(_BINARY[op][2], range, wrapped, tensor)


def _static_sequence(
    c: Compiler, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
) -> Sugared | None:
    """Tuples are joined and repeated while compiling."""
    if not (is_tuple(left) or is_tuple(right)):
        return None
    a = left.unrolled(c, range) if is_tuple(left) else None
    b = right.unrolled(c, range) if is_tuple(right) else None
    if op is ast.Add and a is not None and b is not None:
        return TupleLiteral([*a, *b])
    if op is ast.Mult and (a is None) != (b is None):
        items, count = (a, right) if a is not None else (b, left)
        times = count.static(c)
        if items is not None and isinstance(times, int):
            if len(items) * times > 10_000:
                fail("*: expected a tuple of at most 10000 items, got more", range, "a list")
            return TupleLiteral(list(items) * times)
        if items and c.type_of(count, range) is ty.INT:
            made = Simple(c.make_list(items, None, range))
            return c.apply("aten::mul", range, made, count)
    return None


def is_tuple(value: Sugared) -> bool:
    if isinstance(value, TupleLiteral):
        return True
    return isinstance(value, Simple) and isinstance(value.v.type, ty.TupleType)


# Unary ----------------------------------------------------------------------------------------


@expression(ast.UnaryOp)
def _unary(c: Compiler, node: ast.UnaryOp, hint: ty.Type | None) -> Sugared:
    range = c.range(node)
    if isinstance(node.op, ast.Not):
        return Simple(c.condition(node).materialize(c))
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        held = node.operand.value
        if isinstance(held, int | float | complex) and not isinstance(held, bool):
            if isinstance(held, int) and held > 2**63:
                fail(f"expected an int of 64 bits, got {-held}", range)
            return Simple(c.constant(-held))
    operand = c.expr(node.operand)
    names = {
        ast.USub: ("-", "aten::neg", "__neg__"),
        ast.Invert: ("~", "aten::bitwise_not", "__invert__"),
        ast.UAdd: ("+", "", "__pos__"),
    }
    symbol, kind, method = names[type(node.op)]
    if isinstance(operand, Simple) and isinstance(operand.v.type, ty.ClassType):
        return operand.attr(c, range, method).call(c, Call(range))
    actual = c.type_of(operand, range)
    if isinstance(node.op, ast.UAdd):
        if actual not in (*NUMBERS, ty.TENSOR):
            fail(f"+: expected a number or a tensor, got {actual.annotation}", range)
        if actual is ty.BOOL:  # an int, as in Python
            return c.apply("aten::Int", range, operand)
        return operand
    found = try_operator(c, candidates(kind), Call.of(range, operand))
    if isinstance(found, list):
        fail(f"{symbol}: expected a type it is defined for, got {actual.annotation}", range)
    return found


# In place -------------------------------------------------------------------------------------


def augmented(
    c: Compiler, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
) -> tuple[Sugared, bool]:
    """left <op>= right: the new value, and whether the old one was changed in place."""
    symbol, method, of_tensors, _ = _BINARY[op]
    actual = c.type_of(left, range)
    if isinstance(left, Simple) and isinstance(actual, ty.ClassType):
        if left.has_attr(c, f"__i{method}__"):
            called = left.attr(c, range, f"__i{method}__")
            return called.call(c, Call.of(range, right)), False
        return c.binary(op, left, right, range), False
    args = [Arg(left, range), Arg(right, range)]
    if isinstance(actual, ty.ListType) and op in (ast.Add, ast.Mult):
        kind = "aten::add_" if op is ast.Add else "aten::mul_"
        return c.call_operator(kind, Call(range, args)), True
    if actual is not ty.TENSOR or op is ast.MatMult:
        return c.binary(op, left, right, range), False
    if op is ast.FloorDiv:
        mode = Arg(Simple(c.constant("floor")), range)
        return c.call_operator("aten::div_", Call(range, args, {"rounding_mode": mode})), True
    result = try_operator(c, candidates(f"{of_tensors}_"), Call(range, args))
    if isinstance(result, list):
        other = c.type_of(right, range).annotation
        fail(f"{symbol}=: expected a tensor or a number on the right, got {other}", range)
    return result, True


def as_plain(c: Compiler, value: Sugared, range: Any) -> Sugared:
    """The number or text that a member of an IntEnum or a (str, Enum) is; other values as they
    are."""
    enum = value.v.type if isinstance(value, Simple) else None
    if not isinstance(enum, ty.EnumType):
        return value
    cls = python_classes.find(enum.name)
    is_plain = isinstance(cls, type) and issubclass(cls, int | float | str)
    return value.attr(c, range, "value") if is_plain else value
