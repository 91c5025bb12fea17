"""Collective operations as functions of tensors, through which gradients go.

The loss is the sum of what the processes compute, so the gradient of a copy is the sum over all
that have one. All processes run backward through them, in the same order, and likewise the second
backward of a gradient that was made with create_graph. Reductions have gradients for SUM and AVG;
RuntimeError in backward for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.function import Function
from weft.distributed import collectives as plain
from weft.distributed.groups import member, rank_in
from weft.distributed.reductions import ReduceOp

_SUM = ReduceOp.SUM


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of the process `src`. Its gradient is the sum of all."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes at the process `dst`; zeros elsewhere."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The part of this process among the tensors of `src`. Others give tensors of the sizes."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = _SUM, group: Any = None) -> Tensor:
    """The reduced tensor at the process `dst`; what others do with theirs does not count."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = _SUM, group: Any = None
) -> Tensor:
    """The part of this process of the reduced lists; `output` says its size, and holds it."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    return _AllGather.apply(group, tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What all processes send to this one; output_tensor_list says the sizes."""
    return _AllToAll.apply(group, [each.shape for each in output_tensor_list], *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """What all processes send to this one of a tensor; `output` says the size, and holds it."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: ReduceOp = _SUM, group: Any = None) -> Tensor:
    """The reduced tensor in all processes."""
    return _AllReduce.apply(op, group, tensor)


def _is_here(rank: int, group: Any) -> bool:
    found = member("distributed.nn.functional", group)
    return rank_in("distributed.nn.functional", found, rank) == found.rank()


def _in_copy(operation: Callable[..., Any], tensor: Tensor, *args: Any) -> Tensor:
    """What an operation in place makes of a copy."""
    result = tensor.clone()
    operation(result, *args)
    return result


def _mean_or_sum(what: str, total: Tensor, op: ReduceOp, group: Any) -> Tensor:
    """The gradient of a reduction, of the gradients of its results."""
    if op is ReduceOp.AVG:
        return total / member(what, group).size()
    if op is not _SUM:
        raise RuntimeError(f"{what}: expected SUM or AVG for a gradient, got {op.name}")
    return total


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.given = (src, group)
        return _in_copy(plain.broadcast, tensor, src, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        src, group = ctx.given
        total = _Reduce.apply(src, _SUM, group, grad)
        if not _is_here(src, group):  # zeros, through which a second backward reaches the others
            total = total.masked_fill(total.new_ones((), dtype=_C.bool), 0)
        return None, None, total


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: ReduceOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.given = (dst, op, group)
        return _in_copy(plain.reduce, tensor, dst, op, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        dst, op, group = ctx.given
        total = _Broadcast.apply(dst, group, grad)
        return None, None, None, _mean_or_sum("reduce", total, op, group)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.given = (dst, group)
        count = member("gather", group).size()
        results = [tensor.new_zeros(tensor.shape) for _ in range(count)]
        plain.gather(tensor, results if _is_here(dst, group) else None, dst, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(*ctx.given, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.given = (src, group)
        result = tensors[member("scatter", group).rank()].clone()
        plain.scatter(result, list(tensors) if _is_here(src, group) else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_Gather.apply(*ctx.given, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.given = (op, group)
        result = output.detach()
        plain.reduce_scatter(result, list(tensors), op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        op, group = ctx.given
        grads = _AllGather.apply(group, _mean_or_sum("reduce_scatter", grad, op, group))
        return None, None, None, *grads


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        results = [
            tensor.new_empty(tensor.shape) for _ in range(member("all_gather", group).size())
        ]
        plain.all_gather(results, tensor, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        output = grads[0].new_empty(grads[0].shape)
        return None, _ReduceScatter.apply(_SUM, ctx.group, output, *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, sizes: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.given = (group, [each.shape for each in tensors])
        results = [tensors[0].new_empty(size) for size in sizes]
        plain.all_to_all(results, list(tensors), group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_AllToAll.apply(*ctx.given, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, to: Any, of: Any, source: Tensor) -> Tensor:
        ctx.given = (group, of, to, source.shape)
        result = output.detach()
        plain.all_to_all_single(result, source, to, of, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        group, to, of, shape = ctx.given
        result = _AllToAllSingle.apply(group, grad.new_empty(shape), to, of, grad)
        return None, None, None, None, result


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.given = (op, group)
        return _in_copy(plain.all_reduce, tensor, op, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        op, group = ctx.given
        total = _AllReduce.apply(_SUM, group, grad)
        return None, None, _mean_or_sum("all_reduce", total, op, group)
