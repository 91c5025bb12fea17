"""Pooling over two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class _MaxPoolNd(Module):
    """What layers with the maximum of each window have in common."""

    _function: ClassVar[Callable[..., Any]]
    _repr_names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of [n, c, h, w]; the stride is the window unless given.

    Shapes, dtypes and errors are those of weft.nn.functional.max_pool2d.

    >>> weft.nn.MaxPool2d(2)(weft.arange(16).reshape(1, 4, 4))
    tensor([[[ 5,  7],
             [13, 15]]])
    """

    _function = staticmethod(F.max_pool2d)


class _AvgPoolNd(Module):
    """What layers with the mean of each window have in common."""

    _function: ClassVar[Callable[..., Tensor]]
    _repr_names = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of [n, c, h, w]; the stride is the window unless given.

    Shapes, dtypes and errors are those of weft.nn.functional.avg_pool2d.

    >>> weft.nn.AvgPool2d(2)(weft.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    _function = staticmethod(F.avg_pool2d)


class _AdaptiveAvgPool(Module):
    """Holds the size of the result."""

    _function: ClassVar[Callable[..., Any]]
    _repr_names = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Averages [n, c, h, w] to [n, c, *output_size]; None keeps a size.

    Shapes, dtypes and errors are those of weft.nn.functional.adaptive_avg_pool2d.

    >>> weft.nn.AdaptiveAvgPool2d((1, 2))(weft.arange(16.0).reshape(1, 4, 4))
    tensor([[[6.5000, 8.5000]]])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)
