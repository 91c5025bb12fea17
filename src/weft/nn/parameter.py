"""Parameter: the tensor that a Module lists among what it learns."""

from __future__ import annotations

from typing import Any

import weft
from weft import Tensor


class Parameter(Tensor):
    """A tensor that becomes a module's parameter when it is assigned as an attribute.

    `data` is shared, not copied; it may have any shape and dtype (a gradient needs a floating or
    complex one). Operators on a Parameter return plain tensors.

    >>> layer = weft.nn.Module()
    >>> layer.weight = weft.nn.Parameter(weft.ones(2))
    >>> [name for name, _ in layer.named_parameters()]
    ['weight']
    """

    __torch_function__ = weft._C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = weft.empty(0)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data, self.requires_grad)

    def __repr__(self, **options: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**options)


class Buffer(Tensor):
    """A tensor that becomes a module's buffer when it is assigned as an attribute.

    persistent: whether it is in state_dict. `data` is shared.

    >>> module = weft.nn.Module()
    >>> module.scale = weft.nn.Buffer(weft.ones(2))
    >>> list(module.state_dict())
    ['scale']
    """

    persistent: bool
    __torch_function__ = weft._C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = weft.empty(0)
        made: Buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        made.persistent = persistent
        return made

    def __repr__(self, **options: Any) -> str:
        return self.data.__repr__(**options)


def _rebuild(cls: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    return cls(data, requires_grad)


def is_lazy(param: Any) -> bool:
    return False
