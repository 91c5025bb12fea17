"""Parameters of one dtype that processes gather, and sum the gradients of, by one message.

A large parameter has a bundle of its own: where its rows divide evenly it needs no copy in either
direction, because the rows of the processes, one behind another, are the parameter. Small ones
share one bundle, which saves messages and costs a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from weft._C import Tensor
from weft.distributed.collectives import all_gather_into_tensor, reduce_scatter_tensor
from weft.distributed.groups import ProcessGroup
from weft.distributed.work import Work
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter

_LARGE = 1 << 20  # bytes of a whole parameter

Location = tuple[Module, str]  # a module and the name of one of its parameters


class Owner(NamedTuple):
    """A parameter of which this process keeps some rows."""

    locations: Sequence[Location]  # several where modules share it
    parameter: Parameter  # this process's rows
    shape: tuple[int, ...]
    rows: int  # of each process; the last ones may have less

    @property
    def elements(self) -> int:
        """Of the rows of one process."""
        return self.rows * math.prod(self.shape[1:])


class Bundle:
    """Some parameters of one unit. Tensors of a message are [processes, elements of each]."""

    def __init__(self, owners: Sequence[Owner], group: ProcessGroup) -> None:
        self.owners, self._group = owners, group
        self._sizes = [owner.elements for owner in owners]
        self._gathering: tuple[Work, Tensor] | None = None

    # ---- parameters ----

    def gather(self) -> None:
        """Begins to collect the rows of all processes."""
        own = self._own()
        whole = own.new_empty(self._group.size(), own.numel())
        work = all_gather_into_tensor(whole, own, self._group, async_op=True)
        assert work is not None
        self._gathering = (work, whole)

    def _own(self) -> Tensor:
        """The rows of this process, and what the last ones have less."""
        first = self.owners[0].parameter.detach()
        if len(self.owners) == 1 and first.numel() == self._sizes[0]:
            return first.reshape(-1)
        own = first.new_zeros(sum(self._sizes))
        for owner, part in zip(self.owners, own.split(self._sizes)):
            part[: owner.parameter.numel()] = owner.parameter.detach().reshape(-1)
        return own

    def full(self) -> list[Tensor]:
        """The whole parameters, once they are here."""
        assert self._gathering is not None
        work, whole = self._gathering
        work.wait()
        self._gathering = None
        return [
            part.reshape(-1, *owner.shape[1:])[: owner.shape[0]].contiguous()
            for owner, part in zip(self.owners, whole.split(self._sizes, dim=1))
        ]

    def free(self) -> None:
        """Lets go of what was gathered."""
        self._gathering = None

    # ---- gradients ----

    def reduce(self, grads: Sequence[Tensor]) -> tuple[Work, Tensor]:
        """Begins to sum whole gradients, of which each process gets its rows."""
        source = self._by_process(grads)
        own = source.new_empty(sum(self._sizes))
        work = reduce_scatter_tensor(own, source, group=self._group, async_op=True)
        assert work is not None
        return work, own

    def _by_process(self, grads: Sequence[Tensor]) -> Tensor:
        count = self._group.size()
        if len(grads) == 1 and grads[0].numel() == count * self._sizes[0]:
            return grads[0].reshape(count, -1)
        source = grads[0].new_zeros(count, sum(self._sizes))
        for owner, grad, part in zip(self.owners, grads, source.split(self._sizes, dim=1)):
            width = math.prod(owner.shape[1:])
            for rows, target in zip(grad.split(owner.rows), part):
                target[: rows.shape[0] * width] = rows.reshape(-1)
        return source

    def parts(self, own: Tensor) -> list[Tensor]:
        """The gradients of the rows that are kept here. Each has memory of its own, or it would
        hold that of all."""
        parts = [
            part[: owner.parameter.numel()].view(owner.parameter.shape)
            for owner, part in zip(self.owners, own.split(self._sizes))
        ]
        return parts if len(parts) == 1 else [part.clone() for part in parts]


def bundles_of(owners: Sequence[Owner], group: ProcessGroup) -> list[Bundle]:
    """Bundles of all owners, in their order but for the small ones, which come together."""
    small: dict[object, list[Owner]] = {}
    found = []
    for owner in owners:
        if math.prod(owner.shape) * owner.parameter.element_size() >= _LARGE:
            found.append([owner])
        elif owner.parameter.dtype in small:
            small[owner.parameter.dtype].append(owner)
        else:
            found.append(small.setdefault(owner.parameter.dtype, [owner]))
    return [Bundle(each, group) for each in found]
