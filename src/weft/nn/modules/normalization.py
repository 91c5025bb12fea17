"""Normalisations over the last dimensions, groups of channels, and by root mean square."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules._layer import _Layer
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class _Affine(Module):
    """A normalisation that may learn a scale and a shift: weight and bias, or None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_affine(self, shape: Any, weight: bool, bias: bool, **options: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            value = Parameter(_C.empty(shape, **options)) if wanted else None
            self.register_parameter(name, value)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalises over the last dimensions, whose sizes are normalized_shape.

    Shapes, dtypes and errors are those of weft.nn.functional.layer_norm.

    >>> weft.nn.LayerNorm(2)(weft.tensor([1.0, 3.0])).detach()
    tensor([-1.0000,  1.0000])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = (elementwise_affine, elementwise_affine and bias)
        self._make_affine(self.normalized_shape, *affine, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """Normalises each of num_groups groups of the channels of [n, c, *].

    affine: learns a scale and a shift a channel. Raises ValueError for a number of groups that does
    not divide num_channels. The dtype, floating, is that of the parameters.

    >>> weft.nn.GroupNorm(1, 2)(weft.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                "GroupNorm: expected num_groups that divides num_channels, "
                f"got {num_groups} and {num_channels}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, affine and bias, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class CrossMapLRN2d(_Layer):
    """Divides images by the squares of neighbouring channels, as Torch 7 did.

    The result is x / (k + alpha / size * sum of squares) ** beta, of the shape [n, c, h, w] of x;
    the first channel is a neighbour of all.

    ValueError for another number of dims.

    >>> x = weft.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    >>> weft.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(x).flatten()
    tensor([0.1667, 0.1333, 0.2000])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: expected 4 dims, got {tuple(input.shape)}")
        reach = (self.size + 1) // 2
        channels = _C.arange(input.size(1), device=input.device)
        ahead = channels - channels.unsqueeze(1)
        counts = (ahead < reach) & ((ahead > -reach) | (channels == 0))
        sums = _C.matmul(counts.to(input.dtype), (input * input).flatten(2)).view_as(input)
        return input * (self.k + self.alpha / self.size * sums).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class RMSNorm(Module):
    """Divides by the root mean square over the last dimensions, normalized_shape.

    Shapes, dtypes and errors are those of weft.nn.functional.rms_norm.

    >>> weft.nn.RMSNorm(4)(weft.tensor([3.0, 4.0, 0.0, 0.0])).detach()
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        empty = None
        if elementwise_affine:
            empty = Parameter(_C.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", empty)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
