"""Collective operations on tensors.

All processes of a group call the same ones in the same order. `async_op` gives a Work to wait for,
and the tensors may not be touched before. `dst` and `src` are ranks in the world, `group_dst` and
`group_src` ranks in the group. A process that is no member does nothing, but for a warning.
ValueError for a rank that is none, a list that is missing and tensors of other dtypes; RuntimeError
for tensors of other sizes; DistBackendError where another process is lost.

>>> import weft.distributed as dist
>>> dist.init_process_group(world_size=1, rank=0)
>>> x = weft.ones(2)
>>> dist.all_reduce(x, async_op=True).wait(), x
(True, tensor([1., 1.]))
>>> dist.destroy_process_group()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from weft._C import Tensor
from weft.distributed.groups import ProcessGroup, by_members, member, rank_in
from weft.distributed.operations import Operation, described, listed, same_elements, tensors_of
from weft.distributed.reductions import ReduceOp, check_reduction
from weft.distributed.work import Work

reduce_op = ReduceOp  # its older name
_SUM = ReduceOp.SUM


def _reduction(
    what: str, group: Any, tensor: Tensor, op: ReduceOp
) -> tuple[ProcessGroup, Callable[[Tensor], Callable[[], None] | None]]:
    """The group, and for a tensor of sums what makes them means."""
    found = member(what, group)
    tensors_of(what, tensor)
    check_reduction(what, tensor, op)
    if op is not ReduceOp.AVG:
        return found, lambda _: None
    return found, lambda result: lambda: result.div_(found.size())


def _rooted(
    what: str, group: Any, tensor: Tensor, rank: int | None, group_rank: int | None
) -> tuple[ProcessGroup, int]:
    """The group, and the rank in it of the process that has the whole, or gets it."""
    found = member(what, group)
    tensors_of(what, tensor)
    return found, rank_in(what, found, rank, group_rank)


@by_members
def all_reduce(
    tensor: Tensor, op: ReduceOp = _SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduces a tensor over all processes, in place."""
    found, mean = _reduction("all_reduce", group, tensor, op)
    return Operation(
        *("all_reduce", [tensor], [], lambda channel, to, _: channel.all_reduce(to[0], op)),
        in_place=True,
        finish=mean(tensor),
        like=lambda: f"{described(tensor)}, {op.name}",
    ).run(found, async_op)


@by_members
def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = _SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduces several tensors over all processes, in place."""
    works = [all_reduce(tensor, op, group, True) for tensor in tensors]
    last = works[-1] if works else barrier(group, True)
    if not async_op:
        for work in works:
            work and work.wait()
    return last if async_op else None


@by_members
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = _SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces a tensor over all processes, in place, at the process `dst`."""
    found, mean = _reduction("reduce", group, tensor, op)
    root = rank_in("reduce", found, dst, group_dst)
    return Operation(
        *("reduce", [tensor], [], lambda channel, to, _: channel.reduce(to[0], op, root)),
        in_place=True,
        finish=mean(tensor) if found.rank() == root else None,
        like=lambda: f"{described(tensor)}, {op.name}, to {root}",
    ).run(found, async_op)


@by_members
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives all processes the tensor of the process `src`, in place."""
    found, root = _rooted("broadcast", group, tensor, src, group_src)
    return Operation(
        *("broadcast", [tensor], [], lambda channel, to, _: channel.broadcast(to[0], root)),
        in_place=True,
        like=lambda: f"{described(tensor)}, from {root}",
    ).run(found, async_op)


@by_members
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copies the tensor of each process into its place of tensor_list."""
    found = member("all_gather", group)
    tensors_of("all_gather", tensor)
    outputs = listed("all_gather", "outputs", tensor_list, found.size())
    for output in outputs:
        same_elements("all_gather", output, tensor)
    return _all_gather("all_gather", outputs, tensor, found, async_op)


def _all_gather(
    what: str, outputs: list[Tensor], source: Tensor, group: ProcessGroup, async_op: bool
) -> Work | None:
    whole = joined(outputs)
    together = source.new_empty(source.numel() * group.size()) if whole is None else whole

    def finish() -> None:
        if whole is None:
            for output, part in zip(outputs, together.split(source.numel() or 1)):
                output.copy_(part.view(output.shape))

    return Operation(
        *(what, [together], [source], lambda channel, to, of: channel.all_gather(to[0], of[0])),
        finish=finish,
        like=lambda: described(source),
    ).run(group, async_op)


def joined(tensors: Sequence[Tensor]) -> Tensor | None:
    """One flat tensor over all elements, where they lie one behind another in one storage."""
    first, at = tensors[0], tensors[0].data_ptr()
    storage = first.untyped_storage().data_ptr()
    for tensor in tensors:
        is_next = tensor.data_ptr() == at and tensor.is_contiguous()
        if not is_next or tensor.untyped_storage().data_ptr() != storage:
            return None
        at += tensor.nbytes
    return first.detach().as_strided((sum(tensor.numel() for tensor in tensors),), (1,))


@by_members
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copies the tensors of all processes, one behind another, into output_tensor."""
    what = "all_gather_into_tensor"
    found = member(what, group)
    tensors_of(what, output_tensor, input_tensor)
    same_elements(what, output_tensor, input_tensor, found.size())
    return Operation(
        *(what, [output_tensor], [input_tensor]),
        lambda channel, to, of: channel.all_gather(to[0], of[0]),
        like=lambda: described(input_tensor),
    ).run(found, async_op)


@by_members
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copies the tensor of each process into its place of gather_list at the process `dst`."""
    found, root = _rooted("gather", group, tensor, dst, group_dst)
    outputs: list[Tensor] = []
    if found.rank() == root:
        outputs = listed("gather", "outputs", gather_list, found.size())
        for output in outputs:
            same_elements("gather", output, tensor)
    elif gather_list:
        raise ValueError(f"gather: expected outputs at rank {root} of the group alone")
    return exchanged(
        *("gather", outputs, {root: tensor}, found, async_op),
        like=lambda: f"{described(tensor)}, to {root}",
    )


