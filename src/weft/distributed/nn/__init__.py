# ruff: noqa: F403
"""Collective operations that gradients go through."""

from weft._runtime.exports import take_own as _take_own
from weft.distributed.nn import functional as functional
from weft.distributed.nn.functional import *

_take_own(vars(), "functional")
