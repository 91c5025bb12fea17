"""Modules whose parameters are spread over processes."""

from weft.distributed.fsdp.fully_shard import FSDPModule, fully_shard
from weft.distributed.fsdp.unit import Shard, shard_of

__all__ = ["FSDPModule", "Shard", "fully_shard", "shard_of"]
