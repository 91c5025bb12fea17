"""Where the elements of a tensor lie: a mesh, and a placement for each of its dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

Placements = tuple[Placement, ...]


def span(size: int, count: int, index: int) -> tuple[int, int]:
    """Begin and length of the part `index` of `count` parts, as `chunk` cuts.

    >>> [span(5, 3, index) for index in range(3)], span(2, 3, 2)
    ([(0, 2), (2, 2), (4, 1)], (2, 0))
    """
    each = -(-size // count)
    begin = min(each * index, size)
    return begin, min(each, size - begin)


class Layout(NamedTuple):
    """The placements of a tensor of the sizes `shape`, one for each dimension of the mesh. Where
    several cut one dimension, those of later dimensions of the mesh cut the parts of earlier
    ones."""

    mesh: DeviceMesh
    placements: Placements
    shape: tuple[int, ...]

    def own(self, dim: int, before: int | None = None) -> tuple[int, int]:
        """Begin and length of what this process has along `dim`; as the dimensions of the mesh
        `before` one cut it, where that is given."""
        begin, length = 0, self.shape[dim]
        for at, placement in enumerate(self.placements[:before]):
            if placement.is_shard(dim):
                place = self.mesh.get_local_rank(at)
                more, length = span(length, self.mesh.size(at), place)
                begin += more
        return begin, length

    def local_shape(self) -> tuple[int, ...]:
        """The sizes of what this process has."""
        return tuple(self.own(dim)[1] for dim in range(len(self.shape)))

    def strides(self) -> tuple[int, ...]:
        """The strides of the whole tensor, were it contiguous."""
        sizes = [max(size, 1) for size in self.shape[:0:-1]]
        return tuple(itertools.accumulate(sizes, int.__mul__, initial=1))[::-1] * bool(self.shape)

    def placed(self, placements: Placements) -> Layout:
        """The same tensor with other placements."""
        return self._replace(placements=placements)


def checked(
    what: str, mesh: DeviceMesh, placements: Sequence[Placement] | None, rank: int
) -> Placements:
    """Placements of a tensor of this rank, with dimensions counted from 0; Replicate for None.

    ValueError unless there is one for each dimension of the mesh, IndexError for a Shard of a
    dimension that the tensor has not, TypeError for what is no placement.
    """
    given = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(given) != mesh.ndim:
        raise ValueError(
            f"{what}: expected {mesh.ndim} placements for {mesh}, got {len(given)}: {tuple(given)}"
        )
    return tuple(_counted(what, each, rank) for each in given)


def _counted(what: str, placement: Placement, rank: int) -> Placement:
    if not isinstance(placement, (Shard, Replicate, Partial)):
        raise TypeError(f"{what}: expected Shard, Replicate or Partial, got {placement!r}")
    if not isinstance(placement, Shard):
        return placement
    if not -rank <= placement.dim < rank:
        raise IndexError(f"{what}: expected a dimension of {rank}, got {placement!r}")
    return Shard(placement.dim % rank)


def of_gradient(placements: Placements) -> Placements:
    """The placements of the gradient of what has these: of a part the part; of all, and of each
    term of a sum, all of it.

    >>> of_gradient((Shard(0), Partial()))
    (Shard(dim=0), Replicate())
    """
    return tuple(Replicate() if isinstance(each, Partial) else each for each in placements)
