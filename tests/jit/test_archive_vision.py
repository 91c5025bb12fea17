"""torchvision's operators in archives, against direct loops in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.jit.archive_writer import Object, archive

import weft
from weft import jit


def loaded(body: str):
    """A program whose forward is the text."""
    text = f"class M(Module):\n  training : bool\n  def forward{body}\n"
    return jit.load(archive({"__torch__": text}, Object("__torch__.M", {"training": False})))


def bilinear(image, y, x):
    """image [h, w] between its points; what lies outside of it counts as 0."""
    total = 0.0
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                weight = (1 - abs(y - row)) * (1 - abs(x - column))
                total += weight * image[row, column]
    return total


# nms ---------------------------------------------------------------------------------------------


def nms(boxes, scores, threshold):
    kept = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        for j in kept:
            low, high = (
                np.maximum(boxes[i, :2], boxes[j, :2]),
                np.minimum(boxes[i, 2:], boxes[j, 2:]),
            )
            shared = np.prod(np.maximum(high - low, 0))
            areas = sum(np.prod(boxes[k, 2:] - boxes[k, :2]) for k in (i, j))
            if areas > shared and shared / (areas - shared) > threshold:
                break
        else:
            kept.append(i)
    return kept


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms(threshold):
    program = loaded(
        "(self, boxes: Tensor, scores: Tensor, t: float) -> Tensor:\n"
        "    return ops.torchvision.nms(boxes, scores, t)"
    )
    generator = np.random.default_rng(3)
    corners, sides = generator.uniform(0, 8, (30, 2)), generator.uniform(1, 6, (30, 2))
    boxes = np.concatenate([corners, corners + sides], 1).astype(np.float32)
    scores = generator.permutation(30).astype(np.float32)
    found = program(weft.from_numpy(boxes), weft.from_numpy(scores), threshold)
    assert found.tolist() == nms(boxes.astype(np.float64), scores, threshold)
    empty = program(weft.empty(0, 4), weft.empty(0), 0.5)
    assert empty.tolist() == [] and empty.dtype == weft.int64
    # Boxes without an area share nothing with each other.
    assert program(weft.zeros(2, 4), weft.tensor([1.0, 2.0]), 0.5).tolist() == [1, 0]


# roi_align ---------------------------------------------------------------------------------------


def sample(image, y, x):
    """Within one point of the border the border counts; further out there is nothing."""
    height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    return bilinear(image, min(max(y, 0), height - 1), min(max(x, 0), width - 1))


def roi_align(input, rois, scale, high, wide, ratio, aligned):
    out = np.zeros((len(rois), input.shape[1], high, wide))
    for k, (image, *box) in enumerate(rois):
        x1, y1, x2, y2 = (side * scale - (0.5 if aligned else 0) for side in box)
        width, height = x2 - x1, y2 - y1
        if not aligned:
            width, height = max(width, 1), max(height, 1)
        ny = ratio if ratio > 0 else math.ceil(height / high)
        nx = ratio if ratio > 0 else math.ceil(width / wide)
        for c, i, j in np.ndindex(*out.shape[1:]):
            values = [
                sample(
                    input[int(image), c],
                    y1 + (i + (a + 0.5) / ny) * height / high,
                    x1 + (j + (b + 0.5) / nx) * width / wide,
                )
                for a in range(ny)
                for b in range(nx)
            ]
            out[k, c, i, j] = sum(values) / max(len(values), 1)
    return out


ROIS = [
    [0, 1, 1, 6, 5],
    [1, -3, -2, 9, 12],
    [1, 2, 2, 2, 2],
    [0, 4, 3, 4.5, 3.2],
    [0, 20, 20, 30, 30],
]


@pytest.mark.parametrize(("ratio", "aligned"), [(2, True), (0, True), (-1, False), (3, False)])
def test_roi_align(ratio, aligned):
    program = loaded(
        "(self, x: Tensor, rois: Tensor, ratio: int, aligned: bool) -> Tensor:\n"
        "    return ops.torchvision.roi_align(x, rois, 0.75, 3, 2, ratio, aligned)"
    )
    x = np.random.default_rng(4).normal(size=(2, 2, 7, 8)).astype(np.float32)
    rois = np.array(ROIS, np.float32)
    given = weft.from_numpy(x).requires_grad_()
    found = program(given, weft.from_numpy(rois), ratio, aligned)
    expected = roi_align(x.astype(np.float64), rois, 0.75, 3, 2, ratio, aligned)
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-5)
    assert program(given, weft.empty(0, 5), ratio, aligned).shape == (0, 2, 3, 2)
    found.sum().backward()
    one = np.zeros_like(x)
    one[1, 0, 3, 4] = 1.0
    moved = roi_align(one.astype(np.float64), rois, 0.75, 3, 2, ratio, aligned).sum()
    assert abs(float(given.grad[1, 0, 3, 4]) - moved) < 1e-4
    with pytest.raises(IndexError, match=r"roi_align: expected an image in \[0, 2\), got 2"):
        program(given, weft.tensor([[2.0, 0, 0, 1, 1]]), ratio, aligned)


# deform_conv2d -----------------------------------------------------------------------------------


def deform_conv2d(x, weight, offset, mask, bias, stride, pad, dilation, groups, offset_groups):
    n, _, high, wide = offset.shape
    filters, channels, rows, columns = weight.shape
    out = np.zeros((n, filters, high, wide))
    for image, filter, i, j in np.ndindex(*out.shape):
        total = bias[filter]
        for c, a, b in np.ndindex(channels, rows, columns):
            channel = filter // (filters // groups) * channels + c
            group = channel // (x.shape[1] // offset_groups)
            tap = group * rows * columns + a * columns + b
            y = i * stride[0] - pad[0] + a * dilation[0] + offset[image, 2 * tap, i, j]
            z = j * stride[1] - pad[1] + b * dilation[1] + offset[image, 2 * tap + 1, i, j]
            value = bilinear(x[image, channel], y, z)
            total += weight[filter, c, a, b] * mask[image, tap, i, j] * value
        out[image, filter, i, j] = total
    return out


FORMS = {
    "plain": ((1, 1), (0, 0), (1, 1), 1, 1, False),
    "mask": ((1, 2), (1, 0), (1, 1), 1, 2, True),
    "groups": ((2, 1), (1, 2), (1, 2), 2, 4, True),
}


@pytest.mark.parametrize("name", FORMS)
def test_deform_conv2d(name):
    stride, pad, dilation, groups, offset_groups, use_mask = FORMS[name]
    program = loaded(
        "(self, x: Tensor, w: Tensor, o: Tensor, m: Tensor, b: Tensor) -> Tensor:\n"
        f"    return ops.torchvision.deform_conv2d(x, w, o, m, b, {stride[0]}, {stride[1]}, {pad[0]}, "
        f"{pad[1]}, {dilation[0]}, {dilation[1]}, {groups}, {offset_groups}, {use_mask})"
    )
    draw = np.random.default_rng(5).normal
    shape = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip((5, 6), pad, dilation, (3, 2), stride)
    ]
    x, weight = draw(size=(2, 4, 5, 6)), draw(size=(6, 4 // groups, 3, 2))
    offset = draw(size=(2, 12 * offset_groups, *shape)) * 1.5
    mask = draw(size=(2, 6 * offset_groups, *shape)) if use_mask else np.ones((2, 6, *shape))
    arrays = x, weight, offset, mask, draw(size=6)
    expected = deform_conv2d(*arrays, stride, pad, dilation, groups, offset_groups)
    tensors = [weft.from_numpy(each).requires_grad_() for each in arrays]
    np.testing.assert_allclose(program(*tensors).detach().numpy(), expected, atol=1e-10)
    used = tensors if use_mask else [*tensors[:3], tensors[4]]
    assert weft.autograd.gradcheck(
        lambda *given: program(*given) if use_mask else program(*given[:3], tensors[3], given[3]),
        used,
    )
