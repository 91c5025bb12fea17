"""Algorithms over groups of processes."""

from weft.distributed.algorithms import join

__all__ = ["join"]
