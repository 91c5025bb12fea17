"""Nodes without blocks, each as one instruction or a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft._runtime.rules import Rules
from weft.jit import schemas
from weft.jit.codegen.registers import is_scalar_register
from weft.jit.codegen.scalars import is_scalar_type, literal, scalar_instruction
from weft.jit.codegen.tables import list_tag
from weft.jit.ir import Node, Value
from weft.jit.ir import types as ty

if TYPE_CHECKING:
    from weft.jit.codegen.lower import Lowering

Handler = Callable[["Lowering", Node], None]
_HANDLERS = Rules()


def lower(low: Lowering, node: Node) -> None:
    """Adds the code of a node."""
    same = "compares_identity" in schemas.tags_of(node.kind)
    handler = _identity if same else _HANDLERS.get(node.kind)
    if handler is not None:
        handler(low, node)
        return
    scalar = scalar_instruction(node.kind)
    if scalar is not None and scalar.takes([value.type for value in node.inputs]):
        _scalar(low, node)
    else:
        _operator(low, node)


def _scalar(low: Lowering, node: Node) -> None:
    scalar = scalar_instruction(node.kind)
    assert scalar is not None
    sources = [low.scalar_source(node.inputs[0])]
    wide = None
    if len(node.inputs) == 2:
        if node.inputs[1].is_constant:
            wide = literal(scalar.operands[1], node.inputs[1].constant)
        if wide is None:
            sources.append(low.scalar_source(node.inputs[1]))
    low.forget(low.live.last_uses[node])
    target = low.registers.define(node.output)
    if wide is not None:
        low.emit(f"{scalar.name}_imm", target, sources[0], x=wide)
    else:
        low.emit(scalar.name, target, *sources)  # type: ignore[arg-type]


def _operator(low: Lowering, node: Node) -> None:
    """A table or builtin operator. What a builtin takes besides its parameters is one tuple."""
    inputs, last_used = node.inputs, low.live.last_uses[node]
    try:
        schema = schemas.of(node.kind).schema
    except KeyError:
        schema = None  # of an archive, maybe: the program says so when it gets there
    extra = low.tables.string(node.kind)
    if "reuses" in node.attrs:
        low.site("call_reusing", node, extra)
        return
    if schema is None or not schema.varargs:
        low.site("call_operator", node, extra)
        return
    fixed = len(schema.args) - 1
    rest = inputs[fixed:]
    early = [value for value in last_used if value in rest and value not in inputs[:fixed]]
    words = low.words(rest, early)
    low.forget(early)
    pack = low.registers.take(False, node)
    low.site_words("make_tuple", words, [pack])
    late = [value for value in last_used if value not in early]
    words = low.words(inputs[:fixed], late)
    low.forget(late)
    low.registers.free(pack)
    results = [low.registers.define(value) for value in node.outputs]
    low.site_words("call_operator", [*words, low.last_use(pack)], results, extra)


def _sited(name: str) -> Handler:
    return lambda low, node: low.site(name, node)


_HANDLERS("prim::TupleUnpack")(_sited("unpack_tuple"))
_HANDLERS("prim::ListUnpack")(_sited("unpack_list"))
_HANDLERS("prim::Print")(_sited("print"))


@_HANDLERS("prim::ListConstruct", "prim::DictConstruct")
def _container(low: Lowering, node: Node) -> None:
    t = ty.non_none(node.output.type)
    name = "make_list" if isinstance(t, ty.ListType) else "make_dict"
    low.site(name, node, list_tag(t.children[-1]))


@_HANDLERS("prim::TupleConstruct")
def _tuple(low: Lowering, node: Node) -> None:
    t = node.output.type
    named = isinstance(t, ty.TupleType) and t.name is not None
    extra = low.tables.type(t) + 1 if named else 0
    low.site("make_tuple", node, extra)


def _fixed(low: Lowering, node: Node, name: str, x: int = 0, scalar: bool = False) -> None:
    """a = name(b): one object in, one value out, into a register of the instruction's class."""
    (value,) = node.inputs
    register, copied = low.object_source(value)
    dies = value in low.live.last_uses[node]
    low.forget(low.live.last_uses[node])
    if copied:
        low.registers.free(register)
    target = low.registers.define(node.output)
    made = target
    if is_scalar_register(target) != scalar:
        made = low.registers.take(scalar, node)
    low.emit(name, made, register, x=x)
    if (copied or (dies and not is_scalar_register(low.registers.of[value]))) and register != made:
        low.emit("release", register)
    if made != target:
        low.move(target, made, True)
        low.registers.free(made)


