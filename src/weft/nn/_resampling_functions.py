"""Images in other sizes, and sampled at given places; `weft.nn.functional` shows them."""

from __future__ import annotations

import math
import warnings
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import meshgrid
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._adaptive_pooling_functions import adaptive_avg_pool1d, adaptive_avg_pool3d

_resample = _C._aten._resample
_grid_sampler = _C._aten.grid_sampler
_adaptive_avg_pool2d = _C._nn.adaptive_avg_pool2d

_GRID_MODES = ["bilinear", "nearest", "bicubic"]
_GRID_PADDINGS = ["zeros", "border", "reflection"]


@data_dependent
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """input [n, c, *] resampled to `size`, or to its size times scale_factor (rounded down).

    mode: nearest, nearest-exact, linear (3 dims), bilinear and bicubic (4), trilinear (5), area.
    align_corners puts the centres of the corner pixels, rather than their corners, on each other.
    antialias (bilinear, bicubic) averages over the input pixels an output pixel covers. Beside
    floats, nearest takes uint8, and so do bilinear and bicubic, rounded after each dimension.

    The result has the dtype of `input`, which is floating, or uint8 for some modes. Raises
    NotImplementedError for another dtype and for a mode that is none for these dimensions,
    ValueError unless either size or scale_factor is given.

    >>> weft.nn.functional.interpolate(weft.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    spatial = input.dim() - 2
    modes = _modes(input.dim())
    if mode not in modes:
        raise NotImplementedError(
            f"interpolate: expected a mode for {input.dim()} dims among {modes}, got {mode!r}"
        )
    linear = mode in ("linear", "bilinear", "bicubic", "trilinear")
    if align_corners is not None and not linear:
        raise ValueError(
            f"interpolate: expected align_corners=None for {mode}, got {align_corners}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: expected antialias=False for {mode}, got True")
    sizes, scales = _sizes_and_scales(input, size, scale_factor, recompute_scale_factor, spatial)
    if min(sizes) <= 0 or (input.numel() == 0 and min(input.shape[1:]) == 0):
        raise RuntimeError(
            f"interpolate: expected sizes of at least 1, got {tuple(input.shape)} to {sizes}"
        )
    if mode == "area":
        return _area(input, sizes)
    if not linear:
        if input.dtype != _C.uint8:
            _check_floating(mode, input)
        lasts = (_C.channels_last, _C.channels_last_3d)
        by_channels = any(input.is_contiguous(memory_format=each) for each in lasts)
        indices = [
            _nearest(input, i + 2, sizes[i], scales[i], 0.5 if mode[7:] else 0.0)
            for i in range(spatial)
        ]
        if by_channels:
            return _pixels(input, indices)
        x = input
        for i in range(spatial):
            x = x.index_select(i + 2, indices[i])
        return x
    in_bytes = input.dtype == _C.uint8 and mode in ("bilinear", "bicubic")
    if not in_bytes:
        _check_floating(mode, input)
    x = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    x = input.double() if in_bytes else x
    for i in reversed(range(spatial)):
        if sizes[i] != input.size(i + 2) or scales[i] not in (0.0, 1.0):
            corners = False if align_corners is None else align_corners
            index, weights = _taps(mode, antialias, x, i + 2, sizes[i], scales[i], corners)
            if in_bytes:
                weights = weights if antialias else _merged(index, weights)
                x = _resample_bytes(x, i + 2, index, weights)
            else:
                x = _resample(x, i + 2, index, weights)
    return x.to(input.dtype) if x is not input else input.clone()


def _pixels(input: Tensor, indices: list[Tensor]) -> Tensor:
    """Pixels, whose channels lie together, at all combinations of places in each dimension."""
    rows = input.movedim(1, -1)
    places = indices[0]
    for i, index in enumerate(indices[1:]):
        places = places.unsqueeze(-1) * input.size(i + 3) + index
    taken = rows.flatten(1, -2).index_select(1, places.flatten())
    return taken.unflatten(1, places.shape).movedim(-1, 1)


def _modes(dims: int) -> list[str]:
    """The modes of inputs of so many dimensions."""
    every = ["nearest", "nearest-exact", "area"]
    if dims == 3:
        return [*every, "linear"]
    if dims == 4:
        return [*every, "bilinear", "bicubic"]
    return [*every, "trilinear"] if dims == 5 else []


def _taps(
    mode: str, antialias: bool, x: Tensor, dim: int, out: int, scale: float, align: bool
) -> tuple[Tensor, Tensor]:
    """The input pixels of each output pixel along a dimension, and their weights."""
    if antialias and mode == "bicubic":
        return _filtered(x, dim, out, scale, align, 2, _keys)
    if antialias:
        return _filtered(x, dim, out, scale, align, 1, _triangle)
    if mode == "bicubic":
        return _cubic_taps(x, dim, out, scale, align)
    return _linear_taps(x, dim, out, scale, align)


def _check_floating(mode: str, x: Tensor) -> None:
    if not x.is_floating_point():
        name = str(x.dtype).partition(".")[2]
        raise NotImplementedError(f"interpolate: expected a floating dtype for {mode}, got {name}")


def _merged(index: Tensor, weights: Tensor) -> Tensor:
    """The weights of equal indices, as there are at the border, added up at the first of them."""
    same = index.unsqueeze(2) == index.unsqueeze(1)
    sums = (same * weights.unsqueeze(1)).sum(2)
    return sums.masked_fill(same.tril(-1).any(2), 0)


def _resample_bytes(x: Tensor, dim: int, index: Tensor, weights: Tensor) -> Tensor:
    """One dimension of whole numbers from 0 to 255 (as float64, where their sums are exact).

    As image libraries and PyTorch compute it: the weights are 16-bit numbers with as many binary
    places as the greatest one leaves, and the result is rounded to the nearest byte.
    """
    greatest, positions = float(weights.max()), 0
    while positions < 22 and greatest * 2.0 ** (positions + 1) + 0.5 < 32768.0:
        positions += 1
    unit = 2.0**positions
    scaled = weights * unit
    sums = _resample(x, dim, index, (scaled + weights.sign() * 0.5).trunc())
    return ((sums + unit * 0.5) / unit).floor().clamp(0, 255)


def _sizes_and_scales(
    x: Tensor, size: Any, scale_factor: Any, recompute: bool | None, spatial: int
) -> tuple[list[int], list[float]]:
    """The result's sizes; and the scales that count instead of the quotient of the sizes, or 0."""
    if size is not None and scale_factor is None:
        if recompute:
            raise ValueError("interpolate: expected scale_factor to recompute, got size")
        numbers = _each(size, spatial)
        return [n if isinstance(n, int) else int(n) for n in numbers], [0.0] * spatial
    if scale_factor is None or size is not None:
        raise ValueError(
            f"interpolate: expected either size or scale_factor, got {size} and {scale_factor}"
        )
    scales = [float(s) for s in _each(scale_factor, spatial)]
    sizes = [math.floor(n * s) for n, s in zip(x.shape[2:], scales)]
    return sizes, [0.0] * spatial if recompute else scales


