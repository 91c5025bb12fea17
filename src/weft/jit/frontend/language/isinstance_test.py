"""isinstance and hasattr: tests that are often known while compiling."""

from __future__ import annotations

import ast
import enum
import typing
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.control_flow import Condition, name_of
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.annotations import PYTHON_CLASSES
from weft.jit.frontend.types.classes import python_class_of
from weft.jit.frontend.values import Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

_LOOSE: dict[Any, Any] = {list: ty.ListType, tuple: ty.TupleType, dict: ty.DictType}
_ANY_OF: dict[Any, ty.Type] = {
    ty.ListType: ty.ANY_LIST,
    ty.TupleType: ty.ANY_TUPLE,
    ty.DictType: ty.ANY_DICT,
}


def is_isinstance(c: Compiler, node: ast.expr) -> bool:
    """Whether it is a call of isinstance or weft.jit.isinstance."""
    if not isinstance(node, ast.Call):
        return False
    called = _python_object(c, node.func)
    return called is isinstance or getattr(called, "__weft_jit__", None) == "isinstance"


def isinstance_call(c: Compiler, node: ast.Call) -> Condition | None:
    """The condition of a call of isinstance or weft.jit.isinstance; None for other calls."""
    if not is_isinstance(c, node):
        return None
    range = c.range(node)
    if len(node.args) != 2 or node.keywords:
        fail(f"isinstance: expected a value and types, got {len(node.args)} arguments", range)
    subject = c.expr(node.args[0])
    tests = _tests(c, node.args[1])
    return _decide(c, subject, tests, name_of(node.args[0]), range)


def _python_object(c: Compiler, node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return MISSING if c.scope.find(node.id) is not None else c.resolver.find(node.id)
    if isinstance(node, ast.Attribute):
        owner = _python_object(c, node.value)
        if owner is MISSING or not hasattr(owner, "__name__"):
            return MISSING
        return getattr(owner, node.attr, MISSING)
    return MISSING


def _tests(c: Compiler, node: ast.expr) -> list[Any]:
    """The types of the second argument: IR types, classes of them (list), or Python classes."""
    if isinstance(node, ast.Tuple | ast.List):
        return [test for item in node.elts for test in _tests(c, item)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _tests(c, node.left) + _tests(c, node.right)
    if isinstance(node, ast.Constant):
        fail(f"isinstance: expected types, got {node.value!r}", c.range(node))
    obj = _python_object(c, node)
    if isinstance(obj, tuple):
        return [test for item in obj for test in _test_of(c, item, c.range(node))]
    if obj is MISSING:
        return [c.annotations.read(node)]
    return _test_of(c, obj, c.range(node))


def _test_of(c: Compiler, obj: Any, range: SourceRange) -> list[Any]:
    if typing.get_origin(obj) and not typing.get_args(obj):
        obj = typing.get_origin(obj)  # typing.Sequence
    if obj in _LOOSE:
        return [_LOOSE[obj]]
    if isinstance(obj, type) and not _is_value_class(obj):
        return [obj]
    found = c.annotations.of_object(obj, range)
    return [found] if isinstance(found, ty.Type) else [obj]


def _is_value_class(cls: type) -> bool:
    try:
        is_module = issubclass(cls, weft.nn.Module)
    except TypeError:
        is_module = False
    plain = (int, float, bool, str, complex, type(None), Tensor, enum.Enum)
    return (not is_module and (issubclass(cls, plain) or cls in (_C.device, _C.dtype))) or (
        hasattr(cls, "_fields") or getattr(cls, "__weft_script__", False)
    )


def _matches(type: ty.Type, test: Any) -> bool:
    if isinstance(test, ty.Type):
        if test is ty.INT and type is ty.BOOL:  # as in Python
            return True
        return ty.is_subtype(type, test) and type is not ty.ANY
    if test in _LOOSE.values():
        return isinstance(type, test)
    known = PYTHON_CLASSES
    cls = known.get(type) or known.get(type.__class__) or python_class_of(type)
    return cls is not None and issubclass(cls, test)


def _decide(
    c: Compiler, subject: Sugared, tests: list[Any], name: str | None, range: SourceRange
) -> Condition:
    type_ = subject.v.type if isinstance(subject, Simple) else None
    if isinstance(type_, ty.ClassType) and type_.is_module and (cls := python_class_of(type_)):
        classes = tuple(test for test in tests if isinstance(test, type))
        return Condition(None, issubclass(cls, classes))
    try:
        actual = c.type_of(subject, range)
    except FrontendError:
        return Condition(None, False)
    members = ty.members_of(actual)
    if actual is ty.ANY:
        return _dynamic_any(c, subject, tests, name, range)
    hits = [m for m in members if any(_matches(m, test) for test in tests)]
    if len(hits) == len(members):
        return Condition(None, True)
    if not hits:
        return Condition(None, False)
    rest = [m for m in members if m not in hits]
    v = subject.value(c, range)
    made = c.emit("prim::isinstance", (v,), ty.BOOL, {"types": tuple(hits)}, range)
    if name is None:
        return Condition(made)
    return Condition(made, None, {name: ty.union_of(hits)}, {name: ty.union_of(rest)})


def _dynamic_any(
    c: Compiler, subject: Sugared, tests: list[Any], name: str | None, range: SourceRange
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
    v = subject.value(c, range)
    made = c.emit("prim::isinstance", (v,), ty.BOOL, {"types": tuple(types)}, range)
    # A list of anything has no type of its own: its name stays Any.
    if name is None or not _ANY_OF.keys().isdisjoint(tests):
        return Condition(made)
    if len(tests) == 1:
        types = types[:1]
    return Condition(made, None, {name: ty.union_of(types)})
