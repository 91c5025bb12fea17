"""Images in other sizes: upsampling, pixels and channels exchanged, windows as columns."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules._layer import _Layer, _UnaryLayer


class Upsample(_Layer, of="interpolate"):
    """[n, c, *] resampled to a size, or by a factor.

    >>> weft.nn.Upsample(scale_factor=2)(weft.tensor([[[1.0, 3.0]]]))
    tensor([[[1., 1., 3., 3.]]])
    """

    _computed_attributes = ("name",)

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def _keep(self, given: dict[str, Any]) -> None:
        factor = given["scale_factor"]
        if isinstance(factor, tuple):
            given["scale_factor"] = tuple(float(each) for each in factor)
        else:
            given["scale_factor"] = float(factor) if factor else None
        super()._keep(given)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        factor = self.scale_factor
        first = f"size={self.size}" if factor is None else f"scale_factor={factor}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample, of="upsample_nearest"):
    """[n, c, h, w] resampled by the nearest pixel.

    >>> weft.nn.UpsamplingNearest2d(scale_factor=2)(weft.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 1., 3., 3.],
              [1., 1., 3., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample, of="upsample_bilinear"):
    """[n, c, h, w] resampled linearly, corners aligned.

    >>> weft.nn.UpsamplingBilinear2d(size=(1, 3))(weft.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 2., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(_UnaryLayer, of="pixel_shuffle"):
    """[*, c r^2, h, w] as [*, c, h r, w r].

    >>> weft.nn.PixelShuffle(2)(weft.arange(4).reshape(1, 4, 1, 1))
    tensor([[[[0, 1],
              [2, 3]]]])
    """

    _repr_names = ("upscale_factor",)

    upscale_factor: int


class PixelUnshuffle(_UnaryLayer, of="pixel_unshuffle"):
    """[*, c, h r, w r] as [*, c r^2, h, w].

    >>> weft.nn.PixelUnshuffle(2)(weft.arange(4).reshape(1, 1, 2, 2)).flatten()
    tensor([0, 1, 2, 3])
    """

    _repr_names = ("downscale_factor",)

    downscale_factor: int


class ChannelShuffle(_UnaryLayer, of="channel_shuffle"):
    """The channels of `groups` groups, taken in turn.

    >>> weft.nn.ChannelShuffle(2)(weft.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    _repr_names = ("groups",)

    groups: int


class Unfold(_UnaryLayer, of="unfold"):
    """The windows of [n, c, h, w] as columns [n, c * kernel, windows].

    >>> weft.nn.Unfold((1, 2))(weft.arange(4.0).reshape(1, 2, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """

    _repr_names = ("kernel_size", "dilation", "padding", "stride")

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


class Fold(_UnaryLayer, of="fold"):
    """Columns [n, c * kernel, windows] added up where Unfold took them from.

    >>> weft.nn.Fold((2, 2), (1, 2))(weft.tensor([[0.0, 2.0], [1.0, 3.0]]))
    tensor([[[0., 1.],
             [2., 3.]]])
    """

    _repr_names = ("output_size", "kernel_size", "dilation", "padding", "stride")

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1
