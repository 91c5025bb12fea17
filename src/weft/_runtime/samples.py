"""The tensors of all samples behind one that a function under vmap sees."""

from __future__ import annotations

from weft._C import Tensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor of all samples of all vmaps: the one that has elements and a history.

    Of any other tensor it is the tensor itself. Functions that decide by elements ask it where one
    decision serves all samples: Python may read its elements.

    >>> from weft._runtime.samples import whole
    >>> weft.vmap(lambda x: x * int(whole(x).amax()))(weft.tensor([1, 3]))
    tensor([3, 9])
    """
    while (batch := getattr(tensor, "_batch", None)) is not None:
        tensor = batch[1]
    return tensor
