"""Dropout."""

from __future__ import annotations

from weft import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class Dropout(Module):
    """Zeroes elements with probability p in training; the identity otherwise."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: expected p between 0 and 1, got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
