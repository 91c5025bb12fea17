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


class _Collective(Function):
    """An operation, and what gives the gradients of its tensors for those of its results."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], back: Callable[..., Any], *given: Tensor) -> Any:
        ctx.back = back
        return run(*given)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *ctx.back(*grads)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of the process `src`. Its gradient is the sum of all."""

    def back(grad: Tensor) -> tuple[Tensor]:
        total = reduce(grad, src, _SUM, group)
        if not _is_here(src, group):  # zeros, through which a second backward reaches the others
            total = total.masked_fill(total.new_ones((), dtype=_C.bool), 0)
        return (total,)

    return _in_copy(plain.broadcast, back, tensor, src, group)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes at the process `dst`; zeros elsewhere."""

    def run(own: Tensor) -> tuple[Tensor, ...]:
        results = [own.new_zeros(own.shape) for _ in range(member("gather", group).size())]
        plain.gather(own, results if _is_here(dst, group) else None, dst, group)
        return tuple(results)

    return _Collective.apply(run, lambda *grads: (scatter(grads, dst, group),), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The part of this process among the tensors of `src`. Others give tensors of the sizes."""

    def run(*parts: Tensor) -> Tensor:
        result = parts[member("scatter", group).rank()].clone()
        plain.scatter(result, list(parts) if _is_here(src, group) else None, src, group)
        return result

    return _Collective.apply(run, lambda grad: gather(grad, src, group), *tensors)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = _SUM, group: Any = None) -> Tensor:
    """The reduced tensor at the process `dst`; what others do with theirs does not count."""

    def back(grad: Tensor) -> tuple[Tensor]:
        return (_mean_or_sum("reduce", broadcast(grad, dst, group), op, group),)

    return _in_copy(plain.reduce, back, tensor, dst, op, group)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = _SUM, group: Any = None
) -> Tensor:
    """The part of this process of the reduced lists; `output` says its size, and holds it."""

    def run(place: Tensor, *parts: Tensor) -> Tensor:
        result = place.detach()
        plain.reduce_scatter(result, list(parts), op, group)
        return result

    def back(grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, *all_gather(_mean_or_sum("reduce_scatter", grad, op, group), group)

    return _Collective.apply(run, back, output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""

    def run(own: Tensor) -> tuple[Tensor, ...]:
        results = [own.new_empty(own.shape) for _ in range(member("all_gather", group).size())]
        plain.all_gather(results, own, group)
        return tuple(results)

    def back(*grads: Tensor) -> tuple[Tensor]:
        return (reduce_scatter(grads[0].new_empty(grads[0].shape), grads, _SUM, group),)

    return _Collective.apply(run, back, tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What all processes send to this one; output_tensor_list says the sizes."""
    return _all_to_all([each.shape for each in output_tensor_list], input_tensor_list, group)


def _all_to_all(sizes: Any, tensors: Sequence[Tensor], group: Any) -> tuple[Tensor, ...]:
    sent = [each.shape for each in tensors]

    def run(*parts: Tensor) -> tuple[Tensor, ...]:
        results = [parts[0].new_empty(size) for size in sizes]
        plain.all_to_all(results, list(parts), group)
        return tuple(results)

    return _Collective.apply(run, lambda *grads: _all_to_all(sent, grads, group), *tensors)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """What all processes send to this one of a tensor; `output` says the size, and holds it."""
    to, of, shape = output_split_sizes, input_split_sizes, input.shape

    def run(place: Tensor, source: Tensor) -> Tensor:
        result = place.detach()
        plain.all_to_all_single(result, source, to, of, group)
        return result

    def back(grad: Tensor) -> tuple[None, Tensor]:
        return None, all_to_all_single(grad.new_empty(shape), grad, of, to, group)

    return _Collective.apply(run, back, output, input)


def all_reduce(tensor: Tensor, op: ReduceOp = _SUM, group: Any = None) -> Tensor:
    """The reduced tensor in all processes."""

    def back(grad: Tensor) -> tuple[Tensor]:
        return (_mean_or_sum("all_reduce", all_reduce(grad, _SUM, group), op, group),)

    return _in_copy(plain.all_reduce, back, tensor, op, group)


def _is_here(rank: int, group: Any) -> bool:
    found = member("distributed.nn.functional", group)
    return rank_in("distributed.nn.functional", found, rank) == found.rank()


def _in_copy(
    operation: Callable[..., Any], back: Callable[..., Any], tensor: Tensor, *args: Any
) -> Tensor:
    """What an operation in place makes of a copy."""

    def run(given: Tensor) -> Tensor:
        result = given.clone()
        operation(result, *args)
        return result

    return _Collective.apply(run, back, tensor)


def _mean_or_sum(what: str, total: Tensor, op: ReduceOp, group: Any) -> Tensor:
    """The gradient of a reduction, of the gradients of its results."""
    if op is ReduceOp.AVG:
        return total / member(what, group).size()
    if op is not _SUM:
        raise RuntimeError(f"{what}: expected SUM or AVG for a gradient, got {op.name}")
    return total
