"""The rules of the IR's own nodes (prim::...): how many inputs, which types. One function each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node, Value
from weft.jit.ir.literals import type_of_constant
from weft.jit.ir.relations import is_subtype

RULES: dict[str, Callable[[Node], None]] = {}
# Nodes that run code which is not in the graph.
CALLS = frozenset(
    ("prim::CallFunction", "prim::CallMethod", "prim::CallPython", "prim::fork", "aten::wait")
)


class Mismatch(ValueError):
    """What is wrong with a node."""


def _rule(
    *kinds: str, inputs: int | None = None, outputs: int | None = None, blocks: int = 0
) -> Callable[[Callable[[Node], None]], Callable[[Node], None]]:
    """Registers a rule, which is asked when there are as many inputs, outputs and blocks."""

    def register(function: Callable[[Node], None]) -> Callable[[Node], None]:
        def checked(node: Node) -> None:
            counted = (("inputs", inputs, node.inputs), ("outputs", outputs, node.outputs))
            for what, wanted, got in (*counted, ("blocks", blocks, node.blocks)):
                if wanted is not None and wanted != len(got):
                    raise Mismatch(f"expected {wanted} {what}, got {len(got)}")
            function(node)

        RULES.update(dict.fromkeys(kinds, checked))
        return function

    return register


def _attr(node: Node, name: str, *kinds: type) -> Any:
    value = node.attrs.get(name)
    if name not in node.attrs or (kinds and not isinstance(value, kinds)):
        raise Mismatch(f"expected an attribute {name}, got {value!r}")
    return value


def _fits(values: Iterable[Value], types: Iterable[ty.Type], what: str) -> None:
    given, wanted = list(values), list(types)
    if len(given) != len(wanted):
        raise Mismatch(f"expected {len(wanted)} {what}, got {len(given)}")
    for value, type_ in zip(given, wanted):
        if not is_subtype(value.type, type_):
            raise Mismatch(f"expected {type_} among the {what}, got {value!r}")


def _need(node: Node, value: Value, kind: type, what: str) -> Any:
    if not isinstance(value.type, kind):
        raise Mismatch(f"expected {what}, got {value!r}")
    return value.type


def _gives(node: Node, given: ty.Type, output: Value) -> None:
    if not is_subtype(given, output.type):
        raise Mismatch(f"expected an output that can hold {given}, got {output!r}")


@_rule("prim::Constant", inputs=0, outputs=1)
def _constant(node: Node) -> None:
    value, type_ = _attr(node, "value"), node.output.type
    if not _constant_fits(value, type_):
        raise Mismatch(f"expected a value of type {type_}, got {value!r}")


def _constant_fits(value: Any, type_: ty.Type) -> bool:
    if isinstance(type_, ty.ListType) and isinstance(value, list):
        return all(_constant_fits(item, type_.elem) for item in value)
    if isinstance(type_, ty.TupleType) and isinstance(value, tuple):
        same = len(value) == len(type_.elems)
        return same and all(map(_constant_fits, value, type_.elems))
    if isinstance(type_, ty.OptionalType):
        return value is None or _constant_fits(value, type_.elem)
    try:
        return is_subtype(type_of_constant(value), type_)
    except TypeError:
        return False


@_rule("prim::If", inputs=1, blocks=2)
def _if(node: Node) -> None:
    _fits(node.inputs, [ty.BOOL], "conditions")
    for index, block in enumerate(node.blocks):
        if block.params:
            raise Mismatch(f"expected block{index} without parameters, got {block.params}")
        _fits(block.returns, [v.type for v in node.outputs], f"returns of block{index}")


@_rule("prim::Loop", blocks=1)
def _loop(node: Node) -> None:
    if len(node.inputs) < 2:
        raise Mismatch(f"expected a trip count and a condition, got {len(node.inputs)} inputs")
    carried = [v.type for v in node.outputs]
    _fits(node.inputs, [ty.INT, ty.BOOL, *carried], "inputs")
    params = [v.type for v in node.blocks[0].params]
    if params != [ty.INT, *carried]:
        raise Mismatch(f"expected parameters {[ty.INT, *carried]} of block0, got {params}")
    _fits(node.blocks[0].returns, [ty.BOOL, *carried], "returns of block0")


@_rule("prim::TupleConstruct", outputs=1)
def _tuple_construct(node: Node) -> None:
    _fits(node.inputs, _need(node, node.output, ty.TupleType, "a tuple as output").elems, "inputs")


@_rule("prim::TupleUnpack", inputs=1)
def _tuple_unpack(node: Node) -> None:
    elems = _need(node, node.inputs[0], ty.TupleType, "a tuple").elems
    if len(elems) != len(node.outputs):
        raise Mismatch(f"expected {len(elems)} outputs, got {len(node.outputs)}")
    for elem, output in zip(elems, node.outputs):
        _gives(node, elem, output)


@_rule("prim::TupleIndex", inputs=1, outputs=1)
def _tuple_index(node: Node) -> None:
    elems = _need(node, node.inputs[0], ty.TupleType, "a tuple").elems
    index = _attr(node, "index", int)
    if not -len(elems) <= index < len(elems):
        raise Mismatch(f"expected an index below {len(elems)}, got {index}")
    _gives(node, elems[index], node.output)


@_rule("prim::ListConstruct", outputs=1)
def _list_construct(node: Node) -> None:
    elem = _need(node, node.output, ty.ListType, "a list as output").elem
    _fits(node.inputs, [elem] * len(node.inputs), "inputs")


@_rule("prim::ListUnpack", inputs=1)
def _list_unpack(node: Node) -> None:
    elem = _need(node, node.inputs[0], ty.ListType, "a list").elem
    for output in node.outputs:
        _gives(node, elem, output)


@_rule("prim::DictConstruct", outputs=1)
def _dict_construct(node: Node) -> None:
    made = _need(node, node.output, ty.DictType, "a dict as output")
    if len(node.inputs) % 2:
        raise Mismatch(f"expected pairs of key and value, got {len(node.inputs)} inputs")
    _fits(node.inputs, [made.key, made.value] * (len(node.inputs) // 2), "inputs")


@_rule("prim::CreateObject", inputs=0, outputs=1)
def _create_object(node: Node) -> None:
    _need(node, node.output, ty.ClassType, "an object of a class as output")


@_rule("prim::GetAttr", inputs=1, outputs=1)
def _get_attr(node: Node) -> None:
    _gives(node, _attribute(node), node.output)


@_rule("prim::SetAttr", inputs=2, outputs=0)
def _set_attr(node: Node) -> None:
    _fits(node.inputs[1:], [_attribute(node)], "values")


def _attribute(node: Node) -> ty.Type:
    name = _attr(node, "name", str)
    class_ = _need(node, node.inputs[0], ty.ClassType, "an object of a class")
    if name not in class_.attributes:
        raise Mismatch(f"expected an attribute of {class_}, got {name!r}")
    return class_.attributes[name].type


@_rule("prim::CallFunction", "prim::fork", outputs=1)
def _call_function(node: Node) -> None:
    function = _attr(node, "function")
    _fits(node.inputs, [v.type for v in function.graph.inputs], "arguments")
    given = function.return_type
    _gives(node, ty.FutureType(given) if node.kind == "prim::fork" else given, node.output)


@_rule("prim::CallMethod", outputs=1)
def _call_method(node: Node) -> None:
    name = _attr(node, "name", str)
    owner = node.inputs[0].type if node.inputs else None
    if not isinstance(owner, (ty.ClassType, ty.InterfaceType)):
        raise Mismatch(f"expected an object to call {name} of, got {owner}")
    if name not in owner.methods:
        raise Mismatch(f"expected a method of {owner}, got {name!r}")
    method = owner.methods[name]
    schema = method if isinstance(method, ty.FunctionSchema) else method.schema
    skip = 1 if isinstance(owner, ty.ClassType) else 0
    _fits(node.inputs[1:], [arg.type for arg in schema.args[skip:]], "arguments")
    _gives(node, schema.returns, node.output)


@_rule("prim::CallPython", outputs=1)
def _call_python(node: Node) -> None:
    if not callable(_attr(node, "callable")):
        raise Mismatch(f"expected a callable, got {node.attrs['callable']!r}")


@_rule("prim::RaiseException", inputs=1, outputs=0)
def _raise(node: Node) -> None:
    _fits(node.inputs, [ty.STR], "messages")


@_rule("prim::isinstance", inputs=1, outputs=1)
def _isinstance(node: Node) -> None:
    types = _attr(node, "types", list, tuple)
    if not all(isinstance(t, ty.Type) for t in types):
        raise Mismatch(f"expected types, got {types!r}")
    _gives(node, ty.BOOL, node.output)


@_rule("aten::wait", inputs=1, outputs=1)
def _wait(node: Node) -> None:
    _gives(node, _need(node, node.inputs[0], ty.FutureType, "a future").elem, node.output)


@_rule("prim::EnumName", "prim::EnumValue", inputs=1, outputs=1)
def _enum_part(node: Node) -> None:
    enum = _need(node, node.inputs[0], ty.EnumType, "a member of an enum")
    _gives(node, ty.STR if node.kind == "prim::EnumName" else enum.value_type, node.output)


@_rule("prim::EnterAutocast", inputs=1, outputs=0)
def _enter_autocast(node: Node) -> None:
    if ty.non_none(node.inputs[0].type) not in (ty.DTYPE, ty.NONE):
        raise Mismatch(f"expected a dtype or None, got {node.inputs[0].type}")


@_rule("prim::EnterContext", inputs=1, outputs=0)
def _enter_context(node: Node) -> None:
    function = _attr(node, "function")
    _fits(node.inputs, [v.type for v in function.graph.inputs], "arguments")


@_rule("weft::Fused", blocks=1)
def _fused(node: Node) -> None:
    block = node.blocks[0]
    _fits(node.inputs, [v.type for v in block.params], "inputs")
    _fits(block.returns, [v.type for v in node.outputs], "returns of block0")


# Of these nothing but the counts is known.
_rule("prim::Print", outputs=0)(lambda node: None)
_rule("prim::Uninitialized", inputs=0, outputs=1)(lambda node: None)
_rule("prim::unchecked_cast", inputs=1, outputs=1)(lambda node: None)
_rule("prim::EnterGradMode", "prim::ExitGradMode", "prim::ExitAutocast")(lambda node: None)
_rule("prim::ExitContext", inputs=0, outputs=0)(lambda node: None)
