"""Tensors over several processes: DTensor, its placements, and modules made of it."""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.tensor._dtensor import DTensor as DTensor
from weft.distributed.tensor._dtensor import distribute_tensor as distribute_tensor
from weft.distributed.tensor._factories import empty as empty
from weft.distributed.tensor._factories import full as full
from weft.distributed.tensor._factories import ones as ones
from weft.distributed.tensor._factories import rand as rand
from weft.distributed.tensor._factories import randn as randn
from weft.distributed.tensor._factories import zeros as zeros
from weft.distributed.tensor._modules import distribute_module as distribute_module
from weft.distributed.tensor.placement_types import Partial as Partial
from weft.distributed.tensor.placement_types import Placement as Placement
from weft.distributed.tensor.placement_types import Replicate as Replicate
from weft.distributed.tensor.placement_types import Shard as Shard

_list_exports(vars())
