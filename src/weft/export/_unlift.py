"""The module of an exported program: what it holds becomes its parameters and buffers again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft.export._higher_order import STATEMENTS
from weft.export._records import Expression, TensorRecord
from weft.export.graph_signature import ConstantArgument, InputKind, OutputKind
from weft.fx import Graph, GraphModule, Node
from weft.fx._codegen import CodeGen
from weft.library._overloads import namespace
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter
from weft.utils._pytree import LeafSpec, TreeSpec, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from weft.export.exported_program import ExportedProgram

_HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_WRITES = {
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
}


class _Signature(CodeGen):
    """The parameters of a program's forward, and where in them the inputs are."""

    def __init__(self, in_spec: TreeSpec, names: list[str], constants: dict[str, Any]) -> None:
        super().__init__()
        self.in_spec = in_spec
        self.names = names
        self.constants = constants  # inputs that are no tensors
        self.kwargs = list(in_spec.children_specs[1].context or ())

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The definition, and a line that takes nested arguments apart."""
        names, free = [*self.names, *self.kwargs], free_vars.copy()
        parameters, lines = [], []
        for name, spec in zip(names, self._parts()):
            inside = [free.pop(0) for _ in range(spec.num_leaves)]
            if isinstance(spec, LeafSpec):
                known = type(self.constants.get(inside[0])).__name__
                parameters.append(inside[0] + (f": {known}" if known != "NoneType" else ""))
                continue
            if not _is_plain(spec):
                parameters.append(name)
                lines.append(f"{', '.join(inside)}, = torch.utils._pytree.tree_leaves({name})")
                continue
            parameters.append(f"{name}: {_type(spec)}")
            lines += [f"{each} = {path}" for each, path in zip(inside, _paths(name, spec))]
        first = [*parameters[: len(self.names)]]
        rest = ["*", *parameters[len(self.names) :]] if self.kwargs else []
        head = super().gen_fn_def(first + rest, maybe_return_annotation)
        return "\n    ".join([head, *lines])

    def write_call(self, node: Node, text_of: Callable[[Any], str]) -> str | None:
        """Calls of graphs as statements of Python, which can be compiled, and numbers of tensors
        with their types."""
        kind = node.meta.get("number_type")
        if kind in (int, float) and getattr(node.target, "_opname", "") == "item":
            return f"{node!r} = {kind.__name__}({text_of(node.args[0])}.item())"
        write = STATEMENTS.get(node.target)
        return None if write is None else write(repr(node), node.args, text_of)

    def _parts(self) -> list[TreeSpec]:
        args, kwargs = self.in_spec.children_specs
        return [*args.children_specs, *kwargs.children_specs]

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments by position."""
        return tree_flatten((args, {}))[0]


def _is_plain(spec: TreeSpec) -> bool:
    """Whether an argument is made of containers of Python alone."""
    plain = spec.type in (None, tuple, list, dict) or hasattr(spec.type, "_fields")
    return plain and all(map(_is_plain, spec.children_specs))


def _type(spec: TreeSpec) -> str:
    """The type of a nested argument, for programs that are compiled."""
    parts = list(map(_type, spec.children_specs))
    if isinstance(spec, LeafSpec) or not parts:
        return "torch.Tensor"
    if spec.type is dict:
        return f"dict[str, {parts[0]}]"
    return f"list[{parts[0]}]" if spec.type is list else f"tuple[{', '.join(parts)}]"


def _paths(name: str, spec: TreeSpec) -> Iterator[str]:
    """Expressions for the leaves of a nested argument."""
    if isinstance(spec, LeafSpec):
        yield name
        return
    keys = spec.context if isinstance(spec.context, list) else range(len(spec.children_specs))
    for key, child in zip(keys, spec.children_specs):
        yield from _paths(f"{name}[{key!r}]", child)


