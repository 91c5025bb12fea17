"""torch._C: the private names that libraries use, and weft's own extension behind them."""

from __future__ import annotations

import functools
from typing import Any

import weft
from weft import _C
from weft._runtime import absent
from weft.compat.overlay._C import _nn
from weft.compat.overlay._C._dispatch import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

__all__ = ["DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard", "_nn"]

_TensorMeta = type(weft.Tensor)
_LinAlgError = _C.LinAlgError


def __getattr__(name: str) -> Any:
    return getattr(_C, name)


def _get_tracing_state() -> Any:
    """True while weft.jit.trace records the calls of this thread, otherwise None."""
    return weft.jit.is_tracing() or None


def _is_tracing() -> bool:
    """Whether weft.jit.trace records the calls of this thread."""
    return weft.jit.is_tracing()


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, or a trace, sees the operators of this thread."""
    return _C._recorder() is not None


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode of weft.overrides sees the functions of this thread."""
    return weft.overrides._get_current_function_mode() is not None


def _get_accelerator(check: bool | None = None) -> Any:
    """The CPU's device: there is no accelerator."""
    return weft.device("cpu")


def _is_alias_of(tensor: weft.Tensor, other: weft.Tensor) -> bool:
    """Whether two tensors lie in one storage."""
    return tensor._storage_key() == other._storage_key()


def _setting(setter: str, getter: str, value: bool, tells: bool) -> None:
    """Functions for a setting of PyTorch's compiler, which is kept without effect: programs are
    always compiled. The one that sets it `tells` what was before."""
    kept = [value]

    def set_kept(value: bool) -> bool | None:
        before, kept[0] = kept[0], value
        return before if tells else None

    for name, function in ((setter, set_kept), (getter, lambda: kept[0])):
        if name:
            function.__name__, function.__doc__ = name, "A setting that is kept without effect."
            globals()[name] = function


for _setter, _getter, _value, _tells in (
    ("_jit_set_profiling_executor", "", True, True),
    ("_jit_set_profiling_mode", "", True, True),
    ("_jit_override_can_fuse_on_cpu", "_jit_can_fuse_on_cpu", False, False),
    ("_jit_override_can_fuse_on_gpu", "_jit_can_fuse_on_gpu", False, False),
    ("_jit_set_texpr_fuser_enabled", "_jit_texpr_fuser_enabled", True, False),
    ("_jit_set_nvfuser_enabled", "_jit_nvfuser_enabled", False, True),
    ("_jit_set_nvfuser_guard_mode", "", False, True),
):
    _setting(_setter, _getter, _value, _tells)

_define = functools.partial(absent.define, globals())
_define("Nothing: weft counts no uses.", lambda _: None, "_log_api_usage_once(event)")
_define("True, as in PyTorch where nobody turns it off.", lambda _: True, "_get_cudnn_enabled()")
_define("False.", lambda _: False, "_mps_is_available()")
_define("The name of no device.", lambda _: "privateuseone", "_get_privateuse1_backend_name()")
