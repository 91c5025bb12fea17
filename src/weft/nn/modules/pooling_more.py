"""Pooling over one and three dimensions, by norms, to given sizes, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module
from weft.nn.modules.pooling import _AdaptiveAvgPool, _AvgPoolNd, _MaxPoolNd


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of [n, c, l]; the stride is the window unless given.

    Shapes, dtypes and errors are those of weft.nn.functional.max_pool1d.

    >>> weft.nn.MaxPool1d(2)(weft.tensor([[1, 3, 2, 0]]))
    tensor([[3, 2]])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of [n, c, d, h, w]; the stride is the window unless given.

    Shapes, dtypes and errors are those of weft.nn.functional.max_pool3d.

    >>> weft.nn.MaxPool3d(2)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _function = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """The mean of each window of [n, c, l]; the stride is the window unless given.

    Shapes, dtypes and errors are those of weft.nn.functional.avg_pool1d.

    >>> weft.nn.AvgPool1d(2)(weft.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    _repr_names = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        single = [(v,) if isinstance(v, int) else v for v in (kernel_size, stride, padding)]
        self.kernel_size = single[0]
        self.stride = single[0] if stride is None else single[1]
        self.padding = single[2]
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of [n, c, d, h, w]; the stride is the window unless given.

    Shapes, dtypes and errors are those of weft.nn.functional.avg_pool3d.

    >>> weft.nn.AvgPool3d(2)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    """Holds the order of the norm and the windows."""

    _function: ClassVar[Callable[..., Tensor]]
    _repr_names = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPool):
    """The p-norm of each window of [n, c, l].

    Shapes, dtypes and errors are those of weft.nn.functional.lp_pool1d.

    >>> weft.nn.LPPool1d(2, 2)(weft.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window of [n, c, h, w].

    Shapes, dtypes and errors are those of weft.nn.functional.lp_pool2d.

    >>> weft.nn.LPPool2d(2, (1, 2))(weft.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window of [n, c, d, h, w].

    Shapes, dtypes and errors are those of weft.nn.functional.lp_pool3d.

    >>> weft.nn.LPPool3d(2, (1, 2, 2))(weft.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """

    _function = staticmethod(F.lp_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Averages [n, c, l] to [n, c, output_size].

    Shapes, dtypes and errors are those of weft.nn.functional.adaptive_avg_pool1d.

    >>> weft.nn.AdaptiveAvgPool1d(2)(weft.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Averages [n, c, d, h, w] to [n, c, *output_size]; None keeps a size.

    Shapes, dtypes and errors are those of weft.nn.functional.adaptive_avg_pool3d.

    >>> weft.nn.AdaptiveAvgPool3d((2, 1, None))(weft.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 1, 4])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_AdaptiveAvgPool):
    """Holds the size of the result, and whether places are wanted."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The greatest entries of [n, c, l], as [n, c, output_size].

    Shapes, dtypes and errors are those of weft.nn.functional.adaptive_max_pool1d.

    >>> weft.nn.AdaptiveMaxPool1d(2)(weft.tensor([[1, 3, 2, 0]]))
    tensor([[3, 2]])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The greatest entries of [n, c, h, w], as [n, c, *output_size]; None keeps a size.

    Shapes, dtypes and errors are those of weft.nn.functional.adaptive_max_pool2d.

    >>> weft.nn.AdaptiveMaxPool2d((None, 1))(weft.arange(8).reshape(1, 2, 4))
    tensor([[[3],
             [7]]])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The greatest entries of [n, c, d, h, w], as [n, c, *output_size]; None keeps a size.

    Shapes, dtypes and errors are those of weft.nn.functional.adaptive_max_pool3d.

    >>> weft.nn.AdaptiveMaxPool3d(1)(weft.arange(8).reshape(1, 2, 2, 2))
    tensor([[[[7]]]])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class _MaxUnpool(Module):
    """Holds the windows that were pooled over."""

    _dims: int
    _function: ClassVar[Callable[..., Tensor]]
    _repr_names = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        each = [
            (v,) * self._dims if isinstance(v, int) else v for v in (kernel_size, stride, padding)
        ]
        self.kernel_size = each[0]
        self.stride = each[0] if stride is None else each[1]
        self.padding = each[2]

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return self._function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpool):
    """What MaxPool1d took [n, c, l] from, with zeros elsewhere.

    Shapes, dtypes and errors are those of weft.nn.functional.max_unpool1d.

    >>> weft.nn.MaxUnpool1d(2)(weft.tensor([[3, 2]]), weft.tensor([[1, 2]]))
    tensor([[0, 3, 2, 0]])
    """

    _dims, _function = 1, staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """What MaxPool2d took [n, c, h, w] from, with zeros elsewhere.

    Shapes, dtypes and errors are those of weft.nn.functional.max_unpool2d.

    >>> weft.nn.MaxUnpool2d(2)(weft.tensor([[[7.0]]]), weft.tensor([[[3]]]))
    tensor([[[0., 0.],
             [0., 7.]]])
    """

    _dims, _function = 2, staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """What MaxPool3d took [n, c, d, h, w] from, with zeros elsewhere.

    Shapes, dtypes and errors are those of weft.nn.functional.max_unpool3d.

    >>> weft.nn.MaxUnpool3d((1, 2, 2))(weft.ones(1, 1, 1, 1), weft.tensor([[[[3]]]]))
    tensor([[[[0., 0.],
              [0., 1.]]]])
    """

    _dims, _function = 3, staticmethod(F.max_unpool3d)
