"""Operators of torchvision that detectors call, composed of weft's."""

from __future__ import annotations

import math

from weft import _C
from weft._C import Tensor
from weft.jit.archive.functions import composed


@composed("torchvision::nms")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes (x1, y1, x2, y2) to keep, best score first: each unless one before it overlaps it
    by more than the threshold."""
    order = scores.argsort(descending=True, stable=True)
    boxes = dets.index_select(0, order)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keep = _C.ones(boxes.size(0), dtype=_C.bool)
    for i in range(boxes.size(0)):
        if bool(keep[i]):
            rest = boxes[i + 1 :]
            low = _C.maximum(rest[:, :2], boxes[i, :2])
            high = _C.minimum(rest[:, 2:], boxes[i, 2:])
            sides = (high - low).clamp(min=0)
            shared = sides[:, 0] * sides[:, 1]
            overlap = shared / (areas[i] + areas[i + 1 :] - shared)
            keep[i + 1 :].logical_and_((overlap > iou_threshold).logical_not())
    return order.masked_select(keep)


#: operators of torchvision that weft has not, which programs may name; gradients follow from what
#: the others are composed of
REFUSED = (
    *(
        f"_{name}_backward(Tensor grad) -> Tensor"
        for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")
    ),
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
    "int pooled_width, int sampling_ratio, bool aligned) -> Tensor",
)


@composed("torchvision::_cuda_version")
def cuda_version() -> int:
    """-1: torchvision's operators run on the CPU."""
    return -1


# roi_align ---------------------------------------------------------------------------------------


def _image_of(op: str, roi: Tensor, count: int) -> int:
    image = int(roi[0])
    if image < 0 or image >= count:
        raise IndexError(f"{op}: expected an image in [0, {count}), got {image}")
    return image


def _bins(start: float, length: float, bins: int, ratio: int, size: int, like: Tensor) -> Tensor:
    """The matrix [bins, size] that averages, in each bin, samples between the points of a line:
    `ratio` of them, or about one a point where that is not positive. Of the dtype of `like`."""
    samples = ratio if ratio > 0 else max(math.ceil(length / bins), 0)
    dtype = _C.float64 if like.dtype == _C.float64 else _C.float32
    steps = (_C.arange(bins * samples, dtype=dtype) + 0.5) / max(samples, 1)
    at = steps * (length / bins) + start
    inside = (at >= -1.0).logical_and(at <= size)
    at = at.clamp(min=0.0, max=float(size - 1))
    low = at.floor()
    part = (at - low).unsqueeze(1)
    points = _C.arange(size, dtype=dtype)
    weights = (points == low.unsqueeze(1)) * (1 - part) + (points == low.unsqueeze(1) + 1) * part
    weights = weights * inside.unsqueeze(1)
    return (weights.reshape(bins, samples, size).sum(1) / max(samples, 1)).to(like.dtype)


def _touched(start: float, length: float, size: int) -> tuple[int, int]:
    """The points of a line that samples of a region lie between; all of them for NaN."""
    low, high = min(start, start + length), max(start, start + length)
    first = math.floor(min(max(0.0, low), size - 1.0))
    last = math.floor(max(min(size - 1.0, high), 0.0))
    return first, min(max(last + 2, first + 1), size)


@composed("torchvision::roi_align")
def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """The average of bilinear samples in the bins of each region (image, x1, y1, x2, y2). Samples
    at rows and at columns are apart, so each region is a product of three matrices."""
    height, width = input.size(2), input.size(3)
    shift = 0.5 if aligned else 0.0
    found = [input.new_zeros([0, input.size(1), pooled_height, pooled_width])]
    for roi in rois.unbind(0):
        image = _image_of("roi_align", roi, input.size(0))
        left, top = float(roi[1]) * spatial_scale - shift, float(roi[2]) * spatial_scale - shift
        wide = float(roi[3]) * spatial_scale - shift - left
        high = float(roi[4]) * spatial_scale - shift - top
        if not aligned:
            wide, high = max(wide, 1.0), max(high, 1.0)
        by_row = _bins(top, high, pooled_height, sampling_ratio, height, input)
        by_column = _bins(left, wide, pooled_width, sampling_ratio, width, input)
        y, y_end = _touched(top, high, height)
        x, x_end = _touched(left, wide, width)
        part = input[image, :, y:y_end, x:x_end]
        part = by_row[:, y:y_end] @ part @ by_column[:, x:x_end].t()
        found.append(part.unsqueeze(0))
    return _C.cat(found)


