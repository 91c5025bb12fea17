"""Tensors and objects from one process to another.

Messages of one sender to one receiver with one tag arrive in their order. The receiver's tensor has
the sender's size and dtype. ValueError for a rank that is none, and for the own one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft._C import Tensor
from weft.distributed.groups import ProcessGroup, by_members, member, rank_in
from weft.distributed.operations import Operation, tensors_of
from weft.distributed.work import Work


def _other(what: str, group: Any, rank: int | None, group_rank: int | None) -> Any:
    """The group, and the rank in it of another process."""
    found = member(what, group)
    if found.size() == 1:
        raise ValueError(f"{what}: expected another process, got a world of one")
    if rank is None and group_rank is None:
        raise ValueError(f"{what}: expected the rank of another process, got none")
    other = rank_in(what, found, rank, group_rank)
    if other == found.rank():
        raise ValueError(f"{what}: expected another process, got its own rank {other}")
    return found, other


@by_members
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor. Returns when it may be changed again."""
    _sent("send", tensor, dst, group, tag, group_dst, False)


@by_members
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Sends a tensor, which may not be changed before the Work has ended."""
    return _sent("isend", tensor, dst, group, tag, group_dst, True)


def _sent(
    what: str, tensor: Tensor, dst: Any, group: Any, tag: int, group_dst: Any, async_op: bool
) -> Any:
    found, other = _other(what, group, dst, group_dst)
    tensors_of(what, tensor)
    return Operation(
        *(what, [], [tensor], lambda channel, _, of: channel.send(of[0], other, tag)),
        peers=[found.ranks[other]],
    ).run(found, async_op)


@by_members
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor from a process, or from any without src; the sender's rank in the world."""
    work = _received("recv", tensor, src, group, tag, group_src)
    work.wait()
    return work.source


@by_members
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Receives a tensor, which may not be read before the Work has ended."""
    return _received("irecv", tensor, src, group, tag, group_src)


def _received(what: str, tensor: Tensor, src: Any, group: Any, tag: int, group_src: Any) -> Any:
    found, other = member(what, group), None
    if found.size() == 1 or src is not None or group_src is not None:
        found, other = _other(what, group, src, group_src)
    tensors_of(what, tensor)
    return Operation(
        *(what, [tensor], [], lambda channel, to, _: channel.receive(to[0], other, tag)),
        peers=found.ranks if other is None else [found.ranks[other]],
    ).run(found, True)


class P2POp:
    """An `isend` or `irecv` for batch_isend_irecv."""

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: expected isend or irecv, got {op!r}")
        self.op, self.tensor, self.peer = op, tensor, peer
        self.group, self.tag, self.group_peer = group, tag, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts several transfers; the Work of each. ValueError for an empty list."""
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: expected at least one P2POp, got none")
    works = [
        each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        for each in p2p_op_list
    ]
    return [work for work in works if work is not None]  # None where this process is no member
