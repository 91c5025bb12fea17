"""Variable: what tensors were before they had gradients of their own."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(data)` is a tensor over the memory of data; every tensor is an instance.

    >>> Variable(weft.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: expected a Tensor, got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
