"""Flatten and Unflatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft._C import Tensor
from weft.nn.modules._layer import _Layer


class Flatten(_Layer):
    """Merges the dimensions start_dim to end_dim; by default all but the batch.

    A view where the layout allows, otherwise a copy. Raises IndexError for dimensions that are not
    there. Any dtype.

    >>> weft.nn.Flatten()(weft.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    _repr_names = ("start_dim", "end_dim")

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(_Layer):
    """Splits dimension `dim` into the sizes unflattened_size.

    One size may be -1. Raises RuntimeError for sizes whose product is another. Any dtype.

    >>> weft.nn.Unflatten(1, (2, -1))(weft.ones(3, 6)).shape
    torch.Size([3, 2, 3])
    """

    _repr_names = ("dim", "unflattened_size")

    dim: int
    unflattened_size: Sequence[int]

    def _keep(self, given: dict[str, Any]) -> None:
        given["unflattened_size"] = tuple(given["unflattened_size"])
        super()._keep(given)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)