class ExportedModule(GraphModule):
    """An exported program as a module. A call checks its inputs against those of the export."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """RuntimeError for inputs of other structure, dtypes or sizes than the program is for."""
        check = self.__dict__.get("_check")
        if check is not None:
            check(args, kwargs)
        return super().__call__(*args, **kwargs)

    def train(self, mode: bool = True) -> Any:
        """NotImplementedError: the program is that of one mode."""
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> Any:
        """NotImplementedError: the program is that of one mode."""
        raise NotImplementedError("Calling eval() is not supported yet.")


def module_of(program: ExportedProgram, check: bool) -> ExportedModule:
    """A module that computes what the program does, over the program's parameters and buffers."""
    graph = Graph()
    values = _copied(program, graph, {})
    in_spec, out_spec = program.call_spec
    graph.output(_nested(graph, _results(program, graph, values), out_spec))
    constants = _constants(program)
    graph._codegen = _Signature(in_spec, _argument_names(program, in_spec), constants)
    held = {**program.constants, **program.state_dict}
    made = ExportedModule(_tree(program, held), graph, "GraphModule")
    made.training = False
    if check:
        made.__dict__["_check"] = checker(program)
    return made


def flat_module(program: ExportedProgram) -> GraphModule:
    """A module that takes the inputs which are no constants one by one, and gives a tuple of the
    results. What it holds records no gradients."""
    graph = Graph()
    values = _copied(program, graph, _constants(program))
    graph.output(tuple(_results(program, graph, values)))
    held = {**program.constants, **program.state_dict}
    plain = {
        name: each.detach() if isinstance(each, Tensor) else each for name, each in held.items()
    }
    return GraphModule(_tree(program, plain), graph, "GraphModule").eval()


def _constants(program: ExportedProgram) -> dict[str, Any]:
    """The inputs that are no tensors, by their names."""
    return {
        each.arg.name: each.arg.value
        for each in program.graph_signature.input_specs
        if isinstance(each.arg, ConstantArgument)
    }


def _copied(program: ExportedProgram, graph: Graph, constants: dict[str, Any]) -> dict[Node, Any]:
    """Copies the program's nodes, with what it holds as attributes and inputs that are constants as
    their values: what has become of each node."""
    values: dict[Node, Any] = {}
    nodes = {each.name: each for each in program.graph.nodes}
    for spec in program.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.arg.name in constants:
            values[node] = constants[spec.arg.name]
            continue
        if spec.kind in _HELD:
            values[node] = graph.create_node("get_attr", spec.target or "", name=node.name)
        else:
            values[node] = graph.create_node("placeholder", node.name, name=node.name)
        values[node].meta = node.meta.copy()
    for node in program.graph.nodes:
        if node.op not in ("placeholder", "output"):
            values[node] = graph.node_copy(node, values.__getitem__)
    return values


def _tree(program: ExportedProgram, held: dict[str, Any]) -> Module:
    """A module that holds everything under its name."""
    root = Module()
    persistent = {
        each.target: each.persistent is not False for each in program.graph_signature.input_specs
    }
    parts = program.graph_module._modules
    for name, value in (*held.items(), *parts.items()):
        owner, _, last = name.rpartition(".")
        at = root
        for part in owner.split(".") if owner else ():
            if part not in at._modules:
                at.add_module(part, Module())
            at = at._modules[part]
        if isinstance(value, Module):
            at.add_module(last, value)
        elif isinstance(value, Parameter):
            at.register_parameter(last, value)
        elif isinstance(value, Tensor):
            at.register_buffer(last, value, persistent=persistent.get(name, True))
    return root


def _results(program: ExportedProgram, graph: Graph, values: dict[Node, Any]) -> list[Any]:
    """The writes to what the program holds; its results one by one."""
    copy = namespace("aten").copy_.default
    nodes = {each.name: each for each in program.graph.nodes}
    sources = {
        each.target: values[nodes[each.arg.name]]
        for each in program.graph_signature.input_specs
        if each.target
    }
    outputs = program.graph.output_node().args[0]
    results = []
    for spec, value in zip(program.graph_signature.output_specs, outputs):
        made = values[value] if isinstance(value, Node) else value
        if spec.kind in _WRITES:
            target = sources.get(spec.target or "") or values[nodes[spec.target or ""]]
            graph.call_function(copy, (target, made))
        else:
            results.append(made)
    return results


