"""Module: the base class of every layer and model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from weft import _C, __future__
from weft._C import Tensor
from weft._runtime.public import weft
from weft.autograd.grad_mode import no_grad
from weft.nn.modules._hooks import (
    Hookable,
    hook_kinds,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from weft.nn.modules._layout import own_layout
from weft.nn.modules._registry import (
    BUFFER,
    MODULE,
    PARAMETER,
    VIEWS,
    _registration_hooks,
    hold_views,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from weft.nn.modules._state import Stateful, _IncompatibleKeys
from weft.nn.parameter import Parameter

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")

# Hooks of all modules by the names under which libraries read them.
_global_parameter_registration_hooks = _registration_hooks[PARAMETER]
_global_buffer_registration_hooks = _registration_hooks[BUFFER]
_global_module_registration_hooks = _registration_hooks[MODULE]

# What a module keeps in its `__dict__` besides its members and plain attributes.
INTERNAL: frozenset[str] = frozenset((
    "_kinds", "_non_persistent_buffers_set", "_hooked", "_is_full_backward_hook", *VIEWS,
    *hook_kinds(Hookable), *hook_kinds(Stateful),
))  # fmt: skip


class Module(Stateful, Hookable):
    """Base of all layers: holds parameters, buffers and child modules, and computes in forward.

    Assigning a Parameter or a Module as an attribute registers it. Calling the module calls
    `forward` with the same arguments, and the hooks around it.

    >>> class Scale(weft.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = weft.nn.Parameter(weft.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(weft.tensor([1.0, 3.0])).tolist()
    [2.0, 6.0]
    """

    _repr_names: tuple[str, ...] = ()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; each subclass defines its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes the attributes that a pickle of weft or of PyTorch has."""
        self.__dict__.update(own_layout(self, state))
        hold_views(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs) if kwargs else self.forward(*args)

    _call_impl = _wrapped_call_impl = __call__

    # Modes ------------------------------------------------------------------------------------

    def train(self: T, mode: bool = True) -> T:
        """Sets training mode (dropout, batch norm) here and below; returns self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: expected a bool, got {type(mode).__name__}")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: T) -> T:
        """The same as train(False)."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets requires_grad of every parameter; returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or (set_to_none=False) fills them with zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach().zero_()

    # Conversion -------------------------------------------------------------------------------

    def apply(self: T, fn: Callable[[Module], Any]) -> T:
        """Calls `fn` on every module below and then on this one; returns self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replaces each parameter's data (and gradient) and each buffer by `fn` of it."""
        for child in self.children() if recurse else ():
            child._apply(fn)
        with no_grad():
            for name, parameter in self._own(PARAMETER):
                if parameter is None:
                    continue
                grad = parameter.grad
                if __future__.get_overwrite_module_params_on_conversion():
                    parameter = Parameter(fn(parameter), parameter.requires_grad)
                    self.__dict__[name] = parameter
                else:
                    parameter.grad = None  # its dtype must follow that of the data
                    parameter.data = fn(parameter)
                if grad is not None:
                    parameter.grad = fn(grad).requires_grad_(grad.requires_grad)
            for name, buffer in self._own(BUFFER):
                if buffer is not None:
                    self.__dict__[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves to a device, or converts the floating-point members to a dtype; returns self.

        to(device, dtype), to(dtype) and to(tensor) are understood, as is non_blocking (ignored).
        memory_format is for members of 4 and 5 dims.
        """
        memory_format = kwargs.pop("memory_format", None)
        device, dtype = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"Module.to: expected a floating point or complex dtype, got {dtype}")
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors as "
                "parameters or buffers.",
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            layout = memory_format if memory_format and tensor.dim() in (4, 5) else None
            if wanted is None and device is None and layout is None:
                return tensor
            place = device or tensor.device
            if tensor.is_meta and place.type != "meta":
                raise NotImplementedError(
                    f"Module.to: expected a module that has elements, got one on meta; no data! "
                    f"Use to_empty(device='{place}') or load_state_dict(..., assign=True)"
                )
            return tensor.to(place, wanted or tensor.dtype, memory_format=layout)

        return self._apply(convert)

    def share_memory(self: T) -> T:
        """Moves parameters, their gradients and buffers to shared memory; returns self."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def type(self: T, dst_type: Any) -> T:
        """Converts all parameters and buffers as Tensor.type does; returns self."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: T) -> T:
        """Converts the floating-point members to float32; returns self."""
        return self._apply(_to_dtype(_C.float32))

    def double(self: T) -> T:
        """Converts the floating-point members to float64; returns self."""
        return self._apply(_to_dtype(_C.float64))

    def half(self: T) -> T:
        """Converts the floating-point members to float16; returns self."""
        return self._apply(_to_dtype(_C.float16))

    def bfloat16(self: T) -> T:
        """Converts the floating-point members to bfloat16; returns self."""
        return self._apply(_to_dtype(_C.bfloat16))

    def cpu(self: T) -> T:
        """Moves everything to the CPU; returns self."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self: T, device: Any = None) -> T:
        """Moves everything to a CUDA device; returns self. Raises where there is none."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """New memory on the device for all parameters and buffers, not filled; returns self."""
        return self._apply(lambda tensor: _C.empty_like(tensor, device=device), recurse)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Lets calls of this module run compiled; the arguments are those of weft.compile.

        >>> layer = weft.nn.Linear(2, 1)
        >>> layer.compile()
        >>> layer(weft.zeros(3, 2)).shape
        torch.Size([3, 1])
        """
        made = weft.compile(self, *args, **kwargs)
        if made is not self:  # compile gives the module back where it is disabled
            object.__setattr__(self, "forward", made._run)

    # Printing ---------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """What stands between the brackets of repr; subclasses override it or name attributes."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._repr_names)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(child), 2)}" for name, child in self._own(MODULE)]
        if len(lines) <= 1 and not children:
            return f"{self._get_name()}({extra})"
        body = "".join(f"\n  {line}" for line in lines + children)
        return f"{self._get_name()}({body}\n)"


def _addindent(s_: str, numSpaces: int) -> str:
    """The lines behind the first, further in."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _to_dtype(dtype: _C.dtype) -> Callable[[Tensor], Tensor]:
    """Converts tensors of real floating-point numbers."""
    return lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The device and the dtype (None: as it is) that the arguments of Module.to ask for."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    if "tensor" in kwargs:
        args = (kwargs.pop("tensor"), *args)
    kwargs.pop("non_blocking", None)
    if kwargs:
        raise TypeError(f"Module.to: expected device or dtype, got {sorted(kwargs)}")
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, _C.dtype):
            dtype = value
        elif isinstance(value, str | int | _C.device) and not isinstance(value, bool):
            device = value
        elif value is not None and not isinstance(value, bool):
            raise TypeError(f"Module.to: expected device or dtype, got {type(value).__name__}")
    return (_C.device(device) if device is not None else None), dtype
