"""Reading what the inputs and outputs of exported programs are, and their names."""

from __future__ import annotations

import keyword
import re
from typing import Any

from weft.export._records import expect, read_union
from weft.export.exported_program import ModuleCallEntry, ModuleCallSignature
from weft.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from weft.serialization.errors import LoadError
from weft.utils._pytree import TreeSpec, treespec_loads


def name_in_code(given: Any) -> str:
    """A name that stands in code."""
    if not expect(given, str).isidentifier() or keyword.iskeyword(given):
        raise LoadError(f"load: expected a name, got {given[:80]!r}")
    return given


def _path(given: Any) -> str:
    """Names of attributes with dots between them, which stand in code, some as texts."""
    if not re.fullmatch(r"[\w :/+@#-]+(\.[\w :/+@#-]+)*", expect(given, str)):
        raise LoadError(f"load: expected the name of a tensor, got {given[:80]!r}")
    return given


def read_call(entry: Any) -> ModuleCallEntry:
    """A module of the program, with its arguments and results."""
    told = entry.get("signature")
    if told is None:
        return ModuleCallEntry(entry["fqn"])
    in_spec, out_spec = (treespec_loads(told[name]) for name in ("in_spec", "out_spec"))
    inputs, outputs = (list(map(_argument_spec, told[name])) for name in ("inputs", "outputs"))
    names = told.get("forward_arg_names")
    names = None if names is None else list(map(name_in_code, names))
    if entry["fqn"] == "":
        check_arguments(in_spec)
    return ModuleCallEntry(
        entry["fqn"], ModuleCallSignature(inputs, outputs, in_spec, out_spec, names)
    )


def check_arguments(spec: TreeSpec) -> None:
    """LoadError unless the structure of all arguments is that of (args, kwargs)."""
    args, kwargs = spec.children_specs
    if args.type is not tuple or kwargs.type is not dict:
        raise LoadError(f"load: expected the structure of arguments, got {spec}")
    for name in kwargs.context:
        name_in_code(name)


# The signature ------------------------------------------------------------------------------------

_INPUTS = {
    "parameter": (InputKind.PARAMETER, "parameter_name"),
    "buffer": (InputKind.BUFFER, "buffer_name"),
    "tensor_constant": (InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
}
_OUTPUTS = {
    "loss_output": (OutputKind.LOSS_OUTPUT, None),
    "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
    "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
    "gradient_to_parameter": (OutputKind.GRADIENT_TO_PARAMETER, "parameter_name"),
    "gradient_to_user_input": (OutputKind.GRADIENT_TO_USER_INPUT, "user_input_name"),
    "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
}


def read_signature(told: Any) -> ExportGraphSignature:
    """What the inputs and outputs of the graph stand for."""
    inputs = [_input_spec(each) for each in told["input_specs"]]
    return ExportGraphSignature(inputs, [_output_spec(each) for each in told["output_specs"]])


def _input_spec(told: Any) -> InputSpec:
    kind, value = read_union(told)
    if kind == "user_input":
        return InputSpec(InputKind.USER_INPUT, _argument_spec(value["arg"]), None)
    if kind == "constant_input":
        constant = ConstantArgument(value["name"], read_union(value["value"])[1])
        return InputSpec(InputKind.USER_INPUT, constant, None)
    if kind not in _INPUTS:
        raise LoadError(f"load: expected tensors as what a program holds, got a {kind}")
    role, key = _INPUTS[kind]
    arg = TensorArgument(expect(value["arg"]["name"], str))
    return InputSpec(role, arg, _path(value[key]), value.get("persistent"))


def _output_spec(told: Any) -> OutputSpec:
    kind, value = read_union(told)
    if kind == "user_output":
        return OutputSpec(OutputKind.USER_OUTPUT, _argument_spec(value["arg"]), None)
    if kind not in _OUTPUTS:
        raise LoadError(f"load: expected outputs that are values, got a {kind}")
    role, key = _OUTPUTS[kind]
    arg = TensorArgument(expect(value["arg"]["name"], str))
    return OutputSpec(role, arg, None if key is None else _path(value[key]))


SYMBOLIC = {
    "as_sym_int": SymIntArgument,
    "as_sym_float": SymFloatArgument,
    "as_sym_bool": SymBoolArgument,
}


def _argument_spec(told: Any) -> Any:
    kind, value = read_union(told)
    if kind == "as_tensor":
        return TensorArgument(expect(value["name"], str))
    if kind in SYMBOLIC:
        inner, held = read_union(value)
        return SYMBOLIC[kind](held) if inner == "as_name" else ConstantArgument("", held)
    if kind in ("as_none", "as_int", "as_float", "as_bool", "as_string"):
        return ConstantArgument("", None if kind == "as_none" else value)
    raise LoadError(f"load: expected tensors and numbers as arguments, got {kind}")
