"""Styles: how one module is cut over the processes of a mesh."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor._dtensor import DTensor, distribute_tensor
from weft.distributed.tensor._modules import distribute_module
from weft.distributed.tensor.placement_types import Placement, Replicate, Shard
from weft.nn.modules.linear import Linear
from weft.nn.modules.module import Module
from weft.nn.modules.sparse import Embedding

Layouts = tuple[Placement, ...]


class ParallelStyle:
    """How a module is cut; `_apply(module, mesh)` does it, and gives the module."""

    src_data_rank: int | None = 0

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        raise NotImplementedError


def placed(tensor: Any, mesh: DeviceMesh, layouts: Any, desired: Any) -> Any:
    """A tensor as a DTensor of the placements `desired`. A plain one is what this process has by
    `layouts`."""
    if not isinstance(tensor, DTensor):
        tensor = DTensor.from_local(tensor, mesh, layouts)
    return tensor.redistribute(placements=desired)


class _Layer(ParallelStyle):
    """A style of a layer with one input and one output."""

    input_layouts: Layouts
    output_layouts: Layouts
    use_local_output: bool
    cuts: ClassVar[dict[type, dict[str, Placement]]]  # others are replicated
    takes: ClassVar[dict[type, Placement]] = {}
    usual: ClassVar[Layouts]  # of the input, and of the output

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or self.usual[0],)
        self.output_layouts = (output_layouts or self.usual[1],)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kinds = [kind for kind in self.cuts if isinstance(module, kind)]
        if not kinds:
            raise NotImplementedError(
                f"{type(self).__name__}: expected one of "
                f"{[kind.__name__ for kind in self.cuts]}, got {type(module).__name__}"
            )
        kind = kinds[0]
        self._cut(module, device_mesh, self.cuts[kind])
        desired = [self._desired(kind)]
        return distribute_module(
            module,
            device_mesh,
            None,
            lambda _, inputs, mesh: (
                placed(inputs[0], mesh, self.input_layouts, desired),
                *inputs[1:],
            ),
            lambda _, output, mesh: self._given(output),
        )

    def _desired(self, kind: type) -> Placement:
        return self.takes.get(kind, Replicate())

    def _cut(self, module: Module, mesh: DeviceMesh, cuts: dict[str, Placement]) -> None:
        for name, parameter in module.named_parameters(recurse=False):
            where = [cuts.get(name, Replicate())]
            made = distribute_tensor(parameter, mesh, where, src_data_rank=self.src_data_rank)
            setattr(module, name, made)

    def _given(self, output: DTensor) -> Any:
        output = output.redistribute(placements=self.output_layouts)
        return output.to_local() if self.use_local_output else output

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Layer):
    """Each process computes some features of a Linear, or of an Embedding.

    Takes what lies as `input_layouts` (Replicate by default), and gives `output_layouts` (by
    default the last dimension is cut), for use_local_output this process's part as a plain tensor.
    NotImplementedError for other modules.
    """

    cuts: ClassVar = {
        Linear: {"weight": Shard(0), "bias": Shard(0)},
        Embedding: {"weight": Shard(1)},
    }
    usual = Replicate(), Shard(-1)


class RowwiseParallel(_Layer):
    """Each process computes with some input features of a Linear, or some words of an Embedding,
    and the results are summed.

    Takes what lies as `input_layouts` (by default cut along the last dimension), and gives
    `output_layouts` (Replicate by default), for use_local_output as a plain tensor.
    NotImplementedError for other modules.
    """

    cuts: ClassVar = {Linear: {"weight": Shard(1)}, Embedding: {"weight": Shard(0)}}
    takes: ClassVar = {Linear: Shard(-1)}
    usual = Shard(-1), Replicate()


class SequenceParallel(_Layer):
    """Each process computes a module such as LayerNorm or Dropout for some of the places along
    `sequence_dim`; parameters are replicated."""

    cuts: ClassVar = {Module: {}}

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.input_layouts = self.output_layouts = (Shard(sequence_dim),)
        self.use_local_output, self.sequence_dim = use_local_output, sequence_dim

    def _desired(self, kind: type) -> Placement:
        return Shard(self.sequence_dim)

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_dim}, "
            f"use_local_output={self.use_local_output})"
        )