def _of_object(name: str) -> Handler:
    return lambda low, node: _fixed(low, node, name)


_HANDLERS("aten::wait")(_of_object("wait"))
_HANDLERS("prim::EnumName")(_of_object("enum_name"))
_HANDLERS("prim::EnumValue")(_of_object("enum_value"))


@_HANDLERS("aten::len.t")
def _list_length(low: Lowering, node: Node) -> None:
    _fixed(low, node, "list_length", scalar=True)


@_HANDLERS("aten::__getitem__.t")
def _list_item(low: Lowering, node: Node) -> None:
    items, index = node.inputs
    if items.is_constant or is_scalar_register(low.registers.of[items]):
        _operator(low, node)
        return
    register, at = low.registers.of[items], low.scalar_source(index)
    last_used = low.live.last_uses[node]
    low.forget(last_used)
    target = low.registers.define(node.output)
    scalar = is_scalar_register(target)
    low.emit("get_list_scalar" if scalar else "get_list_object", target, register, at)
    if items in last_used and register != target:
        low.emit("release", register)


@_HANDLERS("prim::TupleIndex")
def _tuple_index(low: Lowering, node: Node) -> None:
    _fixed(low, node, "get_item", node.attrs["index"])


@_HANDLERS("prim::GetAttr")
def _get_attribute(low: Lowering, node: Node) -> None:
    scalar = is_scalar_type(node.output.type)
    name = "get_scalar" if scalar else "get_attribute"
    _fixed(low, node, name, _slot(node.inputs[0], node.attrs["name"]), scalar)


@_HANDLERS("prim::SetAttr")
def _set_attribute(low: Lowering, node: Node) -> None:
    target, value = node.inputs
    slot = _slot(target, node.attrs["name"])
    obj = low.registers.of[target]
    register = low.source(value)
    name = "set_scalar" if is_scalar_register(register) else "set_attribute"
    low.emit(name, obj, register, x=slot)
    if value.is_constant and not is_scalar_register(register):
        low.drop(register)
    low.release(low.live.last_uses[node])


def _slot(target: Value, name: str) -> int:
    t = target.type
    if not isinstance(t, ty.ClassType) or name not in t.attributes:
        raise ValueError(f"expected an attribute of {t}, got {name!r}")
    return list(t.attributes).index(name)


@_HANDLERS("prim::CreateObject")
def _create(low: Lowering, node: Node) -> None:
    t = node.output.type
    assert isinstance(t, ty.ClassType)
    low.emit("create_object", low.registers.define(node.output), x=low.tables.class_(t))


@_HANDLERS("prim::CallFunction", "prim::fork")
def _call(low: Lowering, node: Node) -> None:
    index = low.compiler.function(node.attrs["function"])
    low.site("fork" if node.kind == "prim::fork" else "call_function", node, index)


@_HANDLERS("prim::CallMethod")
def _call_method(low: Lowering, node: Node) -> None:
    t, name = node.inputs[0].type, node.attrs["name"]
    if isinstance(t, ty.ClassType):
        index = low.compiler.function(t.methods[name])
        low.site("call_function", node, index)
    else:
        low.compiler.method(name)
        low.site("call_method", node, low.tables.string(name))


@_HANDLERS("prim::CallPython")
def _call_python(low: Lowering, node: Node) -> None:
    index = low.compiler.external(node.attrs["callable"], node.output.type)
    low.site("call_external", node, index)


@_HANDLERS("prim::isinstance")
def _is_instance(low: Lowering, node: Node) -> None:
    types = node.attrs["types"]
    t = ty.union_of(types if isinstance(types, (list, tuple)) else [types])
    _fixed(low, node, "is_instance", low.tables.type(t), True)


