"""Flatten and Unflatten."""

from __future__ import annotations

from collections.abc import Sequence

from weft._C import Tensor
from weft.nn.modules.module import Module


class Flatten(Module):
    """Merges the dimensions start_dim to end_dim; by default all but the batch.

    A view where the layout allows, otherwise a copy. Raises IndexError for dimensions that are not
    there.

    >>> weft.nn.Flatten()(weft.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    _repr_names = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Splits dimension `dim` into the sizes unflattened_size.

    One size may be -1. Raises RuntimeError for sizes whose product is another.

    >>> weft.nn.Unflatten(1, (2, -1))(weft.ones(3, 6)).shape
    torch.Size([3, 2, 3])
    """

    _repr_names = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)
