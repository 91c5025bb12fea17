"""The parameters of one module, of which each process keeps some rows.

A unit gathers its parameters before the module's forward, and lets go of them behind it. What
forward saved of them for backward is kept as a place in the unit, not as memory: backward gathers
again when it asks for the first. Their gradients are summed where their rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from weft._C import Tensor
from weft.autograd.function import Function
from weft.autograd.grad_mode import is_grad_enabled, no_grad
from weft.autograd.graph import saved_tensors_hooks
from weft.distributed.collectives import all_gather_into_tensor, reduce_scatter_tensor
from weft.distributed.groups import ProcessGroup
from weft.distributed.work import Work
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class Shard(NamedTuple):
    """Rows of a tensor of `shape` (first dimension), from `start` on."""

    rows: Tensor
    start: int
    shape: tuple[int, ...]


Place = tuple[Module, str]  # a module and the name of one of its parameters


class _Owner(NamedTuple):
    places: Sequence[Place]  # several where modules share it
    parameter: Parameter  # this process's rows
    shape: tuple[int, ...]
    rows: int  # of each process; the last ones may have less


_SHARDS = "_weft_shard"
_SPREAD = "_weft_spread"  # marks the whole parameter that shards replace


def shard_of(parameter: Tensor) -> tuple[int, tuple[int, ...]] | None:
    """First row and full shape of a sharded parameter; None for any other."""
    return getattr(parameter, _SHARDS, None)


class _Saved(NamedTuple):
    """A tensor over the memory of gathered parameters."""

    at: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Unit:
    """Parameters of a module and of its children that are in no unit of their own."""

    def __init__(
        self,
        parameters: Sequence[tuple[Parameter, Sequence[Place]]],
        group: ProcessGroup,
        reshards: bool,
    ) -> None:
        self.group, self.reshards = group, reshards
        self.next: Unit | None = None  # the one that is gathered ahead
        self._owners = [self._spread(*each) for each in parameters]
        self._sizes = [owner.rows * math.prod(owner.shape[1:]) for owner in self._owners]
        self._full: list[Tensor] | None = None
        self._work: Work | None = None
        self._ahead: tuple[Tensor, Tensor] | None = None

    def _spread(self, parameter: Parameter, places: Sequence[Place]) -> _Owner:
        shape, name = tuple(parameter.shape), places[0][1]
        if hasattr(parameter, _SPREAD):
            raise ValueError(
                f"fully_shard: expected modules that share a parameter in one unit, got {name} of "
                f"shape {shape} in two"
            )
        if not shape or not parameter.is_floating_point():
            raise ValueError(
                f"fully_shard: expected floating parameters with a dimension, got {name} of shape "
                f"{shape} and {parameter.dtype}"
            )
        rows = -(-shape[0] // self.group.size())
        start = min(rows * self.group.rank(), shape[0])
        own = parameter.detach()[start : start + rows].clone()
        spread = Parameter(own, requires_grad=parameter.requires_grad)
        setattr(spread, _SHARDS, (start, shape))
        setattr(parameter, _SPREAD, True)
        for module, each in places:
            setattr(module, each, spread)
        return _Owner(places, spread, shape, rows)

    # ---- parameters ----

    def gather(self) -> None:
        """Begins to collect the rows of all processes, unless they are here."""
        if not self._owners or self._full is not None or self._ahead is not None:
            return
        with no_grad():
            first = self._owners[0].parameter
            own = first.new_zeros(sum(self._sizes))
            for owner, part in zip(self._owners, own.split(self._sizes)):
                part[: owner.parameter.numel()] = owner.parameter.reshape(-1)
            output = first.new_empty(self.group.size(), own.numel())
            self._work = all_gather_into_tensor(output, own, self.group, async_op=True)
            self._ahead = (output, own)

    def full(self) -> list[Tensor]:
        """The whole parameters."""
        self.gather()
        if self._full is None and self._owners:
            assert self._work is not None and self._ahead is not None
            self._work.wait()
            parts = self._ahead[0].split(self._sizes, dim=1)
            with no_grad():
                self._full = [
                    part.reshape(-1, *owner.shape[1:])[: owner.shape[0]].contiguous()
                    for owner, part in zip(self._owners, parts)
                ]
            self._work = self._ahead = None
        return self._full or []

    def free(self) -> None:
        """Lets go of the whole parameters."""
        self._full = self._work = self._ahead = None

    def shards(self) -> list[Parameter]:
        """The parameters that this process keeps."""
        return [owner.parameter for owner in self._owners]

    # ---- forward ----

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A block in which the module has whole parameters."""
        if self._owners:
            self._set(_Gathered.apply(self, *self.shards()))
        if self.next is not None:
            self.next.gather()
        try:
            with saved_tensors_hooks(self._pack, self._unpack):
                yield
        finally:
            self._set(self.shards())
            if self.reshards or not is_grad_enabled():
                self.free()

    def _set(self, tensors: Sequence[Tensor]) -> None:
        for owner, tensor in zip(self._owners, tensors):
            for module, name in owner.places:
                module.__dict__[name] = tensor

    def _pack(self, tensor: Tensor) -> Any:
        if self._full is None:
            return tensor
        memory = tensor.untyped_storage().data_ptr()
        for at, full in enumerate(self._full):
            if full.untyped_storage().data_ptr() == memory:
                return _Saved(at, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        return tensor

    def _unpack(self, packed: Any) -> Tensor:
        if not isinstance(packed, _Saved):
            return packed
        full = self.full()[packed.at]
        return full.detach().as_strided(packed.size, packed.stride, packed.offset)

    # ---- backward ----

    def reduced(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """The mean of whole gradients over all processes, of the rows that are kept here."""
        count = self.group.size()
        source = grads[0].new_zeros(count, sum(self._sizes))
        for owner, grad, part in zip(self._owners, grads, source.split(self._sizes, dim=1)):
            width = math.prod(owner.shape[1:])
            for rows, target in zip(grad.split(owner.rows), part):
                target[: rows.shape[0] * width] = rows.reshape(-1)
        own = source.new_empty(sum(self._sizes))
        reduce_scatter_tensor(own, source, group=self.group)
        own.div_(count)
        # Copies, or each gradient would hold the memory of all.
        return [
            part[: owner.parameter.numel()].view(owner.parameter.shape).clone()
            for owner, part in zip(self._owners, own.split(self._sizes))
        ]


class _Gathered(Function):
    """Whole parameters of a unit, from the rows that are kept here."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, *shards: Tensor) -> tuple[Tensor, ...]:
        ctx.unit = unit
        return tuple(full.view(full.shape) for full in unit.full())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        with no_grad():
            reduced = ctx.unit.reduced(grads)
        ctx.unit.free()
        return None, *reduced
