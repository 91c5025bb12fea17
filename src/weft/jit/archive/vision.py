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


# roi_align ---------------------------------------------------------------------------------------


def _bins(start: float, length: float, bins: int, samples: int, size: int) -> Tensor:
    """The matrix [bins, size] that averages, in each bin, samples between the points of a line."""
    steps = (_C.arange(bins * samples, dtype=_C.float32) + 0.5) / max(samples, 1)
    at = steps * (length / bins) + start
    inside = (at >= -1.0).logical_and(at <= size)
    at = at.clamp(min=0.0, max=float(size - 1))
    low = at.floor()
    part = (at - low).unsqueeze(1)
    points = _C.arange(size, dtype=_C.float32)
    weights = (points == low.unsqueeze(1)) * (1 - part) + (points == low.unsqueeze(1) + 1) * part
    weights = weights * inside.unsqueeze(1)
    return weights.reshape(bins, samples, size).sum(1) / max(samples, 1)


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
        image = int(roi[0])
        if image < 0 or image >= input.size(0):
            raise IndexError(f"roi_align: expected an image in [0, {input.size(0)}), got {image}")
        left, top = float(roi[1]) * spatial_scale - shift, float(roi[2]) * spatial_scale - shift
        wide = float(roi[3]) * spatial_scale - shift - left
        high = float(roi[4]) * spatial_scale - shift - top
        if not aligned:
            wide, high = max(wide, 1.0), max(high, 1.0)
        rows = sampling_ratio if sampling_ratio > 0 else max(math.ceil(high / pooled_height), 0)
        columns = sampling_ratio if sampling_ratio > 0 else max(math.ceil(wide / pooled_width), 0)
        by_row = _bins(top, high, pooled_height, rows, height).to(input.dtype)
        by_column = _bins(left, wide, pooled_width, columns, width).to(input.dtype)
        found.append((by_row @ input[image] @ by_column.t()).unsqueeze(0))
    return _C.cat(found)


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
