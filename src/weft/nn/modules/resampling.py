"""Images in other sizes: upsampling, pixels and channels exchanged, windows as columns."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class Upsample(Module):
    """[n, c, *] resampled to a size, or by a factor.

    Shapes, dtypes and errors are those of weft.nn.functional.interpolate.

    >>> weft.nn.Upsample(scale_factor=2)(weft.tensor([[[1.0, 3.0]]]))
    tensor([[[1., 1., 3., 3.]]])
    """

    _computed_attributes = ("name",)

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        factor = self.scale_factor
        first = f"size={self.size}" if factor is None else f"scale_factor={factor}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """[n, c, h, w] resampled by the nearest pixel.

    Shapes, dtypes and errors are those of weft.nn.functional.upsample_nearest.

    >>> weft.nn.UpsamplingNearest2d(scale_factor=2)(weft.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 1., 3., 3.],
              [1., 1., 3., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """[n, c, h, w] resampled linearly, corners aligned.

    Shapes, dtypes and errors are those of weft.nn.functional.upsample_bilinear.

    >>> weft.nn.UpsamplingBilinear2d(size=(1, 3))(weft.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 2., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """[*, c r^2, h, w] as [*, c, h r, w r].

    Shapes, dtypes and errors are those of weft.nn.functional.pixel_shuffle.

    >>> weft.nn.PixelShuffle(2)(weft.arange(4).reshape(1, 4, 1, 1))
    tensor([[[[0, 1],
              [2, 3]]]])
    """

    _repr_names = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """[*, c, h r, w r] as [*, c r^2, h, w].

    Shapes, dtypes and errors are those of weft.nn.functional.pixel_unshuffle.

    >>> weft.nn.PixelUnshuffle(2)(weft.arange(4).reshape(1, 1, 2, 2)).flatten()
    tensor([0, 1, 2, 3])
    """

    _repr_names = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """The channels of `groups` groups, taken in turn.

    Shapes, dtypes and errors are those of weft.nn.functional.channel_shuffle.

    >>> weft.nn.ChannelShuffle(2)(weft.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    _repr_names = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Unfold(Module):
    """The windows of [n, c, h, w] as columns [n, c * kernel, windows].

    Shapes, dtypes and errors are those of weft.nn.functional.unfold.

    >>> weft.nn.Unfold((1, 2))(weft.arange(4.0).reshape(1, 2, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """

    _repr_names = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Columns [n, c * kernel, windows] added up where Unfold took them from.

    Shapes, dtypes and errors are those of weft.nn.functional.fold.

    >>> weft.nn.Fold((2, 2), (1, 2))(weft.tensor([[0.0, 2.0], [1.0, 3.0]]))
    tensor([[[0., 1.],
             [2., 3.]]])
    """

    _repr_names = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
