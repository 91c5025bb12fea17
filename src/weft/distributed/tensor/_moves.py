"""From one placement to another: collectives, and the gradients through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft.autograd.function import Function
from weft.autograd.grad_mode import is_grad_enabled, no_grad
from weft.distributed import collectives as plain
from weft.distributed.reductions import ReduceOp
from weft.distributed.tensor._layout import Layout, Placements, of_gradient, span
from weft.distributed.tensor.placement_types import Partial, Replicate, Shard

_OPS = {"sum": "SUM", "avg": "AVG", "max": "MAX", "min": "MIN", "product": "PRODUCT"}


def _op(placement: Any) -> ReduceOp:
    return getattr(ReduceOp, _OPS[placement.reduce_op])


# One dimension of a mesh: `at`; `layout` is that of the tensor before the move ------------------


def _gathered(local: Tensor, layout: Layout, at: int, dim: int) -> Tensor:
    """All of what the processes have parts of along `dim`."""
    group, size = layout.mesh.get_group(at), layout.own(dim, at)[1]
    each = span(size, group.size(), 0)[1]
    shape = list(local.shape)
    shape[dim] = each - shape[dim]
    padded = _C.cat([local, local.new_zeros(shape)], dim) if shape[dim] else local.contiguous()
    parts = [padded.new_empty(padded.shape) for _ in range(group.size())]
    plain.all_gather(parts, padded, group)
    return _C.cat(parts, dim).narrow(dim, 0, size)


def _cut(local: Tensor, count: int, dim: int) -> list[Tensor]:
    """The parts of `count` processes; those of the last ones may be empty."""
    spans = [span(local.size(dim), count, index) for index in range(count)]
    return [local.narrow(dim, *each).contiguous() for each in spans]


def _part(local: Tensor, layout: Layout, at: int, dim: int) -> Tensor:
    mesh = layout.mesh
    return _cut(local, mesh.size(at), dim)[mesh.get_local_rank(at)]


def _reduced(local: Tensor, layout: Layout, at: int) -> Tensor:
    result = local.contiguous().clone()
    plain.all_reduce(result, _op(layout.placements[at]), layout.mesh.get_group(at))
    return result


def _reduced_part(local: Tensor, layout: Layout, at: int, dim: int) -> Tensor:
    group = layout.mesh.get_group(at)
    parts = _cut(local, group.size(), dim)
    result = parts[group.rank()].new_empty(parts[group.rank()].shape)
    plain.reduce_scatter(result, parts, _op(layout.placements[at]), group)
    return result


def _exchanged(local: Tensor, layout: Layout, at: int, before: int, dim: int) -> Tensor:
    """From parts along `before` to parts along `dim`."""
    group, size = layout.mesh.get_group(at), layout.own(before, at)[1]
    sent = _cut(local, group.size(), dim)
    shape, received = list(sent[group.rank()].shape), []
    for index in range(group.size()):
        shape[before] = span(size, group.size(), index)[1]
        received.append(local.new_empty(shape))
    plain.all_to_all(received, sent, group)
    return _C.cat(received, before)


def _term(local: Tensor, layout: Layout, at: int, placement: Partial) -> Tensor:
    """What this process adds to a sum that is the tensor: the first one has it, others zeros. Other
    reductions of equal terms are the tensor."""
    if placement.reduce_op != "sum" or layout.mesh.get_local_rank(at) == 0:
        return local
    return _C.zeros_like(local)


# All dimensions of a mesh ------------------------------------------------------------------------


def moved(local: Tensor, layout: Layout, target: Placements) -> Tensor:
    """What this process has of the tensor where its placements become `target`.

    One collective where no other placement cuts the same dimension; otherwise parts are put
    together, the innermost first, and cut again.
    """
    for at, wanted in enumerate(target):
        if layout.placements[at] != wanted and _is_free(layout.placements, target, at):
            local, layout = _direct(local, layout, at, wanted)
    settled = [_is_settled(layout.placements, target, at) for at in range(len(target))]
    for at in reversed(range(len(target))):
        if not settled[at]:
            local, layout = _direct(local, layout, at, Replicate())
    for at, wanted in enumerate(target):
        local, layout = _direct(local, layout, at, wanted)
    return local


def _cuts(placements: Sequence[Any], dim: int) -> list[int]:
    return [at for at, each in enumerate(placements) if each.is_shard(dim)]


def _is_free(source: Placements, target: Placements, at: int) -> bool:
    """Whether no other dimension of the mesh cuts what this one does, before or after."""
    shards = [each for each in (source[at], target[at]) if isinstance(each, Shard)]
    return all({*_cuts(source, s.dim), *_cuts(target, s.dim)} == {at} for s in shards)


def _is_settled(source: Placements, target: Placements, at: int) -> bool:
    """Whether the parts stay as they are."""
    now = source[at]
    if now != target[at] or not isinstance(now, Shard):
        return now == target[at]
    return all(
        source[outer] == target[outer]
        for outer in {*_cuts(source, now.dim), *_cuts(target, now.dim)}
        if outer < at
    )


def _direct(local: Tensor, layout: Layout, at: int, wanted: Any) -> tuple[Tensor, Layout]:
    now = layout.placements[at]
    if now == wanted:
        return local, layout
    if isinstance(now, Shard) and isinstance(wanted, Shard):
        local = _exchanged(local, layout, at, now.dim, wanted.dim)
    elif isinstance(now, Partial) and isinstance(wanted, Shard):
        local = _reduced_part(local, layout, at, wanted.dim)
    else:
        if isinstance(now, Shard):
            local = _gathered(local, layout, at, now.dim)
        elif isinstance(now, Partial):
            local = _reduced(local, layout, at)
        if isinstance(wanted, Shard):
            local = _part(local, layout, at, wanted.dim)
        elif isinstance(wanted, Partial):
            local = _term(local, layout, at, wanted)
    changed = (*layout.placements[:at], wanted, *layout.placements[at + 1 :])
    return local, layout.placed(changed)


# Gradients ---------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A move to the placements `target`, and the one of its gradient: that of the result lies as
    `grad_from`, and that of the tensor becomes `grad_to`."""

    layout: Layout
    target: Placements
    grad_from: Placements
    grad_to: Placements

    def scale(self) -> int:
        """By how much less each term of a mean counts than the mean."""
        sizes = 1
        for at, (now, then) in enumerate(zip(self.layout.placements, self.target)):
            if now.is_partial("avg") and now != then:
                sizes *= self.layout.mesh.size(at)
        return sizes

    def backward(self) -> Step:
        """The move of the gradient."""
        layout = self.layout.placed(self.grad_from)
        grads = of_gradient(self.layout.placements), of_gradient(self.target)
        return Step(layout, self.grad_to, *grads)


