"""weft.cuda: says that this build has no GPU, so that programs choose the CPU.

Questions about devices and memory are answered as PyTorch's CPU build answers them; what would need
a device raises and says so.

>>> weft.cuda.is_available(), weft.cuda.device_count(), weft.cuda.memory_allocated()
(False, 0, 0)
"""

from __future__ import annotations

import collections
import functools
from typing import Any

from weft._runtime import absent as _absent
from weft._runtime.absent import device_count as device_count
from weft._runtime.absent import empty_cache as empty_cache
from weft._runtime.absent import is_available as is_available
from weft._runtime.absent import manual_seed as manual_seed
from weft._runtime.absent import manual_seed_all as manual_seed_all
from weft._runtime.exports import list_exports as _list_exports
from weft._runtime.settings import OutOfMemoryError as OutOfMemoryError
from weft._tensor import legacy_types
from weft.cuda import amp as amp
from weft.cuda import nvtx as nvtx
from weft.cuda.streams import CUDAGraph as CUDAGraph
from weft.cuda.streams import Event as Event
from weft.cuda.streams import ExternalStream as ExternalStream
from weft.cuda.streams import Stream as Stream

_initialized = False  # libraries that keep the states of generators read it
_TOLD = "; Torch not compiled with CUDA enabled"  # the words that programs match
_needs_device = _absent.raising("cuda", AssertionError, _TOLD)


def set_rng_state_all(new_states: Any) -> None:
    """Takes what get_rng_state_all gave: no states. RuntimeError for any."""
    if len(list(new_states)):
        raise RuntimeError(
            f"cuda.set_rng_state_all: expected no states without a GPU, got {len(new_states)}"
        )


class _Nothing:
    """A context that changes nothing for None, and cannot be for anything else."""

    def __init__(self, device: Any) -> None:
        if device is not None:
            _needs_device(type(self).__name__)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


class device(_Nothing):
    """`with device(None):` changes nothing; any device raises AssertionError."""


class stream(_Nothing):
    """`with stream(None):` changes nothing; any stream raises AssertionError."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)


StreamContext = stream


class graph(_Nothing):
    """`with graph(g):` raises AssertionError: no GPU records work."""

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        _needs_device("graph")


_define = functools.partial(_absent.define, globals())

# Without a device there is no memory in use, nothing cached, and no generator to seed.
_define(
    "False: there is no GPU to ask.",
    lambda _: False,
    "is_initialized() is_bf16_supported(including_emulation=True) is_tf32_supported() "
    "is_current_stream_capturing() _is_in_bad_fork()",
)
_define(
    "0.",
    lambda _: 0,
    "memory_allocated(device=None) max_memory_allocated(device=None) "
    "memory_reserved(device=None) max_memory_reserved(device=None)",
)
_define("No figures.", lambda _: collections.OrderedDict(), "memory_stats(device=None)")
_define("None are there.", lambda _: [], "get_arch_list() get_rng_state_all()")
_define(
    "Nothing to do: no device has memory or a generator.",
    lambda _: None,
    "reset_peak_memory_stats(device=None) reset_max_memory_allocated(device=None) seed() "
    "seed_all()",
)
_define(
    "Raises AssertionError.",
    _needs_device,
    "init() _lazy_init() ipc_collect() initial_seed() synchronize(device=None) "
    "set_device(device) current_device() get_device_name(device=None) "
    "get_device_capability(device=None) get_device_properties(device=None) "
    "mem_get_info(device=None) get_rng_state(device='cuda') "
    "set_rng_state(new_state,device='cuda') current_stream(device=None) "
    "default_stream(device=None) cudart() set_sync_debug_mode(debug_mode) _sleep(cycles)",
)

_list_exports(vars(), "amp nvtx")


def __getattr__(name: str) -> Any:
    if name in legacy_types.TYPES:
        return legacy_types.of_gpu(name)
    raise AttributeError(f"module 'weft.cuda' has no attribute {name!r}")
