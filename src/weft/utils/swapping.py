"""swap_tensors: what two tensors are, exchanged in place."""

from __future__ import annotations

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges elements, gradients, attributes and classes of two tensors, which stay themselves:
    who holds the one sees from now on what was the other.

    RuntimeError for a tensor with a history.

    >>> a, b = weft.ones(1), weft.zeros(2)
    >>> weft.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([0., 0.]), tensor([1.]))
    """
    for tensor in (t1, t2):
        if not tensor.is_leaf:
            raise RuntimeError("swap_tensors: expected leaf tensors, got one with a history")
    first, second = _parts(t1), _parts(t2)
    for tensor, (kind, data, asks, grad, attributes) in ((t1, second), (t2, first)):
        tensor.__class__ = kind
        tensor.grad = None
        tensor.requires_grad_(False)
        tensor.data = data
        tensor.requires_grad_(asks)
        tensor.grad = grad
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)


def _parts(tensor: Tensor) -> tuple[type, Tensor, bool, Tensor | None, dict[str, object]]:
    with no_grad():
        data = tensor.detach()
    return type(tensor), data, tensor.requires_grad, tensor.grad, dict(tensor.__dict__)
