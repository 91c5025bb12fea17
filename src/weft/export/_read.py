"""Reading exported programs: records of JSON, and the bytes of tensors.

Nothing of a file is executed: nodes call operators and a list of functions, whose names are looked
up, and everything else is data.
"""

from __future__ import annotations

import io
import json
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.export._higher_order import OPERATORS
from weft.export._records import (
    FUNCTIONS,
    MEMORY_FORMATS,
    TensorRecord,
    dtype_of,
    expect,
    read_size,
    read_tensor,
    read_union,
    refuses_damage,
)
from weft.export._signatures import SYMBOLIC, name_in_code, read_call, read_signature
from weft.export.exported_program import ExportedProgram
from weft.export.graph_signature import ExportGraphSignature
from weft.fx import Graph, GraphModule, Node
from weft.library._overloads import namespace
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter
from weft.serialization._load import load as load_tensors
from weft.serialization.errors import LoadError
from weft.serialization.source import Source
from weft.serialization.zip_reader import ZipReader

_MAX_JSON = 1 << 30
_MAJOR = 8
_FORMER = "serialized_exported_program.json"

# What PyTorch tells of a node for people.
_TOLD = ("nn_module_stack", "source_fn_stack", "stack_trace", "torch_fn")


def read_program(source: Source) -> ExportedProgram:
    """The program in an archive. LoadError for what is none."""
    archive = program_archive(source)
    if archive is None:
        raise LoadError("load: expected an archive of an exported program, got another")
    with refuses_damage("load", "the records of an exported program"):
        program = _read(archive)
        program.module()  # so that one that has no module is refused now
    return program


def program_archive(source: Source) -> ZipReader | None:
    """The archive of an exported program; None for one of another kind."""
    archive = ZipReader(source)
    if "archive_format" in archive:
        return archive
    archive = ZipReader(source, in_folder=False)  # up to PyTorch 2.7
    return archive if _FORMER in archive else None


def _read(archive: ZipReader) -> ExportedProgram:
    if _FORMER in archive:
        record = _FORMER
        held = [_pickled(archive, f"serialized_{name}.pt") for name in ("state_dict", "constants")]
        state, constants = (dict(each) for each in held)
        example = None
    else:
        names = [name for name in archive.names() if name.startswith("models/")]
        if len(names) != 1:
            raise LoadError(f"load: expected one exported program in the archive, got {len(names)}")
        record = names[0]
        model = record.removeprefix("models/").removesuffix(".json")
        state = _payloads(archive, f"data/weights/{model}_weights_config.json", "data/weights")
        config = f"data/constants/{model}_constants_config.json"
        constants = _payloads(archive, config, "data/constants")
        sample = f"data/sample_inputs/{model}.pt"
        example = _pickled(archive, sample) if sample in archive else None
    return program_of(_json(archive, record), state, constants, example)


def _json(archive: ZipReader, record: str) -> Any:
    return json.loads(archive.read(record, _MAX_JSON))


def _pickled(archive: ZipReader, record: str) -> Any:
    data = archive.read(record, _MAX_JSON)
    try:
        return load_tensors(io.BytesIO(data), weights_only=True) if data else None
    except LoadError:
        if record.startswith("data/sample_inputs"):
            return None  # objects that only a program needs which exports again
        raise


def _payloads(archive: ZipReader, config: str, folder: str) -> dict[str, Any]:
    """The tensors of a folder by name; those of one file share memory."""
    storages: dict[str, Tensor] = {}
    found: dict[str, Any] = {}
    for name, entry in _json(archive, config)["config"].items():
        if entry["use_pickle"] or entry["tensor_meta"] is None:
            raise LoadError(f"load: expected tensors, got {name!r}, an object of another class")
        record, path = read_tensor(entry["tensor_meta"]), expect(entry["path_name"], str)
        if path not in storages:
            storages[path] = archive.tensor(f"{folder}/{path}")
        tensor = _over(storages[path], record)
        if entry["is_param"]:
            tensor = Parameter(tensor, requires_grad=record.requires_grad)
        found[name] = tensor
    return found


