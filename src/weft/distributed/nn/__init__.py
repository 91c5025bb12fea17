"""Collective operations that gradients go through."""

from weft._runtime.exports import list_exports as _list_exports
from weft.distributed.nn import functional as functional
from weft.distributed.nn.functional import all_gather as all_gather
from weft.distributed.nn.functional import all_reduce as all_reduce
from weft.distributed.nn.functional import all_to_all as all_to_all
from weft.distributed.nn.functional import all_to_all_single as all_to_all_single
from weft.distributed.nn.functional import broadcast as broadcast
from weft.distributed.nn.functional import gather as gather
from weft.distributed.nn.functional import reduce as reduce
from weft.distributed.nn.functional import reduce_scatter as reduce_scatter
from weft.distributed.nn.functional import scatter as scatter

_list_exports(vars(), "functional")
