"""autocast: matrix products and convolutions in bfloat16 or float16, losses in float32.

The rows of the operator table say which operators it concerns (tags "autocast_..."): linear, mm,
bmm, addmm, baddbmm, matmul, convolutions and what is made of them take their tensors to the lower
dtype; losses of the table, prod, cdist and linear algebra to float32; cat and stack to the widest
of theirs. All others compute in the dtypes they get.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor

_DTYPES = {"cpu": _C.bfloat16, "cuda": _C.float16}
_autograd: Any = _C._autograd


class _State(threading.local):
    """What a thread has set: the dtypes to lower to, and how deep its blocks are."""

    def __init__(self) -> None:
        self.dtypes = dict(_DTYPES)
        self.is_cuda_enabled = False
        self.is_cache_enabled = True
        self.nesting = 0


_state = _State()


def _check_device(what: str, device_type: Any) -> None:
    if device_type not in _DTYPES:
        raise RuntimeError(f"{what}: expected 'cpu' or 'cuda', got {device_type!r}")


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast can do anything for the device: the CPU's can."""
    return device_type == "cpu"


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype that autocast lowers to: that of the block around, or what set_autocast_dtype set.

    >>> weft.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    _check_device("get_autocast_dtype", device_type)
    return _state.dtypes[device_type]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets the dtype that autocast lowers to in this thread, as in a block that is on now.

    RuntimeError for devices other than "cpu" and "cuda", and for "cpu" where autocast is on and
    dtype is not bfloat16 or float16.
    """
    _check_device("set_autocast_dtype", device_type)
    if device_type == "cpu" and is_autocast_enabled("cpu"):
        _lower_to(dtype)
    _state.dtypes[device_type] = dtype


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast on or off for a device in this thread; `set_autocast_enabled(on)` for "cuda".

    What libraries use to restore a state; programs write `with weft.autocast("cpu")`. For "cuda" it
    is noted without effect.

    >>> weft.set_autocast_enabled("cpu", True)
    >>> (weft.ones(2, 2) @ weft.ones(2, 2)).dtype
    torch.bfloat16
    >>> weft.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type  # type: ignore[assignment]
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_enabled: expected enabled as a bool, got {enabled!r}")
    _check_device("set_autocast_enabled", device_type)
    if device_type == "cuda":
        _state.is_cuda_enabled = enabled
    else:
        _lower_to(_state.dtypes["cpu"] if enabled else None)


def _lower_to(dtype: Any) -> int:
    """Lowers to a dtype from now on, or to none (None). The number restores what was before."""
    if dtype not in (None, _C.bfloat16, _C.float16):
        raise RuntimeError(f"autocast: expected dtype bfloat16 or float16, got {dtype}")
    before: int = _autograd._set_autocast(dtype)
    return before


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for the device in this thread.

    >>> with weft.autocast("cpu"):
    ...     weft.is_autocast_enabled("cpu")
    True
    """
    if device_type == "cpu":
        return _autograd._autocast_dtype() is not None
    return device_type == "cuda" and _state.is_cuda_enabled


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu"), under its older name."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """get_autocast_dtype("cpu"), under its older name."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """get_autocast_dtype("cuda"), under its older name."""
    return get_autocast_dtype("cuda")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled), under its older name."""
    set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """set_autocast_dtype("cpu", dtype), under its older name."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """set_autocast_dtype("cuda", dtype), under its older name."""
    set_autocast_dtype("cuda", dtype)


def autocast_increment_nesting() -> int:
    """Notes one more block of autocast, that a library opens by hand; how many there are."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Notes that such a block ends; how many there still are."""
    _state.nesting -= 1
    return _state.nesting


def is_autocast_cache_enabled() -> bool:
    """What set_autocast_cache_enabled set, True before."""
    return _state.is_cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Kept without effect: autocast keeps no converted tensors."""
    _state.is_cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Nothing: autocast keeps no converted tensors."""


class autocast:
    """Runs a block, or as a decorator a function, in mixed precision.

    device_type: "cpu"; for "cuda", which there is none of, it warns and stays off. dtype: bfloat16
    (default) or float16. enabled=False turns autocast off for the block. cache_enabled: has no
    effect, nothing is kept of the converted tensors. Gradients have the dtype of what they are of.

    >>> x = weft.ones(2, 2)
    >>> with weft.autocast("cpu"):
    ...     y = x @ x
    >>> y.dtype, (x @ x).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: expected device_type as a str, got {type(device_type).__name__}"
            )
        if device_type not in _DTYPES:
            raise RuntimeError(
                f"autocast: expected device_type 'cpu' or 'cuda', got {device_type!r}"
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and device_type == "cuda":
            warnings.warn(
                "autocast: expected a GPU for device_type 'cuda', got none; it stays off",
                stacklevel=2,
            )
            enabled = False
        if enabled and self.fast_dtype not in (_C.bfloat16, _C.float16):
            warnings.warn(
                f"autocast: expected dtype bfloat16 or float16, got {self.fast_dtype}; stays off",
                stacklevel=2,
            )
            enabled = False
        self.enabled = enabled
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> autocast:
        if self.device == "cpu":
            before = _autograd._set_autocast(self.fast_dtype if self.enabled else None)
            self._before.append((before, _state.dtypes["cpu"]))
            _state.dtypes["cpu"] = self.fast_dtype
        return self

    def __exit__(self, *exception: object) -> None:
        if self.device == "cpu":
            before, _state.dtypes["cpu"] = self._before.pop()
            _autograd._restore_autocast(before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def cast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        cast._weft_mode = self  # type: ignore[attr-defined]  # for programs, as of grad modes
        return cast


class CudaAutocast(autocast):
    """autocast("cuda"), as weft.cuda.amp.autocast."""

    def __init__(
        self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(
    fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorates forward of a Function that decides on its own precision.

    cast_inputs: under autocast, forward runs without it and gets its floating arguments in this
    dtype; None: it runs under the autocast that is on. See custom_bwd.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        enabled = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        ctx._autocast_dtype = _autograd._autocast_dtype() if enabled else None
        if not enabled or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            args = tuple(_cast(value, cast_inputs) for value in args)
            return fwd(ctx, *args, **{name: _cast(v, cast_inputs) for name, v in kwargs.items()})

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Callable[..., Any]:
    """Decorates backward of a Function whose forward has custom_fwd: it runs as forward did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any) -> Any:
        with autocast("cpu", dtype=ctx._autocast_dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args)

    return backward


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, Tensor):
        floating = value.is_floating_point() and value.dtype != _C.float64
        return value.to(dtype) if floating else value
    if isinstance(value, dict):
        return {_cast(key, dtype): _cast(item, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, dtype) for item in value)
    return value
