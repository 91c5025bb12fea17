"""Gradient clipping."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in listed if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of `tensors` taken together, as a 0-d tensor.

    `foreach` is accepted and has no effect. Raises RuntimeError for a norm that is not finite, with
    error_if_nonfinite, and for a tensor without elements where the order is negative or inf.

    >>> weft.nn.utils.get_total_norm([weft.tensor([3.0]), weft.tensor([4.0])])
    tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return _C.tensor(0.0)
    norm_type = float(norm_type)
    norms = _C.stack([_vector_norm(tensor, norm_type) for tensor in listed])
    total = _vector_norm(norms, norm_type)
    if error_if_nonfinite and not bool(_C.isfinite(total)):
        raise RuntimeError(
            f"clip_grad_norm_: expected a finite total norm of order {norm_type}, "
            f"got {total.item()}"
        )
    return total


def _vector_norm(tensor: Tensor, order: float) -> Tensor:
    if tensor.numel() == 0 and (order < 0 or order == float("inf")):
        raise RuntimeError(
            f"clip_grad_norm_: expected gradients with elements for the norm of order {order}, "
            f"got shape {tuple(tensor.shape)}"
        )
    if order == float("inf"):
        return tensor.abs().max()
    return tensor.norm(order)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients in place so that their common norm is at most max_norm.

    Returns the norm they had. `foreach` is accepted and has no effect.

    Parameters without a gradient are passed over. Raises RuntimeError for a norm that is not
    finite, with error_if_nonfinite.

    >>> p = weft.ones(2, requires_grad=True)
    >>> p.grad = weft.tensor([3.0, 4.0])
    >>> weft.nn.utils.clip_grad_norm_([p], 2.5)
    tensor(5.)
    >>> p.grad
    tensor([1.5000, 2.0000])
    """
    with no_grad():
        grads = _gradients(parameters)
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        _scale(grads, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of clip_grad_norm_; a FutureWarning says so.

    >>> weft.nn.utils.clip_grad_norm([weft.ones(2, requires_grad=True)], 1.0)  # doctest: +SKIP
    tensor(0.)
    """
    warnings.warn(
        "clip_grad_norm is deprecated, use clip_grad_norm_", category=FutureWarning, stacklevel=2
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales all gradients in place by max_norm / total_norm where that is below 1.

    `foreach` is accepted and has no effect.

    >>> p = weft.ones(2, requires_grad=True)
    >>> p.grad = weft.tensor([3.0, 4.0])
    >>> weft.nn.utils.clip_grads_with_norm_([p], 2.5, weft.tensor(5.0))
    >>> p.grad
    tensor([1.5000, 2.0000])
    """
    with no_grad():
        _scale(_gradients(parameters), max_norm, total_norm)


def _scale(grads: list[Tensor], max_norm: float, total: Tensor) -> None:
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps every element of every gradient to [-clip_value, clip_value] in place.

    `foreach` is accepted and has no effect.

    >>> p = weft.ones(2, requires_grad=True)
    >>> p.grad = weft.tensor([3.0, -4.0])
    >>> weft.nn.utils.clip_grad_value_([p], 3.5)
    >>> p.grad
    tensor([ 3.0000, -3.5000])
    """
    bound = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-bound, bound)
