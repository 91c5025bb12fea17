"""Placements: what one dimension of a mesh of processes holds of a tensor."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What the processes along one dimension of a mesh hold: Shard, Replicate or Partial."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process holds a part, along dimension `dim` where that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process holds all of the tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is a reduction over the processes, by `reduce_op` if given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process holds a part of dimension `dim`, as `chunk` cuts it: the last ones may have
    less, or nothing.

    >>> Shard(0), str(Shard(0)), Shard(0).is_shard(1)
    (Shard(dim=0), 'S(0)', False)
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process holds all of the tensor."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """The tensor is the reduction ("sum", "avg", "max", "min", "product") of what the processes
    hold."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
