# ruff: noqa: F403
"""Collective operations that gradients go through."""

from weft._runtime.exports import list_own as _list_own
from weft.distributed.nn import functional as functional
from weft.distributed.nn.functional import *

_list_own(vars(), "functional")
