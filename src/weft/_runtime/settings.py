"""Process-wide settings that programs make for reproducibility and speed, and how they answer here.

The operators of this build are deterministic and compute float32 in float32, so these settings are
kept and given back, and change nothing but the contents of new memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._runtime.default_device import current_device, set_default
from weft._runtime.torch_function import overridable

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


class OutOfMemoryError(RuntimeError):
    """The memory of a device is used up. The CPU's raises RuntimeError itself."""


class _State:
    precision = "highest"
    deterministic = False
    fills_memory = True
    warn_only = False
    warn_always = False
    interop_threads: int | None = None


def set_float32_matmul_precision(precision: str) -> None:
    """Allows less exact products of float32: "highest", "high" or "medium".

    All of them give products of full precision here.

    >>> weft.set_float32_matmul_precision("high")
    >>> weft.get_float32_matmul_precision()
    'high'
    >>> weft.set_float32_matmul_precision("highest")
    """
    if precision not in _PRECISIONS:
        warnings.warn(
            f"set_float32_matmul_precision: expected 'highest', 'high' or 'medium', "
            f"got {precision!r}; nothing is changed",
            stacklevel=2,
        )
        return
    _State.precision = precision


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision set."""
    return _State.precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for operators that give the same result every time, as all of them do.

    Tensors whose contents are undefined (weft.empty) are filled with NaN, or the largest of other
    numbers, then; see weft.utils.deterministic.

    >>> weft.use_deterministic_algorithms(True)
    >>> weft.are_deterministic_algorithms_enabled()
    True
    >>> weft.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(
            f"use_deterministic_algorithms: expected mode of type bool, got {type(mode).__name__}"
        )
    _State.deterministic, _State.warn_only = mode, bool(warn_only)
    _C._set_fills_unset_memory(fills_memory())


def fills_memory() -> bool:
    """Whether new memory is filled where its contents are undefined."""
    return _State.deterministic and _State.fills_memory


def get_fill_memory() -> bool:
    """What set_fill_memory set."""
    return _State.fills_memory


def set_fill_memory(mode: bool) -> None:
    """Whether deterministic algorithms fill new memory."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"fill_uninitialized_memory: expected a bool, got {type(mode).__name__}")
    _State.fills_memory = mode
    _C._set_fills_unset_memory(fills_memory())


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms set."""
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The `warn_only` that use_deterministic_algorithms set."""
    return _State.warn_only


def get_deterministic_debug_mode() -> int:
    """0 (default), 1 (warn) or 2 (error)."""
    if not _State.deterministic:
        return 0
    return 1 if _State.warn_only else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by one word: "default", "warn" or "error", or its number."""
    mode = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            "set_deterministic_debug_mode: expected 'default', 'warn', 'error', 0, 1 or 2, "
            f"got {debug_mode!r}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_default_device() -> Any:
    """Where new tensors are made: the CPU, or the device of the `with` block around.

    >>> weft.get_default_device()
    device(type='cpu')
    """
    return current_device()


def set_default_device(device: Any) -> None:
    """Where this thread makes new tensors from now on: "cpu" (or None) or "meta". RuntimeError for
    any other device.

    >>> weft.set_default_device("meta")
    >>> weft.ones(2, 3)
    tensor(..., device='meta', size=(2, 3))
    >>> weft.set_default_device(None)
    """
    place = _C.device("cpu" if device is None else device)
    if place.type not in ("cpu", "meta"):
        raise RuntimeError(
            f"set_default_device: expected device cpu or meta, got {place.type}; this build has no "
            "other device"
        )
    set_default(None if place.type == "cpu" else place)


def set_warn_always(b: bool, /) -> None:
    """Whether warnings come at each call. Python's filters decide over those of weft; the answer of
    is_warn_always_enabled follows.

    >>> weft.set_warn_always(True)
    >>> weft.is_warn_always_enabled()
    True
    >>> weft.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always: expected a bool, got {type(b).__name__}")
    _State.warn_always = b


def is_warn_always_enabled() -> bool:
    """What set_warn_always set."""
    return _State.warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Asks for numbers below the smallest normal one to become 0. weft keeps them: the answer is
    whether that was wanted.

    >>> weft.set_flush_denormal(False)
    True
    """
    return not mode


def get_num_interop_threads() -> int:
    """The number of threads for operators side by side: the number of cores unless it was set."""
    return os.cpu_count() or 1 if _State.interop_threads is None else _State.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Sets what get_num_interop_threads says; jit.fork takes as many threads as it needs.

    RuntimeError for a number below 1, and at the second call.
    """
    if num < 1 or _State.interop_threads is not None:
        raise RuntimeError(
            f"set_num_interop_threads: expected a number of at least 1, once, got {num}"
        )
    _State.interop_threads = num


# Checks that programs for compilers use in place of `assert`. -------------------------------------


@overridable
def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`, as a function."""
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Any, assert_msg: str = "") -> None:
    """Raises RuntimeError, with the message, unless the only element of a tensor is true."""
    if input.numel() != 1:
        raise RuntimeError(f"_assert_async: expected one element, got {input.numel()}")
    if not bool(input):
        raise RuntimeError(assert_msg or "_assert_async: expected a nonzero value, got zero")


def compiled_with_cxx11_abi() -> bool:
    """True: the C++ library has the newer layout of std::string."""
    return True


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raises RuntimeError with what message() gives unless cond."""
    if not cond:
        text = "_check: expected True, got False" if message is None else str(message())
        raise RuntimeError(text)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raises RuntimeError unless 0 <= i (<= max)."""
    _check(i >= 0 and (max is None or i <= max), message)
