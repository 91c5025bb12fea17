"""weft.cuda: says that this build has no GPU, so that programs choose the CPU.

Questions about devices and memory are answered as PyTorch's CPU build answers them; what would need
a device raises and says so.

>>> weft.cuda.is_available(), weft.cuda.device_count(), weft.cuda.memory_allocated()
(False, 0, 0)
"""

from __future__ import annotations

import collections
from typing import Any, NoReturn

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


def is_initialized() -> bool:
    """False: there is nothing to initialise."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def _needs_device(name: str) -> NoReturn:
    raise AssertionError(
        f"cuda.{name}: expected a GPU, got a build for the CPU alone; "
        "Torch not compiled with CUDA enabled"  # the words that programs match
    )


# Without a device there is no memory in use, nothing cached, and no generator to seed. -----------


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def memory_stats(device: Any = None) -> collections.OrderedDict[str, Any]:
    """No figures."""
    return collections.OrderedDict()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing to do: the peak is 0."""


def reset_max_memory_allocated(device: Any = None) -> None:
    """Nothing to do: the peak is 0."""


def seed() -> None:
    """Nothing to do: no device has a generator."""


def seed_all() -> None:
    """Nothing to do: no device has a generator."""


def get_arch_list() -> list[str]:
    """No architectures."""
    return []


def get_rng_state_all() -> list[Any]:
    """The states of no generators."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Takes what get_rng_state_all gave: no states. RuntimeError for any."""
    if len(list(new_states)):
        raise RuntimeError(
            f"cuda.set_rng_state_all: expected no states without a GPU, got {len(new_states)}"
        )


def is_current_stream_capturing() -> bool:
    """False: nothing can be captured."""
    return False


# What needs a device raises. ----------------------------------------------------------------------


def init() -> None:
    """Raises AssertionError."""
    _needs_device("init")


def _lazy_init() -> None:
    """Raises AssertionError."""
    _needs_device("init")


def ipc_collect() -> None:
    """Raises AssertionError."""
    _needs_device("ipc_collect")


def initial_seed() -> int:
    """Raises AssertionError."""
    _needs_device("initial_seed")


def synchronize(device: Any = None) -> None:
    """Raises AssertionError: there is no GPU to wait for."""
    _needs_device("synchronize")


def set_device(device: Any) -> None:
    """Raises AssertionError."""
    _needs_device("set_device")


def current_device() -> int:
    """Raises AssertionError."""
    _needs_device("current_device")


def get_device_name(device: Any = None) -> str:
    """Raises AssertionError."""
    _needs_device("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Raises AssertionError."""
    _needs_device("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """Raises AssertionError."""
    _needs_device("get_device_properties")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Raises AssertionError."""
    _needs_device("mem_get_info")


def get_rng_state(device: Any = "cuda") -> Any:
    """Raises AssertionError."""
    _needs_device("get_rng_state")


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Raises AssertionError."""
    _needs_device("set_rng_state")


def current_stream(device: Any = None) -> Any:
    """Raises AssertionError."""
    _needs_device("current_stream")


def default_stream(device: Any = None) -> Any:
    """Raises AssertionError."""
    _needs_device("default_stream")


class _Nothing:
    """A context that changes nothing for None, and cannot be for anything else."""

    def __init__(self, what: Any) -> None:
        if what is not None:
            _needs_device(type(self).__name__)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


class device(_Nothing):
    """`with device(None):` changes nothing; any device raises AssertionError."""


class stream(_Nothing):
    """`with stream(None):` changes nothing; any stream raises AssertionError."""


StreamContext = stream


class graph(_Nothing):
    """`with graph(g):` raises AssertionError: no GPU records work."""

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        _needs_device("graph")


def cudart() -> Any:
    """Raises AssertionError."""
    _needs_device("cudart")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Raises AssertionError."""
    _needs_device("set_sync_debug_mode")


def _sleep(cycles: int) -> None:
    """Raises AssertionError."""
    _needs_device("_sleep")


def _is_in_bad_fork() -> bool:
    """False: a fork can leave no GPU behind."""
    return False


_list_exports(vars(), "amp nvtx")


def __getattr__(name: str) -> Any:
    if name in legacy_types.TYPES:
        return legacy_types.of_gpu(name)
    raise AttributeError(f"module 'weft.cuda' has no attribute {name!r}")
