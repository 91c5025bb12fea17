"""torch._C: the private names that libraries use, and weft's own extension behind them."""

from __future__ import annotations

from typing import Any

import weft
from weft import _C
from weft.compat.overlay._C import _nn
from weft.compat.overlay._C._dispatch import (
    DispatchKey,
    DispatchKeySet,
    _ExcludeDispatchKeyGuard,
)

__all__ = ["DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard", "_nn"]

_TensorMeta = type(weft.Tensor)
_LinAlgError = _C.LinAlgError
_FUSERS = {
    "profiling_executor": True,
    "profiling_mode": True,
    "fuse_on_cpu": False,
    "fuse_on_gpu": False,
    "texpr_fuser": True,
    "nvfuser": False,
    "nvfuser_guard_mode": False,
}


def __getattr__(name: str) -> Any:
    return getattr(_C, name)


def _log_api_usage_once(event: str) -> None:
    """Nothing: weft counts no uses."""


def _get_tracing_state() -> Any:
    """True while weft.jit.trace records the calls of this thread, otherwise None."""
    return weft.jit.is_tracing() or None


def _is_tracing() -> bool:
    """Whether weft.jit.trace records the calls of this thread."""
    return weft.jit.is_tracing()


def _get_cudnn_enabled() -> bool:
    """True, as it is in PyTorch where nobody says otherwise: there is no cuDNN to switch off."""
    return True


def _mps_is_available() -> bool:
    """False."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, or a trace, sees the operators of this thread."""
    return _C._recorder() is not None


def _get_privateuse1_backend_name() -> str:
    """The name of the device that an extension may add, before one has."""
    return "privateuseone"


def _kept(name: str, value: bool) -> bool:
    """Keeps a setting of PyTorch's compiler that has no effect here, and gives the one before."""
    before, _FUSERS[name] = _FUSERS[name], value
    return before


def _jit_set_profiling_executor(value: bool) -> bool:
    """Kept without effect: programs are always compiled. The value before."""
    return _kept("profiling_executor", value)


def _jit_set_profiling_mode(value: bool) -> bool:
    """Kept without effect. The value before."""
    return _kept("profiling_mode", value)


def _jit_override_can_fuse_on_cpu(value: bool) -> None:
    """Kept without effect."""
    _kept("fuse_on_cpu", value)


def _jit_override_can_fuse_on_gpu(value: bool) -> None:
    """Kept without effect."""
    _kept("fuse_on_gpu", value)


def _jit_can_fuse_on_cpu() -> bool:
    """What _jit_override_can_fuse_on_cpu set."""
    return _FUSERS["fuse_on_cpu"]


def _jit_can_fuse_on_gpu() -> bool:
    """What _jit_override_can_fuse_on_gpu set."""
    return _FUSERS["fuse_on_gpu"]


def _jit_set_texpr_fuser_enabled(value: bool) -> None:
    """Kept without effect."""
    _kept("texpr_fuser", value)


def _jit_texpr_fuser_enabled() -> bool:
    """What _jit_set_texpr_fuser_enabled set."""
    return _FUSERS["texpr_fuser"]


def _jit_set_nvfuser_enabled(value: bool) -> bool:
    """Kept without effect. The value before."""
    return _kept("nvfuser", value)


def _jit_nvfuser_enabled() -> bool:
    """What _jit_set_nvfuser_enabled set."""
    return _FUSERS["nvfuser"]


def _jit_set_nvfuser_guard_mode(value: bool) -> bool:
    """Kept without effect. The value before."""
    return _kept("nvfuser_guard_mode", value)


def _get_accelerator(check: bool | None = None) -> Any:
    """The CPU's device: there is no accelerator."""
    return weft.device("cpu")
