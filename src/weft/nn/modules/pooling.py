"""Pooling over one to three dimensions, by norms, to given sizes, at drawn places, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules._layer import _Layer, _UnaryLayer
from weft.nn.modules.module import Module


class _PoolNd(_Layer):
    """One over windows; the stride is the window unless given."""

    def _keep(self, given: dict[str, Any]) -> None:
        if given["stride"] is None:
            given["stride"] = given["kernel_size"]
        super()._keep(given)


class _MaxPoolNd(_PoolNd):
    """What layers with the maximum of each window have in common."""

    _repr_names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPoolNd, of="max_pool1d"):
    """The maximum of each window of [n, c, l]; the stride is the window unless given.

    >>> weft.nn.MaxPool1d(2)(weft.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """


class MaxPool2d(_MaxPoolNd, of="max_pool2d"):
    """The maximum of each window of [n, c, h, w]; the stride is the window unless given.

    >>> weft.nn.MaxPool2d(2)(weft.arange(16).reshape(1, 4, 4))
    tensor([[[ 5,  7],
             [13, 15]]])
    """


class MaxPool3d(_MaxPoolNd, of="max_pool3d"):
    """The maximum of each window of [n, c, d, h, w]; the stride is the window unless given.

    >>> weft.nn.MaxPool3d(2)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """


class _AvgPoolNd(_PoolNd):
    """What layers with the mean of each window have in common."""

    _repr_names = ("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd, _UnaryLayer, of="avg_pool1d"):
    """The mean of each window of [n, c, l]; the stride is the window unless given.

    >>> weft.nn.AvgPool1d(2)(weft.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def _keep(self, given: dict[str, Any]) -> None:
        for name in ("kernel_size", "stride", "padding"):
            given[name] = (given[name],) if isinstance(given[name], int) else given[name]
        super()._keep(given)


class _AvgPoolOverPlanes(_AvgPoolNd):
    """The mean over windows of two and three dimensions, with a divisor of one's own."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolOverPlanes, of="avg_pool2d"):
    """The mean of each window of [n, c, h, w]; the stride is the window unless given.

    >>> weft.nn.AvgPool2d(2)(weft.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """


class AvgPool3d(_AvgPoolOverPlanes, of="avg_pool3d"):
    """The mean of each window of [n, c, d, h, w]; the stride is the window unless given.

    >>> weft.nn.AvgPool3d(2)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """


class _LPPoolNd(_Layer):
    """Holds the order of the norm and the windows."""

    _repr_names = ("norm_type", "kernel_size", "stride", "ceil_mode")
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd, of="lp_pool1d"):
    """The p-norm of each window of [n, c, l].

    >>> weft.nn.LPPool1d(2, 2)(weft.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """


class LPPool2d(_LPPoolNd, of="lp_pool2d"):
    """The p-norm of each window of [n, c, h, w].

    >>> weft.nn.LPPool2d(2, (1, 2))(weft.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """


class LPPool3d(_LPPoolNd, of="lp_pool3d"):
    """The p-norm of each window of [n, c, d, h, w].

    >>> weft.nn.LPPool3d(2, (1, 2, 2))(weft.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """


class _AdaptiveAvgPoolNd(_UnaryLayer):
    """Holds the size of the result."""

    _repr_names = ("output_size",)
    output_size: Any


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, of="adaptive_avg_pool1d"):
    """Averages [n, c, l] to [n, c, output_size].

    >>> weft.nn.AdaptiveAvgPool1d(2)(weft.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, of="adaptive_avg_pool2d"):
    """Averages [n, c, h, w] to [n, c, *output_size]; None keeps a size.

    >>> weft.nn.AdaptiveAvgPool2d((1, 2))(weft.arange(16.0).reshape(1, 4, 4))
    tensor([[[6.5000, 8.5000]]])
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, of="adaptive_avg_pool3d"):
    """Averages [n, c, d, h, w] to [n, c, *output_size]; None keeps a size.

    >>> weft.nn.AdaptiveAvgPool3d((2, 1, None))(weft.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 1, 4])
    """


class _AdaptiveMaxPoolNd(_UnaryLayer):
    """Holds the size of the result, and whether places are wanted."""

    _repr_names = ("output_size",)
    output_size: Any
    return_indices: bool = False


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, of="adaptive_max_pool1d"):
    """The greatest entries of [n, c, l], as [n, c, output_size].

    >>> weft.nn.AdaptiveMaxPool1d(2)(weft.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, of="adaptive_max_pool2d"):
    """The greatest entries of [n, c, h, w], as [n, c, *output_size]; None keeps a size.

    >>> weft.nn.AdaptiveMaxPool2d((None, 1))(weft.arange(8.0).reshape(1, 2, 4))
    tensor([[[3.],
             [7.]]])
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, of="adaptive_max_pool3d"):
    """The greatest entries of [n, c, d, h, w], as [n, c, *output_size]; None keeps a size.

    >>> weft.nn.AdaptiveMaxPool3d(1)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """


class _MaxUnpoolNd(_PoolNd):
    """Holds the windows that were pooled over."""

    _dims = 0
    _repr_names = ("kernel_size", "stride", "padding")
    kernel_size: Any
    stride: Any = None
    padding: Any = 0

    def _keep(self, given: dict[str, Any]) -> None:
        for name, value in given.items():
            given[name] = (value,) * self._dims if isinstance(value, int) else value
        super()._keep(given)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return self._function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpoolNd, of="max_unpool1d"):
    """What MaxPool1d took [n, c, l] from, with zeros elsewhere.

    >>> weft.nn.MaxUnpool1d(2)(weft.tensor([[3.0, 2.0]]), weft.tensor([[1, 2]]))
    tensor([[0., 3., 2., 0.]])
    """

    _dims = 1


class MaxUnpool2d(_MaxUnpoolNd, of="max_unpool2d"):
    """What MaxPool2d took [n, c, h, w] from, with zeros elsewhere.

    >>> weft.nn.MaxUnpool2d(2)(weft.tensor([[[7.0]]]), weft.tensor([[[3]]]))
    tensor([[[0., 0.],
             [0., 7.]]])
    """

    _dims = 2


class MaxUnpool3d(_MaxUnpoolNd, of="max_unpool3d"):
    """What MaxPool3d took [n, c, d, h, w] from, with zeros elsewhere.

    >>> weft.nn.MaxUnpool3d((1, 2, 2))(weft.ones(1, 1, 1, 1), weft.tensor([[[[3]]]]))
    tensor([[[[0., 0.],
              [0., 1.]]]])
    """

    _dims = 3


class _FractionalMaxPoolNd(Module):
    """What both have in common."""

    _spatial: int
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{type(self).__name__}: expected one of output_size and output_ratio, got "
                f"{output_size} and {output_ratio}"
            )
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(
                f"{type(self).__name__}: expected output_ratio between 0 and 1, got {output_ratio}"
            )

    def _each(self, value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._spatial

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of [n, c, h, w] over windows at drawn places (Graham, 2015).

    Arguments and errors are those of weft.nn.functional.fractional_max_pool2d; a ratio is between 0
    and 1. Floating dtypes.

    >>> weft.nn.FractionalMaxPool2d(2, output_size=1)(weft.arange(16.0).reshape(1, 4, 4))
    tensor([[[15.]]])
    """

    _spatial, _function = 2, staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of [n, c, d, h, w] over windows at drawn places.

    Arguments and errors are those of weft.nn.functional.fractional_max_pool3d; a ratio is between 0
    and 1. Floating dtypes.

    >>> weft.nn.FractionalMaxPool3d(2, output_size=1)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _spatial, _function = 3, staticmethod(F.fractional_max_pool3d)
