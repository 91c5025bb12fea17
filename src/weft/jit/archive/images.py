"""Operators on images: resizing, windows, borders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft import _C
from weft._C import Tensor
from weft.jit.archive.functions import composed

# Resizing: by a size or by factors ----------------------------------------------------------------


def _nearest(mode: str) -> Callable[..., Any]:
    def resize(
        input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None
    ) -> Tensor:
        if output_size is not None:
            return F.interpolate(input, output_size, None, mode)
        assert scale_factors is not None
        return F.interpolate(input, None, scale_factors, mode)

    return resize


def _smooth(mode: str, antialias: bool) -> Callable[..., Any]:
    def resize(
        input: Tensor, output_size: list[int] | None, align_corners: bool,
        scale_factors: list[float] | None,
    ) -> Tensor:  # fmt: skip
        if output_size is not None:
            return F.interpolate(input, output_size, None, mode, align_corners, None, antialias)
        assert scale_factors is not None
        return F.interpolate(input, None, scale_factors, mode, align_corners, None, antialias)

    return resize


_RESIZING = {
    **{f"upsample_nearest{n}d": _nearest("nearest") for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _nearest("nearest-exact") for n in (1, 2, 3)},
    "upsample_linear1d": _smooth("linear", False),
    "upsample_bilinear2d": _smooth("bilinear", False),
    "upsample_trilinear3d": _smooth("trilinear", False),
    "upsample_bicubic2d": _smooth("bicubic", False),
    "_upsample_bilinear2d_aa": _smooth("bilinear", True),
    "_upsample_bicubic2d_aa": _smooth("bicubic", True),
}
for _name, _function in _RESIZING.items():
    _function.__qualname__ = _function.__name__ = _name  # by which archives find the operator again
    composed(f"aten::{_name}")(_function)


# Windows ------------------------------------------------------------------------------------------


@composed("aten::im2col")
def im2col(
    self: Tensor, kernel_size: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Tensor:
    return F.unfold(self, kernel_size, dilation, padding, stride)


@composed("aten::col2im")
def col2im(
    self: Tensor, output_size: list[int], kernel_size: list[int], dilation: list[int],
    padding: list[int], stride: list[int],
) -> Tensor:  # fmt: skip
    return F.fold(self, output_size, kernel_size, dilation, padding, stride)


@composed("aten::adaptive_max_pool1d")
def adaptive_max_pool1d(self: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d(self, output_size[0], True)


@composed("aten::adaptive_max_pool2d")
def adaptive_max_pool2d(self: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool2d(self, (output_size[0], output_size[1]), True)


@composed("aten::adaptive_max_pool3d")
def adaptive_max_pool3d(self: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    sizes = (output_size[0], output_size[1], output_size[2])
    return F.adaptive_max_pool3d(self, sizes, True)


@composed("aten::max_unpool2d")
def max_unpool2d(self: Tensor, indices: Tensor, output_size: list[int]) -> Tensor:
    return _scattered(self, indices, output_size)


@composed("aten::max_unpool3d")
def max_unpool3d(
    self: Tensor, indices: Tensor, output_size: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    return _scattered(self, indices, output_size)


def _scattered(values: Tensor, indices: Tensor, size: list[int]) -> Tensor:
    """Zeros, and values at their places in the last dimensions."""
    outer = values.size()[: values.dim() - len(size)]
    count = 1
    for each in size:
        count = count * each
    flat = values.flatten(-len(size))
    made = _C.zeros([*outer, count], dtype=values.dtype)
    return made.scatter(-1, indices.flatten(-len(size)), flat).reshape([*outer, *size])


@composed("aten::fractional_max_pool2d")
def fractional_max_pool2d(
    self: Tensor, kernel_size: list[int], output_size: list[int], random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    return F.fractional_max_pool2d_with_indices(
        self, kernel_size, output_size, None, True, random_samples
    )


@composed("aten::fractional_max_pool3d")
def fractional_max_pool3d(
    self: Tensor, kernel_size: list[int], output_size: list[int], random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    return F.fractional_max_pool3d_with_indices(
        self, kernel_size, output_size, None, True, random_samples
    )


# Borders ------------------------------------------------------------------------------------------


@composed("aten::reflection_pad1d")
def reflection_pad1d(self: Tensor, padding: list[int]) -> Tensor:
    return F.pad(self, padding, "reflect")


@composed("aten::reflection_pad2d")
def reflection_pad2d(self: Tensor, padding: list[int]) -> Tensor:
    return F.pad(self, padding, "reflect")


@composed("aten::reflection_pad3d")
def reflection_pad3d(self: Tensor, padding: list[int]) -> Tensor:
    return F.pad(self, padding, "reflect")


@composed("aten::replication_pad1d")
def replication_pad1d(self: Tensor, padding: list[int]) -> Tensor:
    return F.pad(self, padding, "replicate")


@composed("aten::replication_pad2d")
def replication_pad2d(self: Tensor, padding: list[int]) -> Tensor:
    return F.pad(self, padding, "replicate")


@composed("aten::replication_pad3d")
def replication_pad3d(self: Tensor, padding: list[int]) -> Tensor:
    return F.pad(self, padding, "replicate")