def _each(given: Any, spatial: int) -> Any:
    """A number for each dimension."""
    listed = list(given) if isinstance(given, (tuple, list)) else [given] * spatial
    if len(listed) != spatial:
        raise ValueError(f"interpolate: expected {spatial} numbers, got {tuple(listed)}")
    return listed


def _step(size: int, out: int, scale: float) -> float:
    """Input pixels an output pixel."""
    return 1.0 / scale if scale > 0 else size / out


def _compute_dtype(x: Tensor) -> Any:
    return _C.float64 if x.dtype == _C.float64 else _C.float32


def _nearest(x: Tensor, dim: int, out: int, scale: float, shift: float) -> Tensor:
    # In float32, as PyTorch has it: the last bit decides between neighbours.
    step = _C.tensor(_step(x.size(dim), out, scale), dtype=_C.float32)
    positions = (_C.arange(out, dtype=_C.float32) + shift) * step
    return positions.floor().to(_C.int64).clamp(0, x.size(dim) - 1)  # float32 rounds large sizes


def _positions(x: Tensor, dim: int, out: int, scale: float, align: bool) -> Tensor:
    """Where the output pixels lie in the input."""
    kind = _compute_dtype(x)
    at = _C.arange(out, dtype=kind)
    if align:
        return at * _C.tensor((x.size(dim) - 1) / (out - 1) if out > 1 else 0.0, dtype=kind)
    step = _C.tensor(_step(x.size(dim), out, scale), dtype=kind)
    return (at + 0.5) * step - 0.5


def _linear_taps(x: Tensor, dim: int, out: int, scale: float, align: bool) -> tuple[Tensor, Tensor]:
    positions = _positions(x, dim, out, scale, align).clamp_min(0)
    last = x.size(dim) - 1
    low = positions.floor().clamp_max(last)
    part = (positions - low).clamp(0, 1)
    index = _C.stack([low, low + 1], 1).to(_C.int64).clamp_max(last)
    return index, _C.stack([1 - part, part], 1)


