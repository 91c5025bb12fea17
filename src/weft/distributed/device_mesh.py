"""Meshes: the ranks of the world as an array, with a group for each line of each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.distributed.groups import (
    ProcessGroup,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = ["DeviceMesh", "init_device_mesh"]


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of the first ranks of the world, in their order. All processes call it.

    Makes the default group where there is none. RuntimeError for more ranks than the world has, for
    names that are not one for each dimension or come twice, and for a device with an index.

    >>> import weft.distributed as dist
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].size(), mesh.get_coordinate()
    (1, (0, 0))
    >>> dist.destroy_process_group()
    """
    if ":" in device_type:
        raise RuntimeError(
            f"init_device_mesh: expected a device without an index, got {device_type}"
        )
    count = math.prod(mesh_shape)
    ranks = _C.arange(count, dtype=_C.int32).view(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


class DeviceMesh:
    """Ranks in an array (`mesh`, of integers), and groups of those that differ in one dimension.

    All processes of the world make it, in the same order. Where this process is none of the ranks
    it has no coordinate and no groups.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _groups: Sequence[ProcessGroup] | None = None,
    ) -> None:
        if not is_initialized():
            init_process_group()
        self.device_type = device_type
        ranks = mesh.detach() if isinstance(mesh, Tensor) else _C.tensor(mesh)
        self.mesh = ranks.to(_C.int32)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._ranks = tuple(self.mesh.flatten().tolist())
        self._sizes = tuple(self.mesh.shape)
        self._check(get_world_size())
        place = (self.mesh == get_rank()).nonzero().tolist()
        self._coordinate = tuple(place[0]) if place else None
        self._groups = _lines(self.mesh) if _groups is None else list(_groups)

    def _check(self, world: int) -> None:
        names = self.mesh_dim_names
        if names is not None and len(names) != self.ndim:
            raise RuntimeError(f"DeviceMesh: expected {self.ndim} names of dimensions, got {names}")
        if names is not None and len(set(names)) < len(names):
            raise RuntimeError(f"DeviceMesh: expected different names of dimensions, got {names}")
        ranks = list(self._ranks)
        if len(set(ranks)) < len(ranks) or not set(ranks) <= set(range(world)):
            raise RuntimeError(
                f"DeviceMesh: expected different ranks of a world of {world}, got {ranks}"
            )

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each dimension."""
        return self._sizes

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, in all or along a dimension."""
        return len(self._ranks) if mesh_dim is None else self._sizes[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process; None where it is none of the ranks."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension, which a mesh of one may leave out."""
        dim = self._dim("get_local_rank", mesh_dim)
        return -1 if self._coordinate is None else self._coordinate[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along a dimension, which a mesh of one may leave out."""
        return self.get_all_groups()[self._dim("get_group", mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of this process, by dimension. RuntimeError where it is none of the ranks."""
        if self._coordinate is None:
            raise RuntimeError(
                f"DeviceMesh: expected one of the ranks {list(self._ranks)}, got {get_rank()}"
            )
        return self._groups

    def _dim(self, what: str, given: int | str | None) -> int:
        if isinstance(given, str):
            return self._named([given])[0]
        if given is None and self.ndim > 1:
            raise RuntimeError(f"{what}: expected mesh_dim for {self.ndim} dimensions, got none")
        return range(self.ndim)[given or 0]

    def _named(self, names: Sequence[str]) -> list[int]:
        known = self.mesh_dim_names
        if known is None:
            raise RuntimeError("DeviceMesh: expected a mesh with mesh_dim_names, got one without")
        if not set(names) <= set(known):
            raise KeyError(f"DeviceMesh: expected some of the names {known}, got {tuple(names)}")
        return [known.index(name) for name in names]

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of some dimensions that goes through this process. It has the same groups."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else mesh_dim_names
        dims = self._named(names)
        place: Any = self._coordinate or (0,) * self.ndim
        ranks = self.mesh[tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))]
        order = [sorted(dims).index(dim) for dim in dims]
        groups = [self._groups[dim] for dim in dims] if self._coordinate is not None else []
        return DeviceMesh(
            self.device_type, ranks.permute(order), mesh_dim_names=names, _groups=groups
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return self.device_type, self._ranks, self._sizes, self.mesh_dim_names

    def __repr__(self) -> str:
        names = self.mesh_dim_names or range(self.ndim)
        sizes = ", ".join(f"{name}={size}" for name, size in zip(names, self.shape))
        return f"DeviceMesh(({sizes}), {self.device_type!r})"


def _lines(mesh: Tensor) -> list[ProcessGroup]:
    """The groups of this process, by dimension; all processes make all of them."""
    groups = []
    for dim in range(mesh.dim()):
        for line in mesh.movedim(dim, -1).reshape(-1, mesh.shape[dim]).tolist():
            group = new_group(line, sort_ranks=False)
            if get_rank() in line:
                groups.append(group)
    return groups
