"""weft.cuda: says that this build has no GPU, so that programs choose the CPU.

Questions about devices and memory are answered as PyTorch's CPU build answers them; what would need
a device raises and says so.

>>> weft.cuda.is_available(), weft.cuda.device_count(), weft.cuda.memory_allocated()
(False, 0, 0)
"""

from __future__ import annotations

from collections import OrderedDict
from types import TracebackType
from typing import Any, NoReturn

from weft._runtime.settings import OutOfMemoryError
from weft._tensor import legacy_types
from weft.cuda import amp, nvtx
from weft.cuda.streams import CUDAGraph, Event, ExternalStream, Stream

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "cudart",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """False: tensors of this build live on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0


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


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """No figures."""
    return OrderedDict()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing to do: the peak is 0."""


def reset_max_memory_allocated(device: Any = None) -> None:
    """Nothing to do: the peak is 0."""


def empty_cache() -> None:
    """Nothing to do: weft.memory.empty_cache empties the CPU's."""


def manual_seed(seed: int) -> None:
    """Nothing to do: no device has a generator."""


def manual_seed_all(seed: int) -> None:
    """Nothing to do: no device has a generator."""


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


def __getattr__(name: str) -> Any:
    if name in legacy_types.TYPES:
        return legacy_types.of_gpu(name)
    raise AttributeError(f"module 'weft.cuda' has no attribute {name!r}")
