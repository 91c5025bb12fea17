"""Modules whose parameters are spread over processes."""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.fsdp.api import BackwardPrefetch as BackwardPrefetch
from weft.distributed.fsdp.api import CPUOffload as CPUOffload
from weft.distributed.fsdp.api import CPUOffloadPolicy as CPUOffloadPolicy
from weft.distributed.fsdp.api import FullOptimStateDictConfig as FullOptimStateDictConfig
from weft.distributed.fsdp.api import FullStateDictConfig as FullStateDictConfig
from weft.distributed.fsdp.api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from weft.distributed.fsdp.api import LocalStateDictConfig as LocalStateDictConfig
from weft.distributed.fsdp.api import MixedPrecision as MixedPrecision
from weft.distributed.fsdp.api import MixedPrecisionPolicy as MixedPrecisionPolicy
from weft.distributed.fsdp.api import OffloadPolicy as OffloadPolicy
from weft.distributed.fsdp.api import OptimStateDictConfig as OptimStateDictConfig
from weft.distributed.fsdp.api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from weft.distributed.fsdp.api import ShardedStateDictConfig as ShardedStateDictConfig
from weft.distributed.fsdp.api import ShardingStrategy as ShardingStrategy
from weft.distributed.fsdp.api import StateDictConfig as StateDictConfig
from weft.distributed.fsdp.api import StateDictSettings as StateDictSettings
from weft.distributed.fsdp.api import StateDictType as StateDictType
from weft.distributed.fsdp.fully_shard import FSDPModule as FSDPModule
from weft.distributed.fsdp.fully_shard import fully_shard as fully_shard
from weft.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel as FullyShardedDataParallel,
)
from weft.distributed.fsdp.unit import Shard as Shard
from weft.distributed.fsdp.unit import shard_of as shard_of

_list_exports(vars())
