"""Convolutions over one to three dimensions, and transposed ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


def _each(value: Any, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


class _ConvNd(Module):
    """What convolutions share: arguments, parameters, initialisation and repr."""

    _computed_attributes = ("transposed",)
    _dims: int
    _function: ClassVar[Callable[..., Tensor]]
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...],
        stride: tuple[int, ...], padding: Any, dilation: tuple[int, ...], transposed: bool,
        output_padding: tuple[int, ...], groups: int, bias: bool, padding_mode: str,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: expected groups that divide both channel counts, got {groups} for "
                f"{in_channels} and {out_channels}"
            )
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"{name}: expected padding_mode 'zeros', 'reflect', 'replicate' or 'circular', "
                f"got {padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        if transposed != self.transposed:
            self.transposed = transposed
        self.kernel_size, self.stride, self.dilation = kernel_size, stride, dilation
        self.padding = padding
        self._reversed_padding_repeated_twice = self._sides()
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self.weight = Parameter(_C.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def _sides(self) -> tuple[int, ...]:
        """The padding before and behind each dimension, the last dimension first, as F.pad has it.

        Where that of "same" is odd, there is one more behind.
        """
        if not isinstance(self.padding, str):
            return tuple(n for n in self.padding[::-1] for _ in range(2))
        if self.padding == "valid":
            return (0, 0) * len(self.kernel_size)
        if self.padding != "same" or any(s != 1 for s in self.stride):
            raise ValueError(
                f"{type(self).__name__}: expected padding as numbers, 'valid', or 'same' with "
                f"stride 1, got {self.padding!r} with stride {self.stride}"
            )
        total = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation)]
        return tuple(n for t in total[::-1] for n in (t // 2, t - t // 2))

    def _padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input with what padding_mode puts around it, and the zeros still to add."""
        if self.padding_mode == "zeros":
            return input, self.padding
        return F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), 0

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, padding = self._padded(input)
        return self._function(x, weight, bias, self.stride, padding, self.dilation, self.groups)

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        if any(n != 0 for n in self.padding):
            parts.append(f"padding={self.padding}")
        if any(d != 1 for d in self.dilation):
            parts.append(f"dilation={self.dilation}")
        if any(output_padding := getattr(self, "output_padding", ())):
            parts.append(f"output_padding={output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """A convolution that is not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        dims = self._dims
        padding = padding if isinstance(padding, str) else _each(padding, dims)
        super().__init__(
            in_channels, out_channels, _each(kernel_size, dims), _each(stride, dims), padding,
            _each(dilation, dims), False, (0,) * dims, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip


class Conv1d(_Conv):
    """Convolution (cross-correlation) of [n, in_channels, l]: [n, out_channels, l_out].

    The arguments are those of Conv2d, for one dimension; so are the errors. The dtype is that of
    the parameters.

    >>> weft.nn.Conv1d(3, 4, 5, padding="same")(weft.ones(2, 3, 10)).shape
    torch.Size([2, 4, 10])
    """

    _dims, _function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution (cross-correlation) of [n, in_channels, h, w]: [n, out_channels, h', w'].

    h' = (h + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1, and w' alike; sizes are
    numbers, or one for each dimension. padding may be "valid" or "same"; padding_mode says what is
    put there: "zeros", "reflect", "replicate" or "circular". Without n there is one dimension less.
    Raises ValueError for groups that do not divide the channels and for another padding_mode,
    RuntimeError for inputs that do not fit. The dtype is that of the parameters.

    >>> weft.nn.Conv2d(3, 4, 3, stride=2, padding=1)(weft.ones(2, 3, 8, 8)).shape
    torch.Size([2, 4, 4, 4])
    """

    _dims, _function = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution of [n, in_channels, d, h, w]: [n, out_channels, d', h', w'].

    The arguments are those of Conv2d, for three dimensions; so are the errors. The dtype is that of
    the parameters.

    >>> weft.nn.Conv3d(1, 2, 2)(weft.ones(1, 1, 4, 4, 4)).shape
    torch.Size([1, 2, 3, 3, 3])
    """

    _dims, _function = 3, staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
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
        dims = self._dims
        super().__init__(
            in_channels, out_channels, _each(kernel_size, dims), _each(stride, dims),
            _each(padding, dims), _each(dilation, dims), True, _each(output_padding, dims), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(
        self, input: Tensor, output_size: list[int] | None, stride: list[int], padding: list[int],
        kernel_size: list[int], num_spatial_dims: int, dilation: list[int],
    ) -> list[int]:  # fmt: skip
        """The padding that gives output_size, among those that the stride leaves open. Subclasses
        with weights of their own call it."""
        if output_size is None:
            return list(self.output_padding)
        wanted = output_size[-num_spatial_dims:]
        smallest: list[int] = []
        for i in range(num_spatial_dims):
            size = input.size(i - num_spatial_dims)
            reach = dilation[i] * (kernel_size[i] - 1)
            smallest.append((size - 1) * stride[i] - 2 * padding[i] + reach + 1)
        extra = [w - s for w, s in zip(wanted, smallest)]
        for i in range(num_spatial_dims):
            if not 0 <= extra[i] < stride[i]:
                raise ValueError(
                    f"ConvTranspose{num_spatial_dims}d: expected output_size from {smallest} to "
                    f"less than a stride more, got {wanted}"
                )
        return extra

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The result; output_size picks among the sizes that the stride leaves open."""
        extra = self._output_padding(
            input, output_size, list(self.stride), list(self.padding), list(self.kernel_size),
            self._dims, list(self.dilation),
        )  # fmt: skip
        return self._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip


_ConvTransposeMixin = _ConvTransposeNd  # as libraries of OpenMMLab know it


class ConvTranspose1d(_ConvTransposeNd):
    """What the gradient of Conv1d does: [n, in_channels, l] grows by the stride.

    The arguments are those of ConvTranspose2d, for one dimension; so are the errors. The dtype is
    that of the parameters.

    >>> weft.nn.ConvTranspose1d(3, 4, 2, stride=2)(weft.ones(1, 3, 5)).shape
    torch.Size([1, 4, 10])
    """

    _dims, _function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """What the gradient of Conv2d does: [n, in_channels, h, w] grows by the stride.

    Gives [n, out_channels, h', w'] with h' = (h - 1) * stride - 2 * padding + dilation *
    (kernel_size - 1) + output_padding + 1, and w' alike; `output_size` of the call chooses
    output_padding. Raises ValueError for groups that do not divide the channels and for another
    padding_mode than "zeros", RuntimeError for inputs that do not fit. The dtype is that of the
    parameters.

    >>> weft.nn.ConvTranspose2d(3, 4, 2, stride=2)(weft.ones(1, 3, 5, 5)).shape
    torch.Size([1, 4, 10, 10])
    """

    _dims, _function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """What the gradient of Conv3d does: [n, in_channels, d, h, w] grows by the stride.

    The arguments are those of ConvTranspose2d, for three dimensions; so are the errors. The dtype
    is that of the parameters.

    >>> weft.nn.ConvTranspose3d(3, 4, 2, stride=2)(weft.ones(1, 3, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4, 4])
    """

    _dims, _function = 3, staticmethod(F.conv_transpose3d)
