"""Arithmetic, comparison and the operators of user classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend import written
from weft.jit.frontend.calls import (
    apply_operator,
    call_operator,
    candidates,
    emit_operator,
    operator_of,
    try_operator,
)
from weft.jit.frontend.conditions import Condition, choose, condition
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.scaffold import expression
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
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
def _binary(e: Emitter, node: ast.BinOp, hint: ty.Type | None) -> Sugared:
    if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr):
        from weft.jit.frontend.strings import percent

        found = percent(e, node)
        if found is not None:
            return found
    left_hint = hint if isinstance(hint, ty.ListType) else None
    left, right = expr(e, node.left, left_hint), expr(e, node.right, left_hint)
    return binary(e, type(node.op), left, right, e.range(node))


def binary(
    e: Emitter, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
) -> Sugared:
    """left <op> right."""
    symbol, method, of_tensors, of_others = _BINARY[op]
    if _are_tensor_and_plain(left, right):  # what comes below is for others, or for messages
        found = try_operator(e, candidates(of_tensors), Call.of(range, left, right))
        if not isinstance(found, list):
            return found
    special = _static_sequence(e, op, left, right, range)
    if special is not None:
        return special
    a, b = type_of(e, left, range), type_of(e, right, range)
    if isinstance(a, ty.EnumType) or isinstance(b, ty.EnumType):
        from weft.jit.frontend.classes import as_plain

        left, right = as_plain(e, left, range), as_plain(e, right, range)
        a, b = type_of(e, left, range), type_of(e, right, range)
    if isinstance(a, ty.ClassType) or isinstance(b, ty.ClassType):
        special = _method_of_class(e, method, left, right, range)
        if special is not None:
            return special
    args = [Arg(left, range), Arg(right, range)]
    if {a, b} in ({ty.BOOL}, {ty.BOOL, ty.INT}) and not (a is b and op in _OF_BITS):
        a, b = ty.INT, ty.INT  # as in Python
        args = [Arg(_as_int(e, arg), arg.range) for arg in args]
    if a in NUMBERS and b is ty.TENSOR:
        return _number_and_tensor(e, op, args, range)
    name = of_tensors if ty.TENSOR in (a, b) else of_others
    if op is ast.Mod and a is ty.STR:
        name = "aten::percentFormat"
    if op is ast.Pow and _may_be_int(a) and _may_be_int(b):
        base, power = (arg.value for arg in args)
        if a is b is ty.INT:
            return _power_of_ints(e, base, power, range)
        return call_written(e, written.power, range, base, power)
    result = try_operator(e, candidates(name), Call(range, args))
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


def _power_of_ints(e: Emitter, base: Sugared, power: Sugared, range: SourceRange) -> Sugared:
    """base ** power: an int, or a float where the power is below 0."""
    given = {False: "aten::pow.int_to_int", True: "aten::pow.int"}  # by whether it is below 0
    values = [base.value(e, range), power.value(e, range)]

    def power_of(is_below: bool) -> Sugared:
        return emit_operator(e, operator_of(given[is_below]), values, {}, range)

    def number_of(is_below: bool) -> Callable[[], Sugared]:
        return lambda: Simple(e.cast(power_of(is_below).value(e, range), ty.NUMBER))

    known = power.static(e)
    if isinstance(known, int):
        return power_of(known < 0)
    test = apply_operator(e, "aten::lt", range, power, Simple(e.constant(0))).value(e, range)
    return choose(e, Condition(test), number_of(True), number_of(False), range)


def _are_tensor_and_plain(left: Sugared, right: Sugared) -> bool:
    """Whether it is a tensor on the left, and on the right another or a number."""
    if not (isinstance(left, Simple) and isinstance(right, Simple)):
        return False
    other = right.v.type
    return left.v.type is ty.TENSOR and (other is ty.TENSOR or other in NUMBERS)


def _method_of_class(
    e: Emitter, method: str, left: Sugared, right: Sugared, range: SourceRange
) -> Sugared | None:
    """left.__add__(right) or right.__radd__(left), where that is an object with such a method."""
    for owner, other, name in ((left, right, f"__{method}__"), (right, left, f"__r{method}__")):
        if (
            isinstance(owner, Simple)
            and isinstance(owner.v.type, ty.ClassType)
            and owner.has_attr(e, name)
        ):
            return owner.attr(e, range, name).call(e, Call.of(range, other))
    return None


def _as_int(e: Emitter, arg: Arg) -> Sugared:
    """The number as an int: a bool as 0 or 1."""
    known = arg.value.static(e)
    if isinstance(known, bool):
        return Simple(e.constant(int(known)))
    if type_of(e, arg.value, arg.range) is ty.INT:
        return arg.value
    return call_operator(e, "aten::Int", Call(arg.range, [arg]))


def _number_and_tensor(
    e: Emitter, op: type[ast.operator], args: Sequence[Arg], range: SourceRange
) -> Sugared:
    """2 - x and the like: the same operator that eager code uses."""
    number, tensor = args
    if op in _REFLECTED:
        return call_operator(e, _REFLECTED[op], Call(range, [tensor, number]))
    if op is ast.Div:
        inverse = call_operator(e, "aten::reciprocal", Call(range, [tensor]))
        return call_operator(e, "aten::mul", Call(range, [Arg(inverse, range), number]))
    if op is ast.Pow:
        return call_operator(e, "aten::pow", Call(range, args))
    wrapped = call_operator(e, "prim::NumToTensor", Call(range, [number]))
    return call_operator(e, _BINARY[op][2], Call(range, [Arg(wrapped, range), tensor]))


def _static_sequence(
    e: Emitter, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
) -> Sugared | None:
    """Tuples are joined and repeated while compiling."""
    if not (is_tuple(left) or is_tuple(right)):
        return None
    a = left.unrolled(e, range) if is_tuple(left) else None
    b = right.unrolled(e, range) if is_tuple(right) else None
    if op is ast.Add and a is not None and b is not None:
        return TupleLiteral([*a, *b])
    if op is ast.Mult and (a is None) != (b is None):
        items, count = (a, right) if a is not None else (b, left)
        times = count.static(e)
        if items is not None and isinstance(times, int):
            if len(items) * times > 10_000:
                fail("*: expected a tuple of at most 10000 items, got more", range, "a list")
            return TupleLiteral(list(items) * times)
        if items and type_of(e, count, range) is ty.INT:
            from weft.jit.frontend.displays import make_list

            made = Simple(make_list(e, items, None, range))
            return apply_operator(e, "aten::mul", range, made, count)
    return None


def is_tuple(value: Sugared) -> bool:
    if isinstance(value, TupleLiteral):
        return True
    return isinstance(value, Simple) and isinstance(value.v.type, ty.TupleType)


# Unary ----------------------------------------------------------------------------------------


@expression(ast.UnaryOp)
def _unary(e: Emitter, node: ast.UnaryOp, hint: ty.Type | None) -> Sugared:
    range = e.range(node)
    if isinstance(node.op, ast.Not):
        return Simple(condition(e, node).materialize(e))
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        held = node.operand.value
        if isinstance(held, int | float | complex) and not isinstance(held, bool):
            if isinstance(held, int) and held > 2**63:
                fail(f"expected an int of 64 bits, got {-held}", range)
            return Simple(e.constant(-held))
    operand = expr(e, node.operand)
    names = {
        ast.USub: ("-", "aten::neg", "__neg__"),
        ast.Invert: ("~", "aten::bitwise_not", "__invert__"),
        ast.UAdd: ("+", "", "__pos__"),
    }
    symbol, kind, method = names[type(node.op)]
    if isinstance(operand, Simple) and isinstance(operand.v.type, ty.ClassType):
        return operand.attr(e, range, method).call(e, Call(range))
    actual = type_of(e, operand, range)
    if isinstance(node.op, ast.UAdd):
        if actual not in (*NUMBERS, ty.TENSOR):
            fail(f"+: expected a number or a tensor, got {actual.annotation}", range)
        if actual is ty.BOOL:  # an int, as in Python
            return apply_operator(e, "aten::Int", range, operand)
        return operand
    found = try_operator(e, candidates(kind), Call.of(range, operand))
    if isinstance(found, list):
        fail(f"{symbol}: expected a type it is defined for, got {actual.annotation}", range)
    return found


# In place -------------------------------------------------------------------------------------


def augmented(
    e: Emitter, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
) -> tuple[Sugared, bool]:
    """left <op>= right: the new value, and whether the old one was changed in place."""
    symbol, method, of_tensors, _ = _BINARY[op]
    actual = type_of(e, left, range)
    if isinstance(left, Simple) and isinstance(actual, ty.ClassType):
        if left.has_attr(e, f"__i{method}__"):
            called = left.attr(e, range, f"__i{method}__")
            return called.call(e, Call.of(range, right)), False
        return binary(e, op, left, right, range), False
    args = [Arg(left, range), Arg(right, range)]
    if isinstance(actual, ty.ListType) and op in (ast.Add, ast.Mult):
        kind = "aten::add_" if op is ast.Add else "aten::mul_"
        return call_operator(e, kind, Call(range, args)), True
    if actual is not ty.TENSOR or op is ast.MatMult:
        return binary(e, op, left, right, range), False
    if op is ast.FloorDiv:
        mode = Arg(Simple(e.constant("floor")), range)
        return call_operator(e, "aten::div_", Call(range, args, {"rounding_mode": mode})), True
    result = try_operator(e, candidates(f"{of_tensors}_"), Call(range, args))
    if isinstance(result, list):
        other = type_of(e, right, range).annotation
        fail(f"{symbol}=: expected a tensor or a number on the right, got {other}", range)
    return result, True
