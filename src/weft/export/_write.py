"""Writing exported programs, as PyTorch reads them."""

from __future__ import annotations

import io
import json
import math
import operator
from collections.abc import Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.export._higher_order import OPERATORS
from weft.export._records import (
    FUNCTIONS,
    MEMORY_FORMATS,
    NUMBERS,
    Expression,
    TensorRecord,
    record_of,
    write_size,
    write_tensor,
)
from weft.export.exported_program import ExportedProgram, ModuleCallEntry
from weft.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
)
from weft.fx import Graph, GraphModule, Node
from weft.nn.parameter import Parameter
from weft.serialization._save import save as save_tensors
from weft.utils._pytree import treespec_dumps

Json = dict[str, Any]
_MODEL = "model"
_SYMBOLIC: dict[type, str] = {int: "as_sym_int", float: "as_sym_float", bool: "as_sym_bool"}
_PLAIN: tuple[tuple[type, str], ...] = (
    (bool, "as_bool"),
    (int, "as_int"),
    (float, "as_float"),
    (str, "as_string"),
)


def records_of(program: ExportedProgram) -> Iterator[tuple[str, Any]]:
    """The files of an archive by name."""
    kinds = (("weights", "weight", program.state_dict), ("constants", "tensor", program.constants))
    for folder, prefix, tensors in kinds:
        config: Json = {}
        places: dict[int, str] = {}
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            known = places.get(storage.data_ptr()) if storage.nbytes() else None
            path = known or f"{prefix}_{len(config)}"
            if known is None:
                places[storage.data_ptr()] = path
                yield f"data/{folder}/{path}", _bytes(tensor)
            config[name] = {
                "path_name": path,
                "is_param": isinstance(tensor, Parameter),
                "use_pickle": False,
                "tensor_meta": write_tensor(record_of(tensor)),
            }
        yield f"data/{folder}/{_MODEL}_{folder}_config.json", _text({"config": config})
    yield f"models/{_MODEL}.json", _text(program_record(program))
    if program.example_inputs is not None:
        file = io.BytesIO()
        save_tensors(program.example_inputs, file)
        yield f"data/sample_inputs/{_MODEL}.pt", file.getvalue()
    yield "archive_format", b"pt2"
    yield "archive_version", b"0"


