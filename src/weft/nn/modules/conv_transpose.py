"""Transposed convolutions over one to three dimensions."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.conv import _ConvNd, _each


class _ConvTranspose(_ConvNd):
    """What transposed convolutions share."""

    transposed = True

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

    def _extra(self, input: Tensor, output_size: list[int] | None) -> list[int]:
        """The output padding that gives output_size: among those that the stride leaves open."""
        if output_size is None:
            return list(self.output_padding)
        wanted = output_size[-self._dims :]
        smallest: list[int] = []
        for i, stride in enumerate(self.stride):
            size = input.size(i - self._dims)
            reach = self.dilation[i] * (self.kernel_size[i] - 1)
            smallest.append((size - 1) * stride - 2 * self.padding[i] + reach + 1)
        extra = [w - s for w, s in zip(wanted, smallest)]
        for e, stride in zip(extra, self.stride):
            if not 0 <= e < stride:
                raise ValueError(
                    f"ConvTranspose{self._dims}d: expected output_size from {smallest} to less "
                    f"than a stride more, got {wanted}"
                )
        return extra

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The result; output_size picks among the sizes that the stride leaves open."""
        return self._function(
            input, self.weight, self.bias, self.stride, self.padding,
            self._extra(input, output_size), self.groups, self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_ConvTranspose):
    """What the gradient of Conv1d does: [n, in_channels, l] grows by the stride.

    The arguments are those of ConvTranspose2d, for one dimension; so are the errors.

    >>> weft.nn.ConvTranspose1d(3, 4, 2, stride=2)(weft.ones(1, 3, 5)).shape
    torch.Size([1, 4, 10])
    """

    _dims, _function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """What the gradient of Conv2d does: [n, in_channels, h, w] grows by the stride.

    Gives [n, out_channels, h', w'] with h' = (h - 1) * stride - 2 * padding + dilation *
    (kernel_size - 1) + output_padding + 1, and w' alike; `output_size` of the call chooses
    output_padding. Raises ValueError for groups that do not divide the channels and for another
    padding_mode than "zeros", RuntimeError for inputs that do not fit.

    >>> weft.nn.ConvTranspose2d(3, 4, 2, stride=2)(weft.ones(1, 3, 5, 5)).shape
    torch.Size([1, 4, 10, 10])
    """

    _dims, _function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """What the gradient of Conv3d does: [n, in_channels, d, h, w] grows by the stride.

    The arguments are those of ConvTranspose2d, for three dimensions; so are the errors.

    >>> weft.nn.ConvTranspose3d(3, 4, 2, stride=2)(weft.ones(1, 3, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4, 4])
    """

    _dims, _function = 3, staticmethod(F.conv_transpose3d)
