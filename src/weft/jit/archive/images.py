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
        if scale_factors is None:
            return F.interpolate(input, output_size, None, mode)
        return _checked(F.interpolate(input, None, scale_factors, mode), output_size)

    return resize


def _smooth(mode: str, antialias: bool = False) -> Callable[..., Any]:
    def resize(
        input: Tensor, output_size: list[int] | None, align_corners: bool,
        scale_factors: list[float] | None,
    ) -> Tensor:  # fmt: skip
        if scale_factors is None:
            return F.interpolate(input, output_size, None, mode, align_corners, None, antialias)
        made = F.interpolate(input, None, scale_factors, mode, align_corners, None, antialias)
        return _checked(made, output_size)

    return resize


def _checked(resized: Tensor, size: list[int] | None) -> Tensor:
    if size is not None and resized.shape[2:] != size:
        raise RuntimeError(f"interpolate: expected size {resized.shape[2:]}, got {size}")
    return resized


# The overloads with a size and single factors, which traces of one dimension call, and archives
# before PyTorch 1.7.


def _factors(scales: list[float | None]) -> list[float] | None:
    found: list[float] = []
    for each in scales:
        if each is None:
            return None
        found.append(each)
    return found


def _nearest_of_size(resize: Callable[..., Any], dims: int) -> Callable[..., Any]:
    def one(self: Tensor, output_size: list[int], scales: float | None = None) -> Tensor:
        return resize(self, output_size, _factors([scales]))

    def two(
        self: Tensor, output_size: list[int], scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:  # fmt: skip
        return resize(self, output_size, _factors([scales_h, scales_w]))

    def three(
        self: Tensor, output_size: list[int], scales_d: float | None = None,
        scales_h: float | None = None, scales_w: float | None = None,
    ) -> Tensor:  # fmt: skip
        return resize(self, output_size, _factors([scales_d, scales_h, scales_w]))

    return (one, two, three)[dims - 1]


def _smooth_of_size(resize: Callable[..., Any], dims: int) -> Callable[..., Any]:
    def one(
        self: Tensor, output_size: list[int], align_corners: bool, scales: float | None = None
    ) -> Tensor:
        return resize(self, output_size, align_corners, _factors([scales]))

    def two(
        self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:  # fmt: skip
        return resize(self, output_size, align_corners, _factors([scales_h, scales_w]))

    def three(
        self: Tensor, output_size: list[int], align_corners: bool, scales_d: float | None = None,
        scales_h: float | None = None, scales_w: float | None = None,
    ) -> Tensor:  # fmt: skip
        return resize(self, output_size, align_corners, _factors([scales_d, scales_h, scales_w]))

    return (one, two, three)[dims - 1]


_NEAREST = {
    **{f"upsample_nearest{n}d": (_nearest("nearest"), n) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": (_nearest("nearest-exact"), n) for n in (1, 2, 3)},
}
_SMOOTH = {
    "upsample_linear1d": (_smooth("linear"), 1),
    "upsample_bilinear2d": (_smooth("bilinear"), 2),
    "upsample_trilinear3d": (_smooth("trilinear"), 3),
    "upsample_bicubic2d": (_smooth("bicubic"), 2),
    "_upsample_bilinear2d_aa": (_smooth("bilinear", True), 2),
    "_upsample_bicubic2d_aa": (_smooth("bicubic", True), 2),
}
for _resizing, _of_size in ((_NEAREST, _nearest_of_size), (_SMOOTH, _smooth_of_size)):
    for _name, (_function, _dims) in _resizing.items():
        _sized = _of_size(_function, _dims)
        # by which archives find the operator again
        _function.__qualname__ = _function.__name__ = _name
        _sized.__qualname__ = _sized.__name__ = f"{_name}_of_size"
        composed(f"aten::{_name}")(_function)
        composed(f"aten::{_name}")(_sized)


# Those of scripts before PyTorch 1.5.


@composed("aten::__interpolate")
def __interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    anew = recompute_scale_factor
    return F.interpolate(input, size, scale_factor, mode, align_corners, anew, antialias)


@composed("aten::__upsample")
def __upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    return F.interpolate(input, size, scale_factor, mode, align_corners)


@composed("aten::__upsample_nearest")
def __upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return F.interpolate(input, size, scale_factor)


@composed("aten::__upsample_bilinear")
def __upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return F.interpolate(input, size, scale_factor, "bilinear", True)


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


def _padding(name: str, mode: str) -> None:
    def pad(self: Tensor, padding: list[int]) -> Tensor:
        return F.pad(self, padding, mode)

    pad.__qualname__ = pad.__name__ = name
    composed(f"aten::{name}")(pad)


for _dims in (1, 2, 3):
    _padding(f"reflection_pad{_dims}d", "reflect")
    _padding(f"replication_pad{_dims}d", "replicate")
