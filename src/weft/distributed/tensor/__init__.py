"""Tensors over several processes: DTensor, its placements, and modules made of it."""

from weft.distributed.tensor._dtensor import DTensor, distribute_tensor
from weft.distributed.tensor._factories import empty, full, ones, rand, randn, zeros
from weft.distributed.tensor._modules import distribute_module
from weft.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]
