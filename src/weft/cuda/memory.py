"""Memory of GPUs, of which there is none: no figures, and no recordings."""

from __future__ import annotations

from weft._runtime import absent as _absent
from weft._runtime.exports import list_exports as _list_exports
from weft.cuda import empty_cache as empty_cache
from weft.cuda import max_memory_allocated as max_memory_allocated
from weft.cuda import max_memory_reserved as max_memory_reserved
from weft.cuda import mem_get_info as mem_get_info
from weft.cuda import memory_allocated as memory_allocated
from weft.cuda import memory_reserved as memory_reserved
from weft.cuda import memory_stats as memory_stats
from weft.cuda import reset_max_memory_allocated as reset_max_memory_allocated
from weft.cuda import reset_peak_memory_stats as reset_peak_memory_stats

_list_exports(vars())
_absent.define(
    globals(),
    "Raises AssertionError.",
    _absent.raising("cuda.memory", AssertionError),
    "_record_memory_history(*args,**kwargs) _dump_snapshot(*args,**kwargs) "
    "_snapshot(*args,**kwargs)",
)
