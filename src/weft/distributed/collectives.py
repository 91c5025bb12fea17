"""Collective operations of a group of one process: each is a copy, or nothing."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, NoReturn

import weft
from weft._C import Tensor
from weft.distributed.groups import ProcessGroup, member, only_rank


class ReduceOp(Enum):
    """How values of several processes become one. Those of one process stay as they are."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


reduce_op = ReduceOp  # its older name
_SUM = ReduceOp.SUM


class Work:
    """An operation that is done."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True


def _copied(
    what: str,
    targets: Sequence[Tensor],
    sources: Sequence[Tensor],
    group: ProcessGroup | None,
    async_op: bool,
) -> Work | None:
    """Copies each source to its target: what arrives in a group of one. RuntimeError for lists that
    have not one tensor for each process, and for different sizes or dtypes."""
    member(what, group)
    for name, tensors in (("outputs", targets), ("inputs", sources)):
        if len(tensors) != 1:
            raise RuntimeError(f"{what}: expected {name} for 1 process, got {len(tensors)}")
    (target,), (source,) = targets, sources
    if target.numel() != source.numel() or target.dtype != source.dtype:
        raise RuntimeError(
            f"{what}: expected an output of {source.numel()} elements of {source.dtype}, "
            f"got {target.numel()} of {target.dtype}"
        )
    if target is not source:
        with weft.no_grad():
            target.copy_(source.reshape(target.shape))
    return Work() if async_op else None


def _kept(what: str, tensor: Tensor, group: Any, async_op: bool) -> Work | None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{what}: expected a tensor, got {type(tensor).__name__}")
    return _copied(what, [tensor], [tensor], group, async_op)


def all_reduce(
    tensor: Tensor, op: ReduceOp = _SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduces a tensor over all processes, in place."""
    return _kept("all_reduce", tensor, group, async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = _SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces a tensor over all processes, in place, at the process `dst`."""
    only_rank("reduce", dst, group_dst)
    return _kept("reduce", tensor, group, async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives all processes the tensor of the process `src`, in place."""
    only_rank("broadcast", src, group_src)
    return _kept("broadcast", tensor, group, async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copies the tensor of each process into its place of tensor_list."""
    return _copied("all_gather", tensor_list, [tensor], group, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copies the tensors of all processes, one behind another, into output_tensor."""
    return _copied("all_gather_into_tensor", [output_tensor], [input_tensor], group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copies the tensor of each process into its place of gather_list at the process `dst`."""
    only_rank("gather", dst, group_dst)
    return _copied("gather", gather_list or [], [tensor], group, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies into the tensor of each process its part of scatter_list of the process `src`."""
    only_rank("scatter", src, group_src)
    return _copied("scatter", [tensor], scatter_list or [], group, async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = _SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces lists over all processes, and gives each process its part."""
    return _copied("reduce_scatter", [output], input_list, group, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = _SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduces a tensor over all processes, and gives each process its part."""
    return _copied("reduce_scatter_tensor", [output], [input], group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends each process its tensor of the list, and collects what all send."""
    return _copied("all_to_all", output_tensor_list, input_tensor_list, group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends each process its part of a tensor, and collects what all send."""
    return _copied("all_to_all_single", [output], [input], group, async_op)


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all processes are here."""
    member("barrier", group)
    return Work() if async_op else None


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Waits until all processes are here."""
    member("monitored_barrier", group)


# ---- objects ----


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Copies the object of each process into its place of object_list."""
    member("all_gather_object", group)
    _put("all_gather_object", object_list, obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Copies the object of each process into its place of the list at the process `dst`."""
    member("gather_object", group)
    only_rank("gather_object", dst, group_dst)
    _put("gather_object", object_gather_list or [], obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives all processes the objects of the process `src`, in place."""
    member("broadcast_object_list", group)
    only_rank("broadcast_object_list", src, group_src)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Sets the first entry of each process's list to its object of the process `src`."""
    member("scatter_object_list", group)
    only_rank("scatter_object_list", src, group_src)
    given = scatter_object_input_list or []
    if len(given) != 1:
        raise ValueError(f"scatter_object_list: expected 1 object, got {len(given)}")
    _put("scatter_object_list", scatter_object_output_list, given[0])


def _put(what: str, objects: list[Any], value: Any) -> None:
    """Sets the first entry to a copy, as what another process sends would be one."""
    if len(objects) < 1:
        raise ValueError(f"{what}: expected a list of at least 1 entry, got an empty one")
    objects[0] = copy.deepcopy(value)


# ---- from process to process ----


def _needs_another(what: str, group: Any) -> NoReturn:
    member(what, group)
    raise ValueError(f"{what}: expected another process, got a world of one")


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Raises ValueError: there is no other process."""
    _needs_another("send", group)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Raises ValueError: there is no other process."""
    _needs_another("recv", group)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Raises ValueError: there is no other process."""
    _needs_another("isend", group)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Raises ValueError: there is no other process."""
    _needs_another("irecv", group)
