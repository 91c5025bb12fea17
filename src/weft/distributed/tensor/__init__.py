"""How a tensor would lie over several processes. Libraries name placements in their tables;
distributed tensors themselves are not there."""

from weft.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