@_HANDLERS("prim::unchecked_cast")
def _cast(low: Lowering, node: Node) -> None:
    (value,) = node.inputs
    if "checked" in node.attrs:
        _check(low, node)
    if value.is_constant:
        low.load(low.registers.define(node.output), value)
        return
    source, last = low.registers.of[value], bool(low.live.last_uses[node])
    scalar = is_scalar_type(node.output.type)
    if last and is_scalar_register(source) == scalar and node.output not in low.registers.hints:
        low.registers.put(node.output, source)  # the same value in the same place
        return
    low.forget(low.live.last_uses[node])
    target = low.registers.define(node.output)
    if scalar and not is_scalar_register(source):
        low.emit("unbox_cast", target, source)
        if last:
            low.emit("release", source)
    elif target != source:
        low.move(target, source, last)


def _check(low: Lowering, node: Node) -> None:
    """Raises if a value is not of the type to which code of an archive casts it."""
    (value,), wanted = node.inputs, node.output.type
    source, copied = low.object_source(value)
    if ty.is_subtype(ty.non_none(value.type), wanted):
        skip = low.emit("jump_unless_none", b=source)
    else:
        test = low.registers.take(True, node)
        # A bool is an int that Python's isinstance lets through; it becomes one here.
        good = ty.union_of([ty.INT, ty.BOOL]) if wanted is ty.INT else wanted
        low.emit("is_instance", test, source, x=low.tables.type(good))
        skip = low.emit("jump_if", b=test)
        low.registers.free(test)
    text = f"unchecked_cast: expected {wanted.annotation}, got another {value.type.annotation}"
    message = low.registers.take(False, node)
    low.emit("load_constant", message, x=low.tables.constant(text, ty.STR))
    low.emit("raise", b=message, x=low.tables.string("RuntimeError"))
    low.registers.free(message)
    skip.target = low.here()
    if copied:
        low.drop(source)


@_HANDLERS("prim::Uninitialized")
def _uninitialized(low: Lowering, node: Node) -> None:
    low.registers.define(node.output)


@_HANDLERS("prim::RaiseException")
def _raise(low: Lowering, node: Node) -> None:
    register, _ = low.object_source(node.inputs[0])
    name = low.tables.string(node.attrs.get("exception", "RuntimeError"))
    low.emit("raise", b=register, x=name)
    low.forget(low.live.last_uses[node])
    if node.inputs[0].is_constant:
        low.registers.free(register)


@_HANDLERS("prim::EnterGradMode")
def _enter_grad_mode(low: Lowering, node: Node) -> None:
    low.emit("enter_grad_mode", x=int(node.attrs["mode"]))


@_HANDLERS("prim::EnterAutocast")
def _enter_autocast(low: Lowering, node: Node) -> None:
    register, copied = low.object_source(node.inputs[0])
    low.emit("enter_autocast", b=register)
    if copied:
        low.drop(register)
    elif low.live.last_uses[node]:
        low.emit("release", register)
    low.forget(low.live.last_uses[node])


@_HANDLERS("prim::ExitGradMode", "prim::ExitAutocast")
def _exit_mode(low: Lowering, node: Node) -> None:
    low.emit("exit_mode")


@_HANDLERS("prim::EnterContext")
def _enter_context(low: Lowering, node: Node) -> None:
    low.site("enter_context", node, low.compiler.function(node.attrs["function"]))


@_HANDLERS("prim::ExitContext")
def _exit_context(low: Lowering, node: Node) -> None:
    low.emit("exit_context")


def _identity(low: Lowering, node: Node) -> None:
    """With None on one side a question of its own, else the operator."""
    left, right = node.inputs
    if left.type == ty.NONE:
        left, right = right, left
    name = "is_not_none" if "negation" in schemas.tags_of(node.kind) else "is_none"
    if right.type != ty.NONE or left.is_constant or is_scalar_register(low.registers.of[left]):
        _operator(low, node)
        return
    register = low.registers.of[left]
    low.forget(low.live.last_uses[node])
    low.emit(name, low.registers.define(node.output), register)
    if left in low.live.last_uses[node]:
        low.emit("release", register)
