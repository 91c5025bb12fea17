"""isinstance and hasattr: tests that are often known while compiling."""

from __future__ import annotations

import ast
import enum
from typing import Any

import weft
from weft.jit.frontend.conditions import Condition, name_of
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.resolver import MISSING
from weft.jit.frontend.sugared import Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

_LOOSE: dict[Any, Any] = {
    list: ty.ListType,
    tuple: ty.TupleType,
    dict: ty.DictType,
}
_ANY_OF: dict[Any, ty.Type] = {
    ty.ListType: ty.ANY_LIST,
    ty.TupleType: ty.ANY_TUPLE,
    ty.DictType: ty.ANY_DICT,
}


def is_isinstance(e: Emitter, node: ast.expr) -> bool:
    """Whether it is a call of isinstance or weft.jit.isinstance."""
    if not isinstance(node, ast.Call):
        return False
    called = _python_object(e, node.func)
    return called is isinstance or getattr(called, "__weft_jit__", None) == "isinstance"


def isinstance_call(e: Emitter, node: ast.Call) -> Condition | None:
    """The condition of a call of isinstance or weft.jit.isinstance; None for other calls."""
    from weft.jit.frontend.expressions import expr

    if not is_isinstance(e, node):
        return None
    range = e.range(node)
    if len(node.args) != 2 or node.keywords:
        fail(f"isinstance: expected a value and types, got {len(node.args)} arguments", range)
    subject = expr(e, node.args[0])
    tests = _tests(e, node.args[1])
    return _decide(e, subject, tests, name_of(node.args[0]), range)


def _python_object(e: Emitter, node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return MISSING if e.scope.find(node.id) is not None else e.resolver.find(node.id)
    if isinstance(node, ast.Attribute):
        owner = _python_object(e, node.value)
        if owner is MISSING or not hasattr(owner, "__name__"):
            return MISSING
        return getattr(owner, node.attr, MISSING)
    return MISSING


def _tests(e: Emitter, node: ast.expr) -> list[Any]:
    """The types of the second argument: IR types, classes of them (list), or Python classes."""
    if isinstance(node, ast.Tuple | ast.List):
        return [test for item in node.elts for test in _tests(e, item)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _tests(e, node.left) + _tests(e, node.right)
    obj = _python_object(e, node)
    if isinstance(obj, tuple):
        return [test for item in obj for test in _test_of(e, item, e.range(node))]
    if obj is MISSING:
        return [e.annotations.read(node)]
    return _test_of(e, obj, e.range(node))


def _test_of(e: Emitter, obj: Any, range: SourceRange) -> list[Any]:
    if obj in _LOOSE:
        return [_LOOSE[obj]]
    if isinstance(obj, type) and not _is_value_class(obj):
        return [obj]
    found = e.annotations.of_object(obj, range)
    return [found] if isinstance(found, ty.Type) else [obj]


def _is_value_class(cls: type) -> bool:
    try:
        is_module = issubclass(cls, weft.nn.Module)
    except TypeError:
        is_module = False
    plain = (int, float, bool, str, complex, type(None), weft.Tensor, enum.Enum)
    return (not is_module and (issubclass(cls, plain) or cls in (weft.device, weft.dtype))) or (
        hasattr(cls, "_fields") or getattr(cls, "__weft_script__", False)
    )


def _matches(e: Emitter, type: ty.Type, test: Any) -> bool:
    if isinstance(test, ty.Type):
        if test is ty.INT and type is ty.BOOL:  # as in Python
            return True
        return ty.is_subtype(type, test) and type is not ty.ANY
    if test in _LOOSE.values():
        return isinstance(type, test)
    if isinstance(type, ty.ClassType):
        from weft.jit.frontend.classes import python_class_of

        cls = python_class_of(type)
        return cls is not None and issubclass(cls, test)
    return False


def _decide(
    e: Emitter, subject: Sugared, tests: list[Any], name: str | None, range: SourceRange
) -> Condition:
    python_class = getattr(subject, "python_class", None)
    if python_class is not None:  # a module, or another thing that exists only while compiling
        classes = tuple(test for test in tests if isinstance(test, type))
        return Condition(None, issubclass(python_class, classes))
    try:
        actual = type_of(e, subject, range)
    except FrontendError:
        return Condition(None, False)
    members = ty.members_of(actual)
    if actual is ty.ANY:
        return _dynamic_any(e, subject, tests, name, range)
    hits = [m for m in members if any(_matches(e, m, test) for test in tests)]
    if len(hits) == len(members):
        return Condition(None, True)
    if not hits:
        return Condition(None, False)
    rest = [m for m in members if m not in hits]
    v = subject.value(e, range)
    made = e.emit("prim::isinstance", (v,), ty.BOOL, {"types": tuple(hits)}, range)
    if name is None:
        return Condition(made)
    return Condition(made, None, {name: ty.union_of(hits)}, {name: ty.union_of(rest)})


def _dynamic_any(
    e: Emitter, subject: Sugared, tests: list[Any], name: str | None, range: SourceRange
) -> Condition:
    types: list[ty.Type] = []
    for test in tests:
        test = _ANY_OF.get(test, test)
        if not isinstance(test, ty.Type):
            fail(
                "isinstance: expected types of the language for a value of type Any, got "
                f"{getattr(test, '__name__', test)}",
                range,
            )
        types.append(test)
        if test is ty.INT:
            types.append(ty.BOOL)
    v = subject.value(e, range)
    made = e.emit("prim::isinstance", (v,), ty.BOOL, {"types": tuple(types)}, range)
    # A list of anything has no type of its own: its name stays Any.
    if name is None or not _ANY_OF.keys().isdisjoint(tests):
        return Condition(made)
    if len(tests) == 1:
        types = types[:1]
    return Condition(made, None, {name: ty.union_of(types)})
