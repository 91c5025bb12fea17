"""Instance normalisation."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    """Normalises each channel of each sample; by default no weight, bias or running statistics."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.dim() == min(self._input_dims)
        x = input.unsqueeze(0) if alone else input
        result = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [n, c, l] or [c, l].

    affine: learns a scale and a shift a channel; track_running_stats: keeps statistics, by which it
    normalises outside of training. Raises ValueError for other numbers of dimensions. Floating
    dtypes.

    >>> weft.nn.InstanceNorm1d(1)(weft.tensor([[1.0, 3.0]]))
    tensor([[-1.0000,  1.0000]])
    """

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [n, c, h, w] or [c, h, w].

    Arguments and errors are those of InstanceNorm1d. Floating dtypes.

    >>> weft.nn.InstanceNorm2d(1)(weft.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [n, c, d, h, w] or [c, d, h, w].

    Arguments and errors are those of InstanceNorm1d. Floating dtypes.

    >>> weft.nn.InstanceNorm3d(1)(weft.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[-1.0000,  1.0000]]]])
    """

    _input_dims = (4, 5)
