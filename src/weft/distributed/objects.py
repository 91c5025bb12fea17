"""Collective operations on Python objects, which travel pickled: unpickling runs what a process of
the same program says, so processes trust each other. In a group of one they are copied.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.distributed.collectives import all_gather_into_tensor, broadcast, exchanged
from weft.distributed.groups import ProcessGroup, by_members, member, rank_in
from weft.distributed.point_to_point import recv, send


def _pickled(value: Any) -> Tensor:
    return _C.frombuffer(bytearray(pickle.dumps(value)), dtype=_C.uint8)


def _unpickled(data: Tensor) -> Any:
    return pickle.loads(data.numpy())


def _number(value: int) -> Tensor:
    return _C.frombuffer(bytearray(8), dtype=_C.int64).fill_(value)


def _buffers(sizes: Sequence[int]) -> list[Tensor]:
    # One byte more than for an empty one: a buffer has at least one.
    return [_C.frombuffer(bytearray(size + 1), dtype=_C.uint8)[:size] for size in sizes]


def _sizes(data: Tensor, group: ProcessGroup) -> list[int]:
    sizes = _number(0).new_empty(group.size())
    all_gather_into_tensor(sizes, _number(data.numel()), group)
    return sizes.tolist()


@by_members
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Copies the object of each process into its place of object_list."""
    found = member("all_gather_object", group)
    _check_length("all_gather_object", object_list, found.size())
    if found.size() == 1:
        object_list[0] = copy.deepcopy(obj)
        return
    data = _pickled(obj)
    sizes = _sizes(data, found)
    own = data.new_zeros(max(sizes))
    own[: data.numel()] = data
    rows = data.new_empty(found.size(), max(sizes))
    all_gather_into_tensor(rows, own, found)
    for rank, (row, size) in enumerate(zip(rows, sizes)):
        object_list[rank] = _unpickled(row[:size])


@by_members
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Copies the object of each process into its place of the list at the process `dst`."""
    found = member("gather_object", group)
    root = rank_in("gather_object", found, dst, group_dst)
    gathered = object_gather_list or []
    if found.rank() == root:
        _check_length("gather_object", gathered, found.size())
    if found.size() == 1:
        gathered[0] = copy.deepcopy(obj)
        return
    data = _pickled(obj)
    sizes = _sizes(data, found)
    rows = _buffers(sizes if found.rank() == root else [])
    exchanged("gather_object", rows, {root: data}, found, False, lambda: f"to {root}")
    gathered[: len(rows)] = map(_unpickled, rows)


@by_members
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives all processes the objects of the process `src`, in place."""
    found = member("broadcast_object_list", group)
    root = rank_in("broadcast_object_list", found, src, group_src)
    if found.size() == 1:
        return
    data = _pickled(object_list if found.rank() == root else None)
    size = _number(data.numel())
    broadcast(size, group=found, group_src=root)
    if found.rank() != root:
        (data,) = _buffers([int(size)])
    broadcast(data, group=found, group_src=root)
    if found.rank() != root:
        object_list[:] = _unpickled(data)


@by_members
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Sets the first entry of each process's list to its object of the process `src`."""
    what = "scatter_object_list"
    found = member(what, group)
    root = rank_in(what, found, src, group_src)
    given = scatter_object_input_list or []
    _check_length(what, scatter_object_output_list, 1)
    if found.rank() == root and len(given) != found.size():
        plural = "object" if found.size() == 1 else "objects"
        raise ValueError(f"{what}: expected {found.size()} {plural}, got {len(given)}")
    if found.size() == 1:
        scatter_object_output_list[0] = copy.deepcopy(given[0])
        return
    parts = [_pickled(each) for each in given] if found.rank() == root else []
    size = _number(0)
    lengths = [_number(part.numel()) for part in parts]
    exchanged(what, {root: size}, lengths, found, False, lambda: f"from {root}")
    (data,) = _buffers([int(size)])
    exchanged(what, {root: data}, parts, found, False, lambda: f"from {root}")
    scatter_object_output_list[0] = _unpickled(data)


@by_members
def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to another process."""
    data = _pickled(object_list)
    send(_number(data.numel()), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


@by_members
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives objects, in place; the sender's rank in the world."""
    size = _number(0)
    rank = recv(size, src, group, group_src=group_src)
    (data,) = _buffers([int(size)])
    recv(data, rank, group)
    object_list[:] = _unpickled(data)
    return rank


def _check_length(what: str, objects: list[Any], count: int) -> None:
    if len(objects) < count:
        plural = "entry" if count == 1 else "entries"
        got = f"one of {len(objects)}" if objects else "an empty one"
        raise ValueError(f"{what}: expected a list of at least {count} {plural}, got {got}")