def _cubic_weights(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """Weights of the pixels at -1, 0, 1, 2 for a place t in [0, 1) (Keys 1981, with a)."""

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic_taps(x: Tensor, dim: int, out: int, scale: float, align: bool) -> tuple[Tensor, Tensor]:
    positions = _positions(x, dim, out, scale, align)
    low = positions.floor()
    around = _C.stack([low + i for i in (-1, 0, 1, 2)], 1).to(_C.int64)
    return around.clamp(0, x.size(dim) - 1), _C.stack(_cubic_weights(positions - low), 1)


def _filtered(
    x: Tensor, dim: int, out: int, scale: float, align: bool, radius: int, kernel: Any
) -> tuple[Tensor, Tensor]:
    """A kernel stretched over the pixels that an output pixel covers; the weights sum to 1."""
    size, kind = x.size(dim), _compute_dtype(x)
    step = _step(size, out, scale)
    if align:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    stretch = max(step, 1.0)
    reach = radius * stretch
    centre = (_C.arange(out, dtype=kind) + 0.5) * step
    first = (centre - reach + 0.5).floor().clamp_min(0)
    last = (centre + reach + 0.5).floor().clamp_max(size)
    at = first.unsqueeze(1) + _C.arange(math.ceil(reach) * 2 + 1, dtype=kind)
    weights = kernel((at - centre.unsqueeze(1) + 0.5) / stretch)
    weights = weights.masked_fill(at >= last.unsqueeze(1), 0)
    index = at.clamp_max(size - 1).to(_C.int64)
    return index, weights / weights.sum(1, keepdim=True)


def _triangle(d: Tensor) -> Tensor:
    return (1 - d.abs()).clamp_min(0)


def _keys(d: Tensor) -> Tensor:
    """Keys's cubic with a = -0.5, as image libraries have it."""
    d = d.abs()
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return _C.where(d < 1, near, _C.where(d < 2, far, 0.0))


def _area(x: Tensor, sizes: list[int]) -> Tensor:
    if len(sizes) == 1:
        return adaptive_avg_pool1d(x, sizes)
    if len(sizes) == 3:
        return adaptive_avg_pool3d(x, sizes)
    return _adaptive_avg_pool2d(x, sizes)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """interpolate, under its old name.

    Arguments and errors are those of interpolate. So are dtypes.

    >>> weft.nn.functional.upsample(weft.tensor([[[1.0, 3.0]]]), size=4)
    tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate by the nearest pixel.

    Sizes and errors are those of interpolate. So are dtypes.

    >>> weft.nn.functional.upsample_nearest(weft.tensor([[[1.0, 3.0]]]), size=4)
    tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate [n, c, h, w] linearly, corners aligned.

    Sizes and errors are those of interpolate. So are dtypes.

    >>> weft.nn.functional.upsample_bilinear(weft.tensor([[[[1.0, 3.0]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


# ---- sampled at given places ----


@data_dependent
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Places for grid_sample by affine maps: theta [n, 2, 3] and size (n, c, h, w) give
    [n, h, w, 2]; [n, 3, 4] and (n, c, d, h, w) give [n, d, h, w, 3].

    align_corners says whether -1 and 1 are the centres of the outer pixels or their edges. Raises
    ValueError for other shapes, and for dtypes that are not floating.

    >>> same = weft.eye(2, 3).unsqueeze(0)
    >>> weft.nn.functional.affine_grid(same, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: expected a floating dtype, got {theta.dtype}")
    spatial = len(size) - 2
    if spatial not in (2, 3) or tuple(theta.shape) != (size[0], spatial, spatial + 1):
        raise ValueError(
            f"affine_grid: expected theta (n, 2, 3) or (n, 3, 4) for the size {tuple(size)}, got "
            f"shape {tuple(theta.shape)}"
        )
    inner = [int(n) for n in size[2:]]
    align = _aligned("affine_grid", align_corners)
    axes = [_unit_places(n, align, theta) for n in inner]
    positions = list(meshgrid(axes, indexing="ij"))[::-1]
    ones = _C.ones(inner, dtype=theta.dtype, device=theta.device)
    base = _C.stack([*positions, ones], -1).reshape(1, -1, spatial + 1)
    return (base.expand(size[0], -1, -1) @ theta.mT).reshape([size[0], *inner, spatial])


def _unit_places(count: int, align: bool, like: Tensor) -> Tensor:
    """The centres of `count` pixels over [-1, 1]; aligned: the outer ones on its ends."""
    if count == 1:
        return _C.zeros(1, dtype=like.dtype, device=like.device)
    positions = _C.linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    return positions if align else positions * ((count - 1) / count)


@_full_precision
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """input [n, c, h, w] at the places grid [n, h', w', 2]: [n, c, h', w']; or with a depth more.

    A place is (x, y) or (x, y, z) with -1 and 1 at the ends of the input. mode is bilinear, nearest
    or bicubic; padding_mode says what lies outside: zeros, border or reflection.

    Raises RuntimeError for shapes that do not fit and for an empty input, NotImplementedError for
    dtypes that are not floating, ValueError for another mode or padding_mode.

    >>> image, centre = weft.arange(4.0).reshape(1, 1, 2, 2), weft.zeros(1, 1, 1, 2)
    >>> weft.nn.functional.grid_sample(image, centre, align_corners=True)
    tensor([[[[1.5000]]]])
    """
    if mode not in _GRID_MODES:
        raise ValueError(f"grid_sample: expected mode bilinear, nearest or bicubic, got {mode!r}")
    if padding_mode not in _GRID_PADDINGS:
        raise ValueError(
            f"grid_sample: expected padding_mode zeros, border or reflection, got {padding_mode!r}"
        )
    at, outside = _GRID_MODES.index(mode), _GRID_PADDINGS.index(padding_mode)
    align = _aligned("grid_sample", align_corners)
    return _grid_sampler(input, grid, at, outside, align)


def _aligned(function: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            f"{function}: expected align_corners, got none: False, where PyTorch 1.2 had True",
            stacklevel=4,
        )
    return bool(align_corners)


_declare(globals())
_list_own(vars())
