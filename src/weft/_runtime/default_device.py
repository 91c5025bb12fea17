"""`with weft.device(...)`: where tensors are made unless a call says it."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._runtime.torch_function import Function, modes, pop_mode, push_mode, replace_modes

# Functions that make a tensor of no other tensor, and take a device.
_NAMES = (
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided "
    "eye from_file full hamming_window hann_window kaiser_window linspace logspace normal ones "
    "rand randint randn randperm scalar_tensor tensor tril_indices triu_indices zeros"
)
_FACTORIES = frozenset(_NAMES.split())


class DeviceMode:
    """Gives calls of factories the device, unless they have one."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def __torch_function__(
        self,
        func: Function,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The function's result on the device."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        of_tensors = name == "normal" and any(isinstance(a, _C.Tensor) for a in args)
        if name in _FACTORIES and not of_tensors and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


class _Default(DeviceMode):
    """The mode that is asked last: `set_default_device` sets it."""


def set_default(device: Any) -> None:
    """Where factories of this thread make tensors outside of a block; None: on the CPU."""
    others = [mode for mode in modes() if not isinstance(mode, _Default)]
    replace_modes(others if device is None else [_Default(device), *others])


def current_device() -> Any:
    """The device of the innermost block of this thread, or the default outside of one."""
    blocks = (mode.device for mode in reversed(modes()) if isinstance(mode, DeviceMode))
    return next(blocks, _C.device("cpu"))


def _enter(self: Any) -> Any:
    push_mode(DeviceMode(self))
    return self


def _exit(self: Any, *exception: Any) -> None:
    pop_mode()


def install() -> None:
    """Makes devices contexts."""
    setattr(_C.device, "__enter__", _enter)  # noqa: B010
    setattr(_C.device, "__exit__", _exit)  # noqa: B010