def _over(data: Tensor, record: TensorRecord) -> Tensor:
    sizes, strides, offset = (
        [expect(each, int) for each in given]
        for given in (record.sizes, record.strides, [record.offset])
    )
    count, width = math.prod(sizes), record.dtype.itemsize
    last = offset[0] + sum((n - 1) * s for n, s in zip(sizes, strides)) if count else -1
    small = min([0, *sizes, *strides, *offset])
    if small < 0 or (last + 1) * width > data.numel():
        raise LoadError(
            f"load: expected {max(last + 1, 0) * width} bytes of a tensor of sizes {sizes}, got "
            f"{data.numel()}"
        )
    whole = data[: data.numel() // width * width].view(record.dtype)  # type: ignore[call-overload]
    return whole.as_strided(sizes, strides, offset[0]) if count else whole.new_empty(sizes)


def program_of(
    told: Any, state: dict[str, Any], constants: dict[str, Any], example: Any
) -> ExportedProgram:
    """The program of a record."""
    version = told["schema_version"]["major"]
    if version != _MAJOR and not (5 <= version < _MAJOR):
        raise LoadError(f"load: expected a program of version {_MAJOR}, got {version}")
    module = told["graph_module"]
    missing = dict.fromkeys(n for n in _targets(module["graph"]) if _target(n) is None)
    if missing:
        raise NotImplementedError(
            f"load: expected operators that weft has, got {', '.join(missing)}"
        )
    root = Module()
    signature = read_signature(module["signature"])
    names = [spec.arg.name for spec in signature.input_specs]
    graph = _Reader(module["graph"], root, names).graph
    calls = [read_call(entry) for entry in module["module_call_graph"]]
    ranges = {
        name: (each.get("min_val"), each.get("max_val"))
        for name, each in told["range_constraints"].items()
    }
    _check_held(signature, graph, state, constants)
    verifiers = told.get("verifiers") or [told.get("dialect", "TRAINING")]
    return ExportedProgram(
        root, graph, signature, state, ranges, calls, example, constants, verifiers=verifiers
    )


def _check_held(
    signature: ExportGraphSignature, graph: Graph, state: dict[str, Any], constants: dict[str, Any]
) -> None:
    nodes = {node.name for node in graph.nodes}
    for spec in signature.input_specs:
        if spec.target is not None and spec.target not in state and spec.target not in constants:
            raise LoadError(f"load: expected the tensor {spec.target!r} in the archive, got none")
        if spec.arg.name not in nodes:
            raise LoadError(f"load: expected an input {spec.arg.name!r} in the graph, got none")


# The graph ----------------------------------------------------------------------------------------


class _Reader:
    """Makes the nodes of a graph. `root` gets the graphs inside; `names`: what inputs are called
    that are no tensors."""

    def __init__(self, told: Any, root: Module, names: list[str]) -> None:
        self.graph = Graph()
        self.root = root
        self.nodes: dict[str, Node] = {}
        self.tensors = {name: read_tensor(each) for name, each in told["tensor_values"].items()}
        self.numbers = {
            name: (kind, each)
            for kind in (int, bool, float)
            for name, each in told.get(f"sym_{kind.__name__}_values", {}).items()
        }
        for i, each in enumerate(told["inputs"]):
            self._input(each, names[i] if i < len(names) else "")
        for each in told["nodes"]:
            self._node(each)
        for node in list(self.nodes.values()):
            if "_unused_" in node.name and not node.users and node.op == "call_function":
                self.graph.erase_node(node)
        results = [self.argument(each) for each in told["outputs"]]
        is_single = told.get("is_single_tensor_return", False)
        self.graph.output(results[0] if is_single else tuple(results))

    def _input(self, told: Any, name: str) -> None:
        kind, value = read_union(told)
        if kind in SYMBOLIC:
            name = read_union(value)[1]
        elif kind == "as_tensor":
            name = value["name"]
        self._add(name, self.graph.create_node("placeholder", name, name=name))

    def _add(self, name: str, node: Node) -> None:
        if name in self.nodes:
            raise LoadError(f"load: expected names of nodes that differ, got {name!r} again")
        self.nodes[name_in_code(name)] = node
        node.name = name  # also one that Python has
        record = self.tensors.get(name)
        if record is not None:
            node.meta["tensor_meta"] = record
            node.meta["val"] = record.example()
        elif name in self.numbers:
            kind, size = self.numbers[name]
            node.meta["number_type"], node.meta["number"] = kind, read_size(size)

    def _node(self, told: Any) -> None:
        target = _target(told["target"])
        args, kwargs = self._arguments(target, told["inputs"])
        outputs = told["outputs"]
        is_one = len(outputs) == 1 and target not in OPERATORS.values()
        name = _name_of(*read_union(outputs[0])) if is_one else None
        if name is not None or (is_one and "as_none" in outputs[0]):
            node = self.graph.call_function(target, args, kwargs, name=name)
            if name is not None:
                self._add(name, node)
            self._describe(node, told)
            return
        node = self.graph.call_function(target, args, kwargs, name=told.get("name"))
        self._describe(node, told)
        parts = _parts(*read_union(outputs[0])) if is_one else outputs
        names = [_name_of(*read_union(each)) for each in parts]
        node.meta["tensor_meta"] = [self.tensors.get(name or "") for name in names]
        for i, name in enumerate(names):
            if name is not None:
                part = self.graph.call_function(operator.getitem, (node, i), name=name)
                self._add(name, part)

    def _describe(self, node: Node, told: Any) -> None:
        node.meta["argument_names"] = [e["name"] for e in told["inputs"] if e.get("kind") != 2]
        told_too = told["metadata"].items()
        node.meta.update({key: value for key, value in told_too if key in _TOLD})

    def _arguments(self, target: Any, told: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # Files of PyTorch 2.6 do not say: they leave out arguments that have their defaults, but
        # not those behind them.
        told_all = all(each.get("kind") is not None for each in told)
        by_name = set() if told_all else set(_named_arguments(target))
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for each in told:
            name, value = expect(each["name"], str), self.argument(each["arg"])
            if each.get("kind") == 2 or name in by_name or (kwargs and not told_all):
                kwargs[name_in_code(name)] = value
            else:
                args.append(value)
        return tuple(args), kwargs

    def node(self, told: Any) -> Node:
        """The node of {"name": ...}."""
        found = self.nodes.get(told["name"])
        if found is None:
            raise LoadError(f"load: expected the name of an earlier node, got {told['name']!r}")
        return found

    def argument(self, told: Any) -> Any:
        """An argument as nodes have it."""
        kind, value = read_union(told)
        read = _ARGUMENTS.get(kind)
        if read is None:
            raise LoadError(f"load: expected values that weft has, got one {kind}")
        return read(self, value)

    def inner(self, told: Any) -> Node:
        """A graph inside, which becomes a module."""
        name = told["name"]
        if hasattr(self.root, name_in_code(name)):
            raise LoadError(f"load: expected names of graphs that differ, got {name[:80]!r}")
        part = Module()
        graph = _Reader(told["graph"], part, []).graph
        self.root.add_module(name, GraphModule(part, graph))
        return self.graph.get_attr(name)

    def symbolic(self, told: Any) -> Any:
        """A number, or the node of one."""
        kind, value = read_union(told)
        return self.node({"name": value}) if kind == "as_name" else value


def _name_of(kind: str, value: Any) -> str | None:
    """The name of a result; None for one without."""
    if kind in ("as_tensor", "as_optional_tensor"):
        value = value.get("as_tensor", value)
        return expect(value["name"], str) if isinstance(value, dict) and "name" in value else None
    if kind in SYMBOLIC:
        inner, name = read_union(value)
        return expect(name, str) if inner == "as_name" else None
    return None


def _parts(kind: str, value: Any) -> list[Any]:
    """The results in a list."""
    if kind == "as_tensors":
        return [{"as_tensor": each} for each in value]
    if kind == "as_sym_ints":
        return [{"as_sym_int": each} for each in value]
    if kind == "as_optional_tensors":
        return value
    raise LoadError(f"load: expected tensors and numbers as results, got {kind}")


def _targets(graph: Any) -> Iterator[str]:
    """The names of all that a graph and those inside call."""
    for node in graph["nodes"]:
        yield expect(node["target"], str)
        for each in node["inputs"]:
            kind, value = read_union(each["arg"])
            if kind == "as_graph":
                yield from _targets(value["graph"])


def _target(name: str) -> Any:
    """The function of a name; None for one that weft has not, or that programs may not call."""
    return FUNCTIONS.get(name) or (_operator(name) if name.startswith("torch.ops.") else None)


def _operator(name: str) -> Any:
    """torch.ops.aten.add.Tensor; the operator itself where weft's overloads have other names."""
    parts = name.split(".")[2:]
    if parts[0] == "higher_order":
        return OPERATORS.get(parts[1])
    if not 2 <= len(parts) <= 3:
        return None
    found = getattr(namespace(parts[0]), parts[1], None)
    if found is None or isinstance(found, type):
        return None
    return getattr(found, parts[2], found) if len(parts) == 3 else found


def _named_arguments(target: Any) -> Iterator[str]:
    """Names of arguments of an operator that are given by name, or may be."""
    each = hasattr(target, "overloads") and [getattr(target, o) for o in target.overloads()]
    for overload in each or [target]:
        for argument in overload._schema.arguments if hasattr(overload, "_schema") else ():
            if argument.kwarg_only or (not each and argument.has_default_value()):
                yield argument.name


def _device(reader: _Reader, told: Any) -> Any:
    index = told.get("index")  # PyTorch 2.6 leaves out None
    return _C.device(told["type"] if index is None else f"{told['type']}:{index}")


_ARGUMENTS: dict[str, Callable[[_Reader, Any], Any]] = {
    "as_none": lambda reader, told: None,
    "as_tensor": _Reader.node,
    "as_tensors": lambda reader, told: [reader.node(each) for each in told],
    "as_int": lambda reader, told: expect(told, int),
    "as_ints": lambda reader, told: [expect(each, int) for each in told],
    "as_float": lambda reader, told: float(told),  # "Infinity" and "NaN" are texts
    "as_floats": lambda reader, told: [float(each) for each in told],
    "as_string": lambda reader, told: expect(told, str),
    "as_strings": lambda reader, told: [expect(each, str) for each in told],
    "as_bool": lambda reader, told: expect(told, bool),
    "as_bools": lambda reader, told: [expect(each, bool) for each in told],
    "as_sym_int": _Reader.symbolic,
    "as_sym_ints": lambda reader, told: [reader.symbolic(each) for each in told],
    "as_sym_float": _Reader.symbolic,
    "as_sym_floats": lambda reader, told: [reader.symbolic(each) for each in told],
    "as_sym_bool": _Reader.symbolic,
    "as_sym_bools": lambda reader, told: [reader.symbolic(each) for each in told],
    "as_scalar_type": lambda reader, told: dtype_of(told),
    "as_memory_format": lambda reader, told: MEMORY_FORMATS[told],
    "as_layout": lambda reader, told: None,  # dense, as by default
    "as_device": _device,
    "as_optional_tensor": _Reader.argument,
    "as_optional_tensors": lambda reader, told: [reader.argument(each) for each in told],
    "as_graph": _Reader.inner,
    "as_complex": lambda reader, told: complex(told["real"], told["imag"]),
    "as_nested_tensors": lambda reader, told: [[reader.node(n) for n in each] for each in told],
    "as_int_lists": lambda reader, told: [[expect(n, int) for n in each] for each in told],
}

__all__ = ["program_archive", "program_of", "read_program"]