# pooled regions ----------------------------------------------------------------------------------


def _edges(first: float, length: float, bins: int, size: int) -> list[int]:
    """Where the bins of a line begin, and then where they end, cut to the points there are."""
    found: list[int] = []
    for i in range(bins):
        found.append(min(max(math.floor(i * length / bins + first), 0), size))
    for i in range(bins):
        found.append(min(max(math.ceil((i + 1) * length / bins + first), 0), size))
    return found


def _rounded(x: float) -> float:
    """The nearest whole number, halves away from 0."""
    return float(math.floor(x + 0.5)) if x >= 0 else float(math.ceil(x - 0.5))


@composed("torchvision::roi_pool")
def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest value in the bins of each region (image, x1, y1, x2, y2), 0 in empty ones, and
    its place in the plane, -1 there."""
    channels, height, width = input.size(1), input.size(2), input.size(3)
    largest: list[Tensor] = []
    places: list[Tensor] = []
    for roi in rois.unbind(0):
        plane = input[_image_of("roi_pool", roi, input.size(0))]
        box = roi * spatial_scale
        left, top = _rounded(float(box[1])), _rounded(float(box[2]))
        wide = max(_rounded(float(box[3])) - left + 1, 1.0)
        high = max(_rounded(float(box[4])) - top + 1, 1.0)
        rows = _edges(top, high, pooled_height, height)
        columns = _edges(left, wide, pooled_width, width)
        for i in range(pooled_height):
            for j in range(pooled_width):
                y, x, x_end = rows[i], columns[j], columns[pooled_width + j]
                window = plane[:, y : rows[pooled_height + i], x:x_end]
                if window.numel() == 0:
                    largest.append(input.new_zeros([channels]))
                    places.append(_C.full([channels], -1, dtype=_C.int32))
                else:
                    value, place = window.flatten(1).max(1)
                    across = x_end - x
                    row = place.div(across, rounding_mode="floor")
                    largest.append(value)
                    places.append(((row + y) * width + place - row * across + x).to(_C.int32))
    if len(largest) == 0:
        shape = [0, channels, pooled_height, pooled_width]
        return input.new_zeros(shape), _C.zeros(shape, dtype=_C.int32)
    shape = [rois.size(0), pooled_height, pooled_width, channels]
    values, found = _C.stack(largest).reshape(shape), _C.stack(places).reshape(shape)
    return values.permute(0, 3, 1, 2).contiguous(), found.permute(0, 3, 1, 2).contiguous()


def _of_positions(
    op: str, input: Tensor, rois: Tensor, sums: list[Tensor], pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Averages in bins that have channels of their own: channel c of bin (i, j) is the input's
    (c * height + i) * width + j. `sums` are the matrices that average, of rows and of columns, for
    each region in turn."""
    bins = pooled_height * pooled_width
    channels = input.size(1) // bins
    if channels * bins != input.size(1):
        raise ValueError(f"{op}: expected a multiple of {bins} channels, got {input.size(1)}")
    parts = input.unflatten(1, [channels, pooled_height, pooled_width])
    found = [input.new_zeros([0, channels, pooled_height, pooled_width])]
    for k in range(rois.size(0)):
        plane = parts[_image_of(op, rois[k], input.size(0))]
        by_row = (plane @ sums[2 * k + 1].unsqueeze(2)).squeeze(4)
        found.append((by_row * sums[2 * k].unsqueeze(1)).sum(3).unsqueeze(0))
    taken = _C.arange(input.size(1), dtype=_C.int32)
    mapping = taken.reshape(1, channels, pooled_height, pooled_width)
    return _C.cat(found), mapping.repeat(rois.size(0), 1, 1, 1)


