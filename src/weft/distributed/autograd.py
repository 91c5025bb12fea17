"""Gradients through rpc, which weft has not."""

from weft._runtime.absent import is_available as is_available
