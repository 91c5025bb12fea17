"""Algorithms over groups of processes."""

from weft.distributed.algorithms import ddp_comm_hooks, join

__all__ = ["ddp_comm_hooks", "join"]
