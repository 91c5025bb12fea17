"""Collectives that return new tensors, as torch.distributed._functional_collectives has them.

Over `weft.distributed.nn.functional`: gradients go through all of them, and results are there when
a function returns. `group` is a ProcessGroup, a DeviceMesh of one dimension, a pair of a DeviceMesh
and one of its dimensions, or the list of the world's ranks; `reduceOp` is "sum", "avg" and so on.
Tags have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.groups import ProcessGroup, member
from weft.distributed.nn import functional as through
from weft.distributed.reductions import ReduceOp


def _group(what: str, group: Any) -> ProcessGroup:
    if isinstance(group, tuple) and group and isinstance(group[0], DeviceMesh):
        mesh, dim = group
        return mesh.get_group(dim)
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, list):
        world = member(what)
        if group != list(world.ranks):
            raise ValueError(
                f"{what}: expected a group, a mesh or all ranks {list(world.ranks)}, got {group}"
            )
        return world
    return member(what, group)


def _reduction(what: str, name: str) -> ReduceOp:
    found = ReduceOp.__members__.get(name.upper())
    if found is None:
        raise ValueError(f"{what}: expected the name of a ReduceOp, got {name!r}")
    return found


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: results are there when a collective returns."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of the rank `src`."""
    return through.broadcast(self, src, _group("broadcast", group))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, reduced.

    >>> import weft.distributed as dist
    >>> from weft.distributed._functional_collectives import all_reduce
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> all_reduce(weft.ones(2), "sum", dist.group.WORLD)
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    what = "all_reduce"
    return through.all_reduce(self, _reduction(what, reduceOp), _group(what, group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, one behind another along gather_dim."""
    return _C.cat(list(through.all_gather(self, _group("all_gather", group))), gather_dim)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """This process's part, along scatter_dim, of the reduced tensors of all.

    ValueError for a size that the processes do not divide.
    """
    what = "reduce_scatter"
    found = _group(what, group)
    if self.size(scatter_dim) % found.size():
        raise ValueError(
            f"{what}: expected a size that {found.size()} processes divide, got "
            f"{self.size(scatter_dim)} of {tuple(self.shape)}"
        )
    parts = [part.contiguous() for part in self.chunk(found.size(), scatter_dim)]
    reduction = _reduction(what, reduceOp)
    return through.reduce_scatter(_C.empty_like(parts[0]), parts, reduction, found)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """What all processes send to this one of their rows; equal parts without sizes."""
    rows = self.size(0) if output_split_sizes is None else sum(output_split_sizes)
    result = self.new_empty(rows, *self.shape[1:])
    return through.all_to_all_single(
        result, self, output_split_sizes, input_split_sizes, _group("all_to_all_single", group)
    )


def all_reduce_coalesced(
    self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = ""
) -> list[Tensor]:
    """all_reduce of each tensor."""
    return [all_reduce(each, reduceOp, group) for each in self]


def all_gather_into_tensor_coalesced(
    self: Sequence[Tensor], group: Any, tag: str = ""
) -> list[Tensor]:
    """all_gather_tensor of each tensor, along the first dimension."""
    return [all_gather_tensor(each, 0, group) for each in self]


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor], reduceOp: str, scatter_dim: Sequence[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """reduce_scatter_tensor of each tensor, along its dimension."""
    return [
        reduce_scatter_tensor(each, reduceOp, dim, group) for each, dim in zip(inputs, scatter_dim)
    ]


all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
