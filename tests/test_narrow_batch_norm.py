"""Batch norm of bfloat16 and float16 images: that of their float32 values, rounded once. Sums over
elements that are converted first add in another order."""

from __future__ import annotations

import pytest

import weft
from weft.nn.functional import batch_norm

# By lines of planes, by rows of channels; blocks of rows that do not divide; values, not images.
_PLANES, _CHANNELS = weft.contiguous_format, weft.channels_last
_IMAGES = [
    ((2, 3, 5, 7), _PLANES),
    ((2, 3, 5, 7), _CHANNELS),
    ((4, 24, 40, 33), _PLANES),
    ((4, 24, 40, 33), _CHANNELS),
    ((300, 5), _PLANES),
    ((3, 17, 9), _PLANES),
]


def _run(x: weft.Tensor, grad: weft.Tensor) -> list[weft.Tensor]:
    x = x.detach().requires_grad_()
    channels = x.shape[1]
    weight = weft.linspace(0.5, 2, channels).requires_grad_()
    bias = weft.linspace(-1, 1, channels).requires_grad_()
    mean, var = weft.zeros(channels), weft.ones(channels)
    y = batch_norm(x, mean, var, weight, bias, training=True)
    return [y.detach(), mean, var, *weft.autograd.grad(y, [x, weight, bias], grad)]


@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float16], ids=str)
@pytest.mark.parametrize(("shape", "layout"), _IMAGES, ids=str)
def test_as_float32(dtype: weft.dtype, shape: tuple[int, ...], layout: weft.memory_format) -> None:
    weft.manual_seed(sum(shape))
    x, grad = (
        (3 * weft.randn(shape) + 1).to(dtype).contiguous(memory_format=layout) for _ in range(2)
    )
    narrow, wide = _run(x, grad), _run(x.float(), grad.float())
    for got, expected in zip(narrow, wide, strict=True):
        # Both are within some 2^-20 of the exact values: what lies so near to the middle between two
        # numbers of 16 bits may be rounded to either.
        apart = (got.float() - expected).abs()
        step = weft.finfo(got.dtype).eps / 2 if got.dtype == dtype else 0.0
        assert bool((apart <= (step + 2**-18) * expected.abs().clamp_min(2**-6)).all())
    assert narrow[0].dtype == narrow[3].dtype == dtype
    assert narrow[0].stride() == narrow[3].stride() == x.stride()


@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float16], ids=str)
def test_running_statistics_are_used_in_float32(dtype: weft.dtype) -> None:
    weft.manual_seed(0)
    x = (weft.randn(4, 8, 5, 5) * 3 + 7).to(dtype)
    vectors = [weft.randn(8) + 7, weft.rand(8) + 0.1, weft.randn(8), weft.randn(8)]
    narrow = [vector.to(dtype).requires_grad_(i > 1) for i, vector in enumerate(vectors)]
    wide = [vector.detach().float().requires_grad_(i > 1) for i, vector in enumerate(narrow)]
    y, expected = batch_norm(x, *narrow), batch_norm(x.float(), *wide)
    assert weft.equal(y, expected.to(dtype))
    for one, other in zip(
        weft.autograd.grad(y.sum(), narrow[2:]), weft.autograd.grad(expected.sum(), wide[2:])
    ):
        assert one.dtype == dtype and weft.equal(one, other.to(dtype))
