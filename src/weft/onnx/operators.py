"""Functions that models call to be exported well, under PyTorch's names."""

from __future__ import annotations

from weft._C import Tensor
from weft._runtime.public import weft


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of x, as int64. In a trace they are those of each call.

    >>> shape_as_tensor(weft.ones(2, 3))
    tensor([2, 3])
    """
    if not x.dim():
        return weft.zeros(0, dtype=weft.int64)
    return weft.stack([weft.as_tensor(size, dtype=weft.int64) for size in x.shape])


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """x in the sizes that a tensor holds.

    >>> reshape_from_tensor_shape(weft.ones(4), weft.tensor([2, 2])).shape
    torch.Size([2, 2])
    """
    return x.reshape([int(each) for each in shape])
