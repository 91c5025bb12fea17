"""Dropout."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules._layer import _Layer


class _DropoutNd(_Layer):
    """What the layers below have in common."""

    _repr_names = ("p", "inplace")
    p: float = 0.5
    inplace: bool = False

    def _keep(self, given: dict[str, Any]) -> None:
        super()._keep(given)
        if not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: expected p between 0 and 1, got {self.p}")

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd, of="dropout"):
    """Zeroes elements with probability p in training; the identity otherwise.

    >>> weft.nn.Dropout().eval()(weft.ones(2))
    tensor([1., 1.])
    """


class Dropout1d(_DropoutNd, of="dropout1d"):
    """Zeroes whole channels of [n, c, l] with probability p in training.

    >>> weft.nn.Dropout1d(1.0)(weft.ones(1, 2, 2))
    tensor([[[0., 0.],
             [0., 0.]]])
    """


class Dropout2d(_DropoutNd, of="dropout2d"):
    """Zeroes whole channels of [n, c, h, w] with probability p in training.

    >>> weft.nn.Dropout2d().eval()(weft.ones(1, 1, 1, 2))
    tensor([[[[1., 1.]]]])
    """


class Dropout3d(_DropoutNd, of="dropout3d"):
    """Zeroes whole channels of [n, c, d, h, w] with probability p in training.

    >>> weft.nn.Dropout3d(1.0)(weft.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """


class AlphaDropout(_DropoutNd, of="alpha_dropout"):
    """Dropout for SELU networks: mean and variance stay as they are.

    >>> weft.nn.AlphaDropout().eval()(weft.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd, of="feature_alpha_dropout"):
    """AlphaDropout of whole channels.

    >>> weft.nn.FeatureAlphaDropout().eval()(weft.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
