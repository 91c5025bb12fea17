"""Hooks that sum buckets of gradients, for DistributedDataParallel.register_comm_hook."""

from weft.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["default_hooks"]
