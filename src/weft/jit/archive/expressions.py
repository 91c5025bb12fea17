"""The nodes of a graph as expressions of TorchScript's dialect. One function for each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weft._runtime.rules import Rules
from weft.jit.archive import calls, known
from weft.jit.archive.collect import is_hook, method_name
from weft.jit.archive.foreign import KEYS, is_custom
from weft.jit.archive.variables import is_name
from weft.jit.ir import Function
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node
from weft.jit.ir.node_rules import RULES

if TYPE_CHECKING:
    from weft.jit.archive.printer import FunctionPrinter

Writer = Callable[["FunctionPrinter", Node, Sequence[str]], str]
_WRITERS = Rules()


def expression(printer: FunctionPrinter, node: Node) -> str:
    """The text of a node's value."""
    texts = [printer.use(value) for value in node.inputs]
    writer = _WRITERS.get(node.kind)
    return writer(printer, node, texts) if writer else _operator(printer, node, texts)


def _operator(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    printer.program.need(node)
    if node.kind in RULES:  # one of the IR that archives cannot say
        return f"{calls.callee(node.kind)}({', '.join(texts)})"
    given = [_number(printer, node, index, text) for index, text in enumerate(texts)]
    return f"{calls.callee(node.kind)}({calls.arguments(node, given)})"


def _number(printer: FunctionPrinter, node: Node, index: int, text: str) -> str:
    """An argument; PyTorch takes a value of one of several types for no number without a cast."""
    value = node.inputs[index]
    if isinstance(value.type, ty.UnionType) and calls.takes_number(node, index):
        return printer.converted(value, ty.NUMBER)
    return text


_WRITERS("prim::Print")(lambda printer, node, texts: f"print({', '.join(texts)})")


@_WRITERS("aten::pow.int_to_int")  # torch.pow of ints gives a float
def _power(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    printer.program.need(node)
    return f"({texts[0]}) ** {texts[1]}"


@_WRITERS("prim::ListConstruct")
def _list(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    type_, text = node.output.type, f"[{', '.join(texts)}]"
    assert isinstance(type_, ty.ListType)
    exact = texts and all(value.type == type_.elem for value in node.inputs)
    return text if exact else f"annotate({printer.type(type_)}, {text})"


@_WRITERS("prim::DictConstruct")
def _dict(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    type_ = node.output.type
    assert isinstance(type_, ty.DictType)
    text = f"{{{', '.join(f'{key}: {value}' for key, value in zip(texts[::2], texts[1::2]))}}}"
    if type_.key not in KEYS:
        printer.program.refuse(f"a dict whose keys are {type_.key}")
    exact = texts and all(value.type == type_.value for value in node.inputs[1::2])
    return text if exact else f"annotate({printer.type(type_)}, {text})"


@_WRITERS("prim::TupleConstruct")
def _tuple(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    type_, listed = node.output.type, ", ".join(texts)
    if isinstance(type_, ty.TupleType) and type_.name is not None:
        return f"{printer.type(type_)}({listed})"
    return f"({listed}{',' if len(texts) == 1 else ''})"


_WRITERS("prim::TupleUnpack", "prim::ListUnpack")(lambda printer, node, texts: texts[0])
_WRITERS("prim::TupleIndex")(lambda printer, node, texts: f"({texts[0]})[{node.attrs['index']}]")


@_WRITERS("prim::GetAttr")
def _attribute(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    name = node.attrs["name"]
    return f"{texts[0]}.{name}" if is_name(name) else f'getattr({texts[0]}, "{name}")'


_WRITERS("prim::EnumName")(lambda printer, node, texts: f"({texts[0]}).name")
_WRITERS("prim::EnumValue")(lambda printer, node, texts: f"({texts[0]}).value")


@_WRITERS("prim::tolist")
def _tolist(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    return f"annotate({printer.type(node.output.type)}, ({texts[0]}).tolist())"


@_WRITERS("prim::CreateObject")
def _new(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    name = printer.type(node.output.type)
    return f"{name}.__new__({name})"


@_WRITERS("prim::CallMethod")
def _method(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    owner, name = node.inputs[0].type, node.attrs["name"]
    if is_hook(owner, name):
        return f"{printer.type(owner)}.{method_name(owner, name)}({_listed(texts)})"
    return f"({texts[0]}).{method_name(owner, name)}({_listed(texts[1:])})"


@_WRITERS("prim::CallPython")
def _custom(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    if not is_custom(node):
        return _operator(printer, node, texts)  # which refuses it
    operator = node.attrs["callable"].__self__
    callee = calls.callee(f"{operator.qualname}.{operator.schema.overload_name}")
    return f"{callee}({calls.in_places(node, operator.program_schema.args, texts)})"


@_WRITERS("prim::CallFunction")
def _function(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    return call_of(printer, node.attrs["function"], node, texts)


def _listed(texts: Sequence[str]) -> str:
    """Arguments of a call of other code, each with a comma behind it."""
    return "".join(f"{text}, " for text in texts)


_WRITERS("prim::fork")(lambda printer, node, texts: f"fork({printer.closure(node, texts)})")


def call_of(printer: FunctionPrinter, function: Function, node: Node, texts: Sequence[str]) -> str:
    """The call of a function, which may be a method of the first argument."""
    owner = node.inputs[0].type if node.inputs else None
    for name, method in owner.methods.items() if isinstance(owner, ty.ClassType) else ():
        if method is function:
            return f"({texts[0]}).{method_name(owner, name)}({_listed(texts[1:])})"
    operator = known.operator_of(function)
    if operator is not None:
        return f"{calls.callee(operator)}({known.arguments(node, function, texts)})"
    return f"{printer.program.names.of(function)}({_listed(texts)})"


@_WRITERS("prim::unchecked_cast")
def _cast(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    return cast(printer, node.output.type, texts[0])


def cast(printer: FunctionPrinter, type: ty.Type, text: str) -> str:
    """A value as one of another type. For an interface its class has to be known."""
    word = "annotate" if isinstance(type, ty.InterfaceType) else "unchecked_cast"
    return f"{word}({printer.type(type)}, {text})"


@_WRITERS("prim::isinstance")
def _isinstance(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    types = node.attrs["types"]
    names = list(dict.fromkeys(map(printer.type, types)))
    for each in types:
        if each is ty.ANY_DICT:  # which PyTorch cannot ask
            printer.program.refuse(f"isinstance(..., {each.annotation})")
    listed = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"isinstance({texts[0]}, {listed})"


@_WRITERS("prim::RaiseException")
def _raise(printer: FunctionPrinter, node: Node, texts: Sequence[str]) -> str:
    name = node.attrs.get("exception", "RuntimeError")
    qualified = name if "." in name else f"builtins.{name}"
    return f'ops.prim.RaiseException({texts[0]}, "{qualified}")'
