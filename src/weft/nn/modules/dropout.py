"""Dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class _DropoutNd(Module):
    """What the layers below have in common."""

    _function: ClassVar[Callable[..., Tensor]]
    _repr_names = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: expected p between 0 and 1, got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd):
    """Zeroes elements with probability p in training; the identity otherwise.

    Shapes, dtypes and errors are those of weft.nn.functional.dropout.

    >>> weft.nn.Dropout().eval()(weft.ones(2))
    tensor([1., 1.])
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of [n, c, l] with probability p in training.

    Shapes, dtypes and errors are those of weft.nn.functional.dropout1d.

    >>> weft.nn.Dropout1d(1.0)(weft.ones(1, 2, 2))
    tensor([[[0., 0.],
             [0., 0.]]])
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of [n, c, h, w] with probability p in training.

    Shapes, dtypes and errors are those of weft.nn.functional.dropout2d.

    >>> weft.nn.Dropout2d().eval()(weft.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of [n, c, d, h, w] with probability p in training.

    Shapes, dtypes and errors are those of weft.nn.functional.dropout3d.

    >>> weft.nn.Dropout3d(1.0)(weft.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout for SELU networks: mean and variance stay as they are.

    Shapes, dtypes and errors are those of weft.nn.functional.alpha_dropout.

    >>> weft.nn.AlphaDropout().eval()(weft.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    Shapes, dtypes and errors are those of weft.nn.functional.feature_alpha_dropout.

    >>> weft.nn.FeatureAlphaDropout().eval()(weft.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
