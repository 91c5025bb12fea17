# ruff: noqa: F403
"""Modules whose parameters are spread over processes."""

from weft._runtime.exports import take_own as _take_own
from weft.distributed.fsdp.api import *
from weft.distributed.fsdp.fully_shard import FSDPModule as FSDPModule
from weft.distributed.fsdp.fully_shard import fully_shard as fully_shard
from weft.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel as FullyShardedDataParallel,
)
from weft.distributed.fsdp.unit import Shard as Shard
from weft.distributed.fsdp.unit import shard_of as shard_of

_take_own(vars())
