"""Variable: what tensors were before they had gradients of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor


class ImperativeEngine:
    """What runs backward, under PyTorch's name."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Runs the function, without arguments, when the backward under way has computed all
        gradients. RuntimeError outside of backward.

        >>> x = weft.ones(1, requires_grad=True)
        >>> def hook(grad):
        ...     Variable._execution_engine.queue_callback(lambda: print(x.grad))
        >>> handle = x.register_hook(hook)
        >>> (2 * x).backward()
        tensor([2.])
        """
        _C._autograd.call_at_end(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(data)` is a tensor over the memory of data; every tensor is an instance.

    >>> Variable(weft.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: expected a Tensor, got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