def _nested(graph: Graph, results: list[Any], spec: TreeSpec) -> Any:
    if _is_plain(spec):
        if isinstance(spec, LeafSpec):
            return results[0]
        at, parts = 0, []
        for child in spec.children_specs:
            parts.append(_nested(graph, results[at : at + child.num_leaves], child))
            at += child.num_leaves
        if spec.type is dict:
            return dict(zip(spec.context, parts))
        return spec.type(parts) if spec.type in (tuple, list) else spec.type(*parts)

    def rebuild(*leaves: Any) -> Any:
        return tree_unflatten(leaves, spec)

    return graph.call_function(rebuild, tuple(results))


def _argument_names(program: ExportedProgram, in_spec: TreeSpec) -> list[str]:
    """Names of the arguments by position."""
    count = len(in_spec.children_specs[0].children_specs)
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    known = (signature.forward_arg_names if signature else None) or []
    return [known[i] if i < len(known) else f"arg_{i}" for i in range(count)]


def checker(program: ExportedProgram) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    """What checks the arguments of a call."""
    spec = program.call_spec.in_spec
    nodes = {each.name: each for each in program.graph.nodes if each.op == "placeholder"}
    wanted = [
        (each.arg, nodes[each.arg.name].meta.get("tensor_meta"))
        for each in program.graph_signature.input_specs
        if each.kind is InputKind.USER_INPUT
    ]
    ranges = program.range_constraints

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        symbols: dict[str, int] = {}
        for value, (arg, record) in zip(leaves_of(spec, args, kwargs), wanted):
            if isinstance(record, TensorRecord):
                _check_tensor(arg.name, value, record, symbols, ranges)
            elif hasattr(arg, "value") and not _is_same(value, arg.value):
                raise RuntimeError(
                    f"Guard failed: {arg.name} == {arg.value!r}; expected the value of the export, "
                    f"got {value!r}"
                )

    return check


def leaves_of(spec: TreeSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The leaves of a call's arguments; ValueError for another structure than the export's."""
    keys = list(spec.children_specs[1].context or ())
    leaves, given = tree_flatten((args, {key: kwargs[key] for key in keys if key in kwargs}))
    if given != spec or kwargs.keys() - set(keys):
        raise ValueError(f"expected arguments of the structure {spec}, got {given}")
    return leaves


def _is_same(value: Any, constant: Any) -> bool:
    return type(value) is type(constant) and bool(value == constant)


def _check_tensor(
    name: str, value: Any, record: TensorRecord, symbols: dict[str, int], ranges: dict[str, Any]
) -> None:
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{name}: expected a tensor, got {type(value).__name__}")
    if value.dtype != record.dtype:
        raise RuntimeError(
            f"Guard failed: {name}.dtype == {record.dtype}; expected that dtype, got {value.dtype}"
        )
    if value.dim() != len(record.sizes):
        raise RuntimeError(
            f"Guard failed: len({name}.size()) == {len(record.sizes)}; expected as many "
            f"dimensions, got {value.dim()}"
        )
    for dim, (size, wanted) in enumerate(zip(value.shape, record.sizes)):
        text = wanted.text if isinstance(wanted, Expression) else ""
        if text and not text.isidentifier():
            continue  # follows from others
        expected = symbols.setdefault(text, size) if text else wanted
        if size != expected:
            raise RuntimeError(
                f"Guard failed: {name}.size()[{dim}] == {expected}; expected that size, got {size}"
            )
        low, high = ranges.get(text, (None, None)) if text else (None, None)
        if (low is not None and size < low) or (high is not None and size > high):
            raise RuntimeError(
                f"Guard failed: {low} <= {name}.size()[{dim}] <= {high}; expected a size in that "
                f"range, got {size}"
            )


__all__ = ["ExportedModule", "flat_module", "leaves_of", "module_of"]
