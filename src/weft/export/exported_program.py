"""ExportedProgram: a graph of operators, and what it holds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from weft._C import Tensor
from weft.export._records import TensorRecord
from weft.export._unlift import ExportedModule, module_of
from weft.export.graph_signature import ArgumentSpec, ExportGraphSignature
from weft.fx import Graph, GraphModule, Node
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter
from weft.utils._pytree import TreeSpec


@dataclass
class ModuleCallSignature:
    """The arguments and results of a module, and how they are nested."""

    inputs: list[ArgumentSpec]
    outputs: list[ArgumentSpec]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module of the program by its name; "" is the program itself."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(NamedTuple):
    """How the arguments and results of the program are nested."""

    in_spec: TreeSpec
    out_spec: TreeSpec


@dataclass
class _Parts:
    """What an ExportedProgram consists of."""

    signature: ExportGraphSignature
    state_dict: dict[str, Tensor]
    constants: dict[str, Any]
    ranges: dict[str, tuple[int | None, int | None]]
    calls: list[ModuleCallEntry]
    example_inputs: Any = None
    verifiers: list[str] = field(default_factory=lambda: ["TRAINING"])


class ExportedProgram:
    """A program without Python's control flow: a graph of operators, whose inputs are what the
    program holds and the arguments of a call. Made by `export` and `load`; `module()` runs it.

    >>> program = weft.export.export(weft.nn.Linear(2, 3), (weft.ones(4, 2),))
    >>> program.graph_signature.parameters, program.module()(weft.zeros(4, 2)).shape
    (('weight', 'bias'), torch.Size([4, 3]))
    """

    def __init__(
        self,
        root: Module | dict[str, Any],
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor],
        range_constraints: dict[str, tuple[int | None, int | None]],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        verifiers: list[Any] | None = None,
    ) -> None:
        self._graph_module = GraphModule(root, graph)
        self._parts = _Parts(
            graph_signature, state_dict, constants or {}, range_constraints, module_call_graph,
            example_inputs,
        )  # fmt: skip
        if verifiers:
            self._parts.verifiers = [str(each) for each in verifiers]

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module of flat inputs and outputs."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The nodes."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs of the graph stand for."""
        return self._parts.signature

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name."""
        return self._parts.state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Further tensors by name: constants and buffers that are not saved."""
        return self._parts.constants

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict[str, tuple[int | None, int | None]]:
        """The least and the largest value of each symbol."""
        return self._parts.ranges

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules that the program was made of."""
        return self._parts.calls

    @property
    def example_inputs(self) -> Any:
        """The arguments by position and by name that the program was exported with."""
        return self._parts.example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        self._parts.example_inputs = value

    @property
    def call_spec(self) -> CallSpec:
        """How arguments and results are nested."""
        signature = self.module_call_graph[0].signature
        assert signature is not None
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """The kind of operators: "TRAINING" are those that layers call."""
        return self._parts.verifiers[0]

    @property
    def verifiers(self) -> list[str]:
        """Names of the rules that the graph keeps."""
        return self._parts.verifiers

    def parameters(self) -> Iterator[Parameter]:
        """The parameters in the order of the inputs."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]  # type: ignore[misc]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers in the order of the inputs."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        for name in self.graph_signature.buffers:
            held = self.state_dict if name in self.state_dict else self.constants
            yield name, held[name]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """RuntimeError: call `module()` of it."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. "
            "You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> ExportedModule:
        """A module that computes the program, over its parameters and buffers. Its calls check
        dtypes and sizes of the inputs. It can be scripted, frozen and trained."""
        return module_of(self, check_guards)

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """A copy of the program. NotImplementedError for a table that is not empty: the operators
        of weft are what its programs consist of."""
        if decomp_table:
            raise NotImplementedError(
                "run_decompositions: expected no table, got one; weft runs operators as they are"
            )
        return copy.copy(self)

    def __str__(self) -> str:
        body = "\n".join(f"        {_line(node)}" for node in self.graph.nodes)
        return (
            f"ExportedProgram:\n    graph():\n{body}\n\nGraph signature: {self.graph_signature}"
            f"Range constraints: {self.range_constraints}\n"
        )


def _line(node: Node) -> str:
    record = node.meta.get("tensor_meta")
    shape = f"  # {record.text()}" if isinstance(record, TensorRecord) else ""
    return f"{node.format_node()}{shape}"


__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]