@composed("torchvision::ps_roi_align")
def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As roi_align, each bin from channels of its own; and the channel of each result."""
    sums: list[Tensor] = []
    for roi in rois.unbind(0):
        box = roi * spatial_scale - 0.5
        left, top = float(box[1]), float(box[2])
        wide, high = float(box[3]) - left, float(box[4]) - top
        sums.append(_bins(top, high, pooled_height, sampling_ratio, input.size(2), input))
        sums.append(_bins(left, wide, pooled_width, sampling_ratio, input.size(3), input))
    return _of_positions("ps_roi_align", input, rois, sums, pooled_height, pooled_width)


@composed("torchvision::ps_roi_pool")
def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The average in the bins of each region, each from channels of its own; and the channel of
    each result."""
    sums: list[Tensor] = []
    for roi in rois.unbind(0):
        box = roi * spatial_scale
        left, top = _rounded(float(box[1])), _rounded(float(box[2]))
        wide = max(_rounded(float(box[3])) - left, 1.0)
        high = max(_rounded(float(box[4])) - top, 1.0)
        rows = _edges(top, high, pooled_height, input.size(2) - 1)  # torchvision never takes the
        columns = _edges(left, wide, pooled_width, input.size(3) - 1)  # last row and column
        sums.append(_averages(rows, input.size(2)).to(input.dtype))
        sums.append(_averages(columns, input.size(3)).to(input.dtype))
    return _of_positions("ps_roi_pool", input, rois, sums, pooled_height, pooled_width)


def _averages(edges: list[int], size: int) -> Tensor:
    """The matrix [bins, size] that averages between the edges, 0 for empty bins."""
    bounds = _C.tensor(edges).reshape(2, -1, 1)
    points = _C.arange(size)
    inside = ((points >= bounds[0]).logical_and(points < bounds[1])).to(_C.float64)
    return inside / inside.sum(1, keepdim=True).clamp(min=1.0)


# deform_conv2d -----------------------------------------------------------------------------------


def _corner(input: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """input [n, groups, channels, h, w] at whole points [n, groups, points]; 0 outside of it."""
    height, width = input.size(3), input.size(4)
    inside = (y >= 0).logical_and(y < height).logical_and(x >= 0).logical_and(x < width)
    place = y.clamp(0, height - 1) * width + x.clamp(0, width - 1)
    place = (place * inside).long().unsqueeze(2).expand(-1, -1, input.size(2), -1)
    return input.flatten(3).gather(3, place) * inside.unsqueeze(2)


def _sampled(input: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Bilinear samples [n, groups, channels, points]."""
    top, left = y.floor().detach(), x.floor().detach()
    down, right = (y - top).unsqueeze(2), (x - left).unsqueeze(2)
    above = _corner(input, top, left) * (1 - right) + _corner(input, top, left + 1) * right
    below = _corner(input, top + 1, left) * (1 - right) + _corner(input, top + 1, left + 1) * right
    return above * (1 - down) + below * down


@composed("torchvision::deform_conv2d")
def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int,
    stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int,
    offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """A convolution whose samples are moved by offsets [n, groups * kernel * 2, h, w], (y, x) in
    turn, and weighted by a mask [n, groups * kernel, h, w]."""
    count, channels = input.size(0), input.size(1)
    rows, columns = weight.size(2), weight.size(3)
    high, wide = offset.size(2), offset.size(3)
    moved = offset.reshape(count, offset_groups, rows * columns, 2, high, wide)
    kernel_y = _C.arange(rows) * dilation_h - pad_h
    kernel_x = _C.arange(columns) * dilation_w - pad_w
    grid_y = kernel_y.reshape(-1, 1, 1, 1) + (_C.arange(high) * stride_h).reshape(-1, 1)
    grid_x = kernel_x.reshape(-1, 1, 1) + _C.arange(wide) * stride_w
    shape = [rows, columns, high, wide]
    y = moved[:, :, :, 0] + grid_y.expand(shape).reshape(rows * columns, high, wide)
    x = moved[:, :, :, 1] + grid_x.expand(shape).reshape(rows * columns, high, wide)
    parts = input.reshape(
        count, offset_groups, channels // offset_groups, input.size(2), input.size(3)
    )
    found = _sampled(parts, y.flatten(2), x.flatten(2))
    if use_mask:
        found = found * mask.reshape(count, offset_groups, 1, -1)
    found = found.reshape(count, groups, channels // groups * rows * columns, high * wide)
    filters = weight.reshape(groups, weight.size(0) // groups, -1)
    result = (filters @ found).reshape(count, weight.size(0), high, wide)
    return result + bias.reshape(-1, 1, 1)
