"""Parameters as one flat vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from weft import _C
from weft._C import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other, as a 1-d tensor.

    >>> weft.nn.utils.parameters_to_vector([weft.ones(2), weft.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    return _C.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Sets each parameter's data to its part of `vec`; the total length must be equal.

    Raises ValueError for another length.

    >>> p = weft.zeros(2, requires_grad=True)
    >>> weft.nn.utils.vector_to_parameters(weft.tensor([1.0, 2.0]), [p])
    >>> p.detach()
    tensor([1., 2.])
    """
    listed = list(parameters)
    total = sum(parameter.numel() for parameter in listed)
    if total != vec.numel():
        raise ValueError(
            f"vector_to_parameters: expected a vector of {total} elements, got {vec.numel()}"
        )
    start = 0
    for parameter in listed:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view(parameter.shape).data
        start = end