@by_members
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies into the tensor of each process its part of scatter_list of the process `src`."""
    found, root = _rooted("scatter", group, tensor, src, group_src)
    sources: list[Tensor] = []
    if found.rank() == root:
        sources = listed("scatter", "inputs", scatter_list, found.size())
        for source in sources:
            same_elements("scatter", tensor, source)
    elif scatter_list:
        raise ValueError(f"scatter: expected inputs at rank {root} of the group alone")
    return exchanged(
        *("scatter", {root: tensor}, sources, found, async_op),
        like=lambda: f"{described(tensor)}, from {root}",
    )


def exchanged(
    what: str,
    targets: dict[int, Tensor] | list[Tensor],
    sources: dict[int, Tensor] | list[Tensor],
    group: ProcessGroup,
    async_op: bool,
    like: Callable[[], str],
) -> Work | None:
    """Sends each source to the rank of its place, and receives each target from its rank."""
    ranks = [list(t) if isinstance(t, dict) else list(range(len(t))) for t in (targets, sources)]
    to_, of_ = (list(t.values()) if isinstance(t, dict) else t for t in (targets, sources))
    me = group.rank()

    def post(channel: Any, to: list[Tensor], of: list[Tensor]) -> list[Any]:
        pairs = [list(zip(*each)) for each in zip(ranks, (to, of))]
        others = [[pair for pair in each if pair[0] != me] for each in pairs]
        requests = channel.exchange(*others)
        own_target, own_source = (dict(each).get(me) for each in pairs)
        if own_target is not None and own_source is not None:
            own_target.copy_(own_source.view(own_target.shape))
        return requests

    return Operation(what, to_, of_, post, like=like).run(group, async_op)


@by_members
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = _SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces lists over all processes, and gives each process its part."""
    found = member("reduce_scatter", group)
    sources = listed("reduce_scatter", "inputs", input_list, found.size())
    same_elements("reduce_scatter", output, sources[found.rank()])
    whole = joined(sources)
    if whole is None:
        whole = sources[0].new_empty(sum(source.numel() for source in sources))
        for source, part in zip(sources, whole.split([s.numel() for s in sources])):
            part.copy_(source.detach().reshape(-1))
    counts = [source.numel() for source in sources]
    return _reduce_scatter("reduce_scatter", output, whole, op, found, async_op, counts)


@by_members
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = _SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduces a tensor over all processes, and gives each process its part."""
    found = member("reduce_scatter_tensor", group)
    tensors_of("reduce_scatter_tensor", output, input)
    same_elements("reduce_scatter_tensor", input, output, found.size())
    counts = [output.numel()] * found.size()
    return _reduce_scatter("reduce_scatter_tensor", output, input, op, found, async_op, counts)


def _reduce_scatter(
    what: str,
    output: Tensor,
    source: Tensor,
    op: ReduceOp,
    group: ProcessGroup,
    async_op: bool,
    counts: list[int],
) -> Work | None:
    _, mean = _reduction(what, group, source, op)
    return Operation(
        *(what, [output], [source]),
        lambda channel, to, of: channel.reduce_scatter(to[0], of[0], op, counts),
        finish=mean(output),
        like=lambda: f"{described(source)}, {op.name}, {counts}",
    ).run(group, async_op)


@by_members
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends each process its tensor of the list, and collects what all send. What a process sends
    has the size that the other one expects."""
    found = member("all_to_all", group)
    outputs = listed("all_to_all", "outputs", output_tensor_list, found.size())
    sources = listed("all_to_all", "inputs", input_tensor_list, found.size())
    return _all_to_all("all_to_all", outputs, sources, found, async_op)


def _all_to_all(
    what: str, outputs: list[Tensor], sources: list[Tensor], group: ProcessGroup, async_op: bool
) -> Work | None:
    same_elements(what, outputs[group.rank()], sources[group.rank()])
    return exchanged(what, outputs, sources, group, async_op, lambda: f"{sources[0].dtype}")


@by_members
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends each process its part of a tensor, and collects what all send.

    The parts are slices of the first dimension, of the sizes that are given or of equal ones.
    """
    what = "all_to_all_single"
    found = member(what, group)
    tensors_of(what, output, input)
    if not output.is_contiguous():
        raise RuntimeError(f"{what}: expected a contiguous output, got strides {output.stride()}")
    parts = []
    for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
        length = tensor.shape[0] if tensor.dim() else 0
        equal, rest = divmod(length, found.size())
        chosen = list(sizes or [equal] * found.size())
        if len(chosen) != found.size() or sum(chosen) != length or (rest and not sizes):
            raise RuntimeError(
                f"{what}: expected {found.size()} parts of {length} in all, got {chosen}"
            )
        parts.append(list(tensor.detach().split(chosen)))
    return _all_to_all(what, parts[0], parts[1], found, async_op)


@by_members
def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all processes are here."""
    found = member("barrier", group)
    operation = Operation("barrier", [], [], lambda channel, *_: channel.barrier(), like=str)
    work = operation.run(found, True)
    if work is not None and not async_op:
        work.wait(timeout)
    return work if async_op else None


@by_members
def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Waits until all processes are here; DistBackendError with the ranks that are late."""
    work = barrier(group, async_op=True)
    if work is not None:
        work.wait(timeout)