def _bytes(tensor: Tensor) -> Any:
    storage = tensor.detach().untyped_storage()
    whole = _C.empty(0, dtype=_C.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return memoryview(whole.numpy()) if len(whole) else b""


def _text(record: Json) -> bytes:
    return json.dumps(record, allow_nan=False).encode()


def program_record(program: ExportedProgram) -> Json:
    """The program without its tensors."""
    signature = program.graph_signature
    ranges = {
        name: {"min_val": low, "max_val": high}
        for name, (low, high) in program.range_constraints.items()
    }
    constant = {each.arg.name for each in signature.input_specs if _is_constant(each)}
    return {
        "graph_module": {
            "graph": _Writer(program.graph, program.graph_module, constant).record(),
            "signature": {
                "input_specs": [_input_spec(each) for each in signature.input_specs],
                "output_specs": [_output_spec(each) for each in signature.output_specs],
            },
            "module_call_graph": [_call(each) for each in program.module_call_graph],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": 10},
        "range_constraints": ranges,
        "schema_version": {"major": 8, "minor": 15},
        "verifiers": program.verifiers,
        "torch_version": "2.13.0",
        "guards_code": [],
    }


def _is_constant(spec: InputSpec) -> bool:
    return isinstance(spec.arg, ConstantArgument)


def _call(entry: ModuleCallEntry) -> Json:
    told = entry.signature
    if told is None:
        return {"fqn": entry.fqn, "signature": None}
    return {
        "fqn": entry.fqn,
        "signature": {
            "inputs": [],
            "outputs": [],
            "in_spec": treespec_dumps(told.in_spec),
            "out_spec": treespec_dumps(told.out_spec),
            "forward_arg_names": told.forward_arg_names,
        },
    }


# The signature ------------------------------------------------------------------------------------


def _input_spec(spec: InputSpec) -> Json:
    name = {"name": spec.arg.name}
    if spec.kind is InputKind.PARAMETER:
        return {"parameter": {"arg": name, "parameter_name": spec.target}}
    if spec.kind is InputKind.BUFFER:
        held = {"arg": name, "buffer_name": spec.target, "persistent": spec.persistent is not False}
        return {"buffer": held}
    if spec.kind is InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {"arg": name, "tensor_constant_name": spec.target}}
    if isinstance(spec.arg, ConstantArgument):
        return {"constant_input": {**name, "value": _plain(spec.arg.value)}}
    return {"user_input": {"arg": _argument_spec(spec.arg)}}


def _output_spec(spec: OutputSpec) -> Json:
    if spec.kind is OutputKind.USER_OUTPUT:
        return {"user_output": {"arg": _argument_spec(spec.arg)}}
    kind = spec.kind.name.lower()
    record = {"arg": {"name": spec.arg.name}}
    if spec.target is not None:
        names = ("buffer", "user_input", "parameter")
        key = next(each for each in names if each in kind)
        record[f"{key}_name"] = spec.target  # type: ignore[assignment]
    return {kind: record}


def _argument_spec(arg: Any) -> Json:
    if isinstance(arg, ConstantArgument):
        return _plain(arg.value)
    if isinstance(arg, SymIntArgument):
        return {"as_sym_int": {"as_name": arg.name}}
    return {"as_tensor": {"name": arg.name}}


def _plain(value: Any) -> Json:
    if value is None:
        return {"as_none": True}
    kind = next((name for type_, name in _PLAIN if isinstance(value, type_)), None)
    if kind is None:
        raise TypeError(f"save: expected numbers, texts and None, got {type(value).__name__}")
    return {kind: _number(value)}


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


# The graph ----------------------------------------------------------------------------------------


class _Writer:
    """The record of one graph. `constant`: inputs that are no tensors."""

    def __init__(self, graph: Graph, module: GraphModule, constant: set[str]) -> None:
        self.graph, self.module, self.constant = graph, module, constant
        self.tensors: Json = {}
        self.numbers: dict[str, Json] = {kind: {} for kind in _SYMBOLIC.values()}

    def record(self) -> Json:
        """The whole graph."""
        nodes = list(self.graph.nodes)
        inputs = [self._input(node) for node in nodes if node.op == "placeholder"]
        steps = [
            self._node(node)
            for node in nodes
            if node.op == "call_function" and node.target is not operator.getitem
        ]
        results = self.graph.output_node().args[0]
        is_single = not isinstance(results, (list, tuple))
        given: Any = [results] if is_single else results
        return {
            "inputs": inputs,
            "outputs": [self.argument(each) for each in given],
            "nodes": steps,
            "tensor_values": self.tensors,
            "sym_int_values": self.numbers["as_sym_int"],
            "sym_bool_values": self.numbers["as_sym_bool"],
            "is_single_tensor_return": is_single,
            "custom_obj_values": {},
            "sym_float_values": self.numbers["as_sym_float"],
        }

    def _input(self, node: Node) -> Json:
        if node.name in self.constant:
            return {"as_none": True}
        return self._result(node)

    def _result(self, node: Node) -> Json:
        """What a node gives, which is noted."""
        record = node.meta.get("tensor_meta")
        if isinstance(record, TensorRecord):
            self.tensors[node.name] = write_tensor(record)
            return {"as_tensor": {"name": node.name}}
        kind = _SYMBOLIC[node.meta["number_type"]]
        size = node.meta["number"]
        text = size if isinstance(size, Expression) else Expression(str(size), None)
        self.numbers[kind][node.name] = write_size(text)
        return {kind: {"as_name": node.name}}

    def _node(self, node: Node) -> Json:
        return {
            "target": _target(node.target),
            "inputs": list(self._arguments(node)),
            "outputs": self._outputs(node),
            "metadata": {},
            "is_hop_single_tensor_return": None,
            "name": node.name,
        }

    def _arguments(self, node: Node) -> Iterator[Json]:
        schema = getattr(node.target, "_schema", None)
        names = node.meta.get("argument_names")  # of the file that it was read from
        if names is None:
            names = [each.name for each in schema.arguments] if schema is not None else []
        for i, value in enumerate(node.args):
            name = names[i] if i < len(names) else ""
            yield {"name": name, "arg": self.argument(value), "kind": 1}
        for name, value in node.kwargs.items():
            yield {"name": name, "arg": self.argument(value), "kind": 2}

    def _outputs(self, node: Node) -> list[Json]:
        """One result, several, or a list of them."""
        record = node.meta.get("tensor_meta")
        if isinstance(record, TensorRecord) or "number" in node.meta:
            return [self._result(node)]
        taken = {u.args[1]: u for u in node.users if u.target is operator.getitem}
        records = record if isinstance(record, list) else [None] * (max(taken, default=-1) + 1)
        parts = []
        for i, each in enumerate(records):
            if i in taken:
                parts.append(self._result(taken[i]))
                continue
            name = f"{node.name}_unused_{i}"
            self.tensors[name] = write_tensor(each or TensorRecord(_C.float32, [0], [1]))
            parts.append({"as_tensor": {"name": name}})
        schema = getattr(node.target, "_schema", None)
        is_list = schema is not None and "[]" in str(schema).rpartition("->")[2]
        return [{"as_tensors": [each["as_tensor"] for each in parts]}] if is_list else parts

    def argument(self, value: Any) -> Json:
        """An argument with its type."""
        if isinstance(value, Node):
            if value.op == "get_attr":
                return self._graph_of(value)
            if isinstance(value.meta.get("tensor_meta"), TensorRecord):
                return {"as_tensor": {"name": value.name}}
            return {_SYMBOLIC[value.meta["number_type"]]: {"as_name": value.name}}
        if isinstance(value, (list, tuple)):
            return self._list(list(value))
        if isinstance(value, _C.dtype):
            return {"as_scalar_type": NUMBERS[value]}
        if isinstance(value, _C.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, complex):
            return {"as_complex": {"real": value.real, "imag": value.imag}}
        if isinstance(value, _C.layout):
            return {"as_layout": 7}
        found = next((n for n, each in MEMORY_FORMATS.items() if each is value), None)
        return _plain(value) if found is None else {"as_memory_format": found}

    def _graph_of(self, node: Node) -> Json:
        inner: Any = self.module.get_submodule(str(node.target))
        return {
            "as_graph": {
                "name": node.name,
                "graph": _Writer(inner.graph, inner, set()).record(),
            }
        }

    def _list(self, values: list[Any]) -> Json:
        parts = [self.argument(each) for each in values]
        kinds = {next(iter(each)) for each in parts}
        if kinds == {"as_tensor"}:
            return {"as_tensors": [each["as_tensor"] for each in parts]}
        if kinds == {"as_tensor", "as_none"} or kinds == {"as_none"}:
            return {"as_optional_tensors": parts}
        for plain, symbolic in (
            ("as_int", "as_sym_int"), ("as_float", "as_sym_float"), ("as_bool", "as_sym_bool"),
        ):  # fmt: skip
            if kinds <= {plain}:
                return {f"{plain}s": [each[plain] for each in parts]}
            if kinds <= {plain, symbolic}:
                mixed = [each.get(symbolic, {plain: each.get(plain)}) for each in parts]
                return {f"{symbolic}s": mixed}
        if kinds == {"as_string"}:
            return {"as_strings": [each["as_string"] for each in parts]}
        if kinds == {"as_ints"}:
            return {"as_int_lists": [each["as_ints"] for each in parts]}
        raise TypeError(f"save: expected lists of values of one type, got {sorted(kinds)}")


def _target(target: Any) -> str:
    if target in OPERATORS.values():
        return f"torch.ops.higher_order.{target.__name__}"
    if hasattr(target, "_schema"):
        return f"torch.ops.{target}"
    return next(name for name, each in FUNCTIONS.items() if each is target)
