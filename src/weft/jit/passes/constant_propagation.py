"""Constant propagation: operators whose inputs are all constants run now.

    %1 : int = prim::Constant[value=2]()
    %2 : int = prim::Constant[value=3]()
    %3 : int = aten::add.int(%1, %2)        =>   %3 : int = prim::Constant[value=5]()

Only pure operators that give numbers, strings, dtypes and tuples of those: a tensor or list is made
anew each time the program runs, and someone may write to it. What raises stays, to raise then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from weft.jit.ir import Node, TupleType, is_subtype, type_of_constant
from weft.jit.ir import types as ty
from weft.jit.passes.operators import operator_of, operator_of_kind
from weft.jit.passes.rewriting import Rewriter, Rule, alone

_FOLDED = (ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.STR, ty.NONE, ty.DTYPE, ty.DEVICE)
_LONGEST = 10_000  # characters of a string or item of a tuple worth keeping


@cache
def rule_of(kind: str) -> Rule | None:
    if kind in _OWN:
        return _test_type if kind == "prim::isinstance" else _fold
    operator = operator_of_kind(kind)
    if operator is not None and "never" in operator.tags:
        return _deny
    return _fold if operator is not None and operator.folds else None


def _deny(node: Node, work: Rewriter) -> bool:
    _replace(node, [False])
    return True


def _test_type(node: Node, work: Rewriter) -> bool:
    (value,) = node.inputs
    if not _is_exact(value.type):
        return _fold(node, work)
    _replace(node, [_is_any(value.type, node.attrs["types"])])
    return True


def _fold(node: Node, work: Rewriter) -> bool:
    inputs = node.inputs
    if not inputs or not inputs[0].is_constant or not all(value.is_constant for value in inputs):
        return False
    if not node.outputs or not all(_is_foldable(value.type) for value in node.outputs):
        return False
    values = _evaluate(node, [value.constant for value in node.inputs])
    if values is None or len(values) != len(node.outputs):
        return False
    if not all(_fits(value, out.type) for value, out in zip(values, node.outputs)):
        return False
    _replace(node, values)
    return True


def _replace(node: Node, values: list[Any]) -> None:
    """Puts constants of the same names in the place of what a node gives."""
    graph = node.graph
    with graph.inserting(before=node), graph.at_range(node.range):
        constants = [graph.constant(value, out.type) for value, out in zip(values, node.outputs)]
    names = [out.name for out in node.outputs]
    node.replace_outputs_with(constants)
    node.destroy()
    for constant, name in zip(constants, names):
        constant.name = name


def _is_foldable(type_: ty.Type) -> bool:
    if isinstance(type_, (ty.OptionalType, TupleType)):
        return all(map(_is_foldable, type_.children))
    return type_ in _FOLDED or type_ == ty.NUMBER


def _fits(value: Any, type_: ty.Type) -> bool:
    """Whether a value is what the type says, and not too large to keep."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return False
    try:
        return is_subtype(type_of_constant(value), type_)
    except TypeError:
        return False


def _evaluate(node: Node, inputs: list[Any]) -> list[Any] | None:
    """The outputs, or None where they are not known before the program runs."""
    own = _OWN.get(node.kind)
    if own is not None:
        return own(node, inputs)
    operator = operator_of(node)
    if operator is None or operator.python is None or operator.schema.varargs:
        return None
    if any(v.type == ty.TENSOR or ty.TENSOR in v.type.children for v in node.inputs):
        return None  # sizes of a constant may be asked for, but dtype and values may be set
    try:
        result = operator.python(*inputs)
    except Exception:  # it raises each time the program runs, then
        return None
    return list(result) if len(node.outputs) > 1 else [result]


def _unchecked_cast(node: Node, inputs: list[Any]) -> list[Any] | None:
    if node.attrs and not is_subtype(type_of_constant(inputs[0]), node.output.type):
        return None  # it raises, or is a value that nobody should read
    return inputs


def _is_any(given: ty.Type, types: Sequence[ty.Type]) -> bool:
    """Whether values of a type are of one of others, each a type or a container of anything."""
    return _CONTAINERS.get(type(given)) in types or any(is_subtype(given, each) for each in types)


_CONTAINERS = {
    ty.ListType: ty.ANY_LIST,
    ty.TupleType: ty.ANY_TUPLE,
    ty.DictType: ty.ANY_DICT,
}


def _is_exact(type_: ty.Type) -> bool:
    """Whether values of a type are of no narrower one; where calls were inlined, arguments are."""
    if isinstance(type_, (ty.ListType, ty.DictType)):
        return all(map(_is_exact, type_.children))
    return type_ in _FOLDED or type_ is ty.TENSOR


_OWN: dict[str, Callable[[Node, list[Any]], list[Any] | None]] = {
    "prim::unchecked_cast": _unchecked_cast,
    "prim::TupleConstruct": lambda node, inputs: [tuple(inputs)],
    "prim::TupleIndex": lambda node, inputs: [inputs[0][node.attrs["index"]]],
    "prim::TupleUnpack": lambda node, inputs: list(inputs[0]),
    "prim::EnumName": lambda node, inputs: [inputs[0].name],
    "prim::EnumValue": lambda node, inputs: [inputs[0].value],
    "prim::isinstance": lambda node, inputs: [
        _is_any(type_of_constant(inputs[0]), node.attrs["types"])
    ],
}

run = alone(rule_of)
