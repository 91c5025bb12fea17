# ruff: noqa: F403
"""Modules whose parameters are spread over processes."""

from weft._runtime.exports import list_own as _list_own
from weft.distributed.fsdp.api import *
from weft.distributed.fsdp.fully_shard import *
from weft.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel as FullyShardedDataParallel,
)
from weft.distributed.fsdp.unit import Shard as Shard
from weft.distributed.fsdp.unit import shard_of as shard_of

_list_own(vars())
