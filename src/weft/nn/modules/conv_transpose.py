"""Transposed convolutions over one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import Tensor
from weft.nn import functional as F
from weft.nn.modules.conv import _ConvNd, _each


class _ConvTranspose(_ConvNd):
    """What transposed convolutions share."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if isinstance(padding, str):
            raise ValueError(f"{type(self).__name__}: expected padding as numbers, got {padding!r}")
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: expected padding_mode 'zeros', got {padding_mode!r}"
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip
        self.output_padding = _each(output_padding, self._dims)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The result; output_size picks among the sizes that the stride leaves open."""
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        transpose = getattr(F, f"conv_transpose{self._dims}d")
        return transpose(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _extra(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives output_size."""
        wanted = tuple(output_size)[-self._dims :]
        geometry = zip(self.stride, self.padding, self.kernel_size, self.dilation)
        smallest = [
            (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
            for size, (stride, padding, kernel, dilation) in zip(
                input.shape[-self._dims :], geometry
            )
        ]
        extra = tuple(w - s for w, s in zip(wanted, smallest))
        if any(not 0 <= e < stride for e, stride in zip(extra, self.stride)):
            raise ValueError(
                f"{type(self).__name__}: expected output_size from {smallest} to less than a "
                f"stride more, got {wanted}"
            )
        return extra


class ConvTranspose1d(_ConvTranspose):
    """What the gradient of Conv1d does: [n, in_channels, l] grows by the stride."""

    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    """What the gradient of Conv2d does: [n, in_channels, h, w] grows by the stride."""

    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    """What the gradient of Conv3d does: [n, in_channels, d, h, w] grows by the stride."""

    _dims = 3