class _Move(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, step: Step) -> Tensor:
        ctx.step = step
        result = moved(local, step.layout, step.target)
        return local.view(local.shape) if result is local else result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        back, scale = ctx.step.backward(), ctx.step.scale()
        grad = _Move.apply(grad, back)
        return (grad if scale == 1 else grad / scale), None


class _Extreme(Function):
    """The largest or smallest of all processes. Its gradient goes to those that have it."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, layout: Layout, at: int) -> Tensor:
        result = _reduced(local, layout, at)
        ctx.group = layout.mesh.get_group(at)
        ctx.save_for_backward(local == result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (has,) = ctx.saved_tensors
        with no_grad():
            count = has.to(grad.dtype)
            plain.all_reduce(count, group=ctx.group)
        return grad * has / count, None, None


def move(
    local: Tensor,
    layout: Layout,
    target: Placements,
    grad_from: Placements | None = None,
    grad_to: Placements | None = None,
) -> Tensor:
    """As `moved`, and differentiable: by `Step`, whose gradients lie as their tensors do where
    nothing else is said."""
    if type(local) is not Tensor:
        local = local.as_subclass(Tensor)
    if not (is_grad_enabled() and local.requires_grad):
        with no_grad():
            return moved(local, layout, target)
    for at, (now, then) in enumerate(zip(layout.placements, target)):
        if isinstance(now, Partial) and now.reduce_op in ("max", "min", "product") and now != then:
            if now.reduce_op == "product":
                raise NotImplementedError(
                    "redistribute: expected no gradient of a product, got one"
                )
            local = _Extreme.apply(local, layout, at)
            changed = (*layout.placements[:at], Replicate(), *layout.placements[at + 1 :])
            layout = layout.placed(changed)
    own = of_gradient(layout.placements)
    step = Step(layout, target, grad_from or of_gradient(target), grad_to or own)
    return _Move.apply(local, step)
