"""Group norm and its gradients: errors, layouts, dtypes, second derivatives."""

from __future__ import annotations

from typing import Any

import pytest

import weft

F = weft.nn.functional
FORMATS = [weft.contiguous_format, weft.channels_last]
# One value a channel, parts of several lines, a prime number of positions, one group, groups that
# exceed a cache.
SHAPES = [
    ((5, 12, 1, 1), 3), ((2, 64, 9, 16), 8), ((3, 6, 1, 13), 2), ((2, 4, 7, 5), 1),
    ((1, 4, 200, 210), 2), ((2, 320, 33, 20), 32),
]  # fmt: skip


def in_operators(x: weft.Tensor, groups: int, weight: weft.Tensor, bias: weft.Tensor) -> Any:
    """group_norm."""
    rows = x.reshape(x.shape[0], groups, -1)
    centred = rows - rows.mean(2, keepdim=True)
    normal = centred * (centred.square().mean(2, keepdim=True) + 1e-5).rsqrt()
    across = (-1, *[1] * (x.dim() - 2))
    return normal.reshape(x.shape) * weight.reshape(across) + bias.reshape(across)


def data(shape: tuple[int, ...], dtype: weft.dtype = weft.float64) -> list[weft.Tensor]:
    weft.manual_seed(0)
    sizes = (shape, shape[1:2], shape[1:2], shape)
    return [weft.randn(*each, dtype=weft.float64).to(dtype) for each in sizes]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("shape", "groups"), SHAPES)
@pytest.mark.parametrize("dtype", [weft.float64, weft.float32, weft.bfloat16])
def test_errors_are_those_of_sums(
    dtype: weft.dtype, shape: tuple[int, ...], groups: int, format: weft.memory_format
) -> None:
    x, weight, bias, upstream = data(shape, dtype)
    x = (x + 3).contiguous(memory_format=format)
    leaves = [each.detach().requires_grad_() for each in (x, weight, bias)]
    exact = [each.detach().double().requires_grad_() for each in leaves]
    y = F.group_norm(leaves[0], groups, *leaves[1:])
    wanted_y = in_operators(exact[0], groups, *exact[1:])
    assert y.is_contiguous(memory_format=format)
    found = [y, *weft.autograd.grad(y, leaves, upstream)]
    wanted = [wanted_y, *weft.autograd.grad(wanted_y, exact, upstream.double())]
    for got, expected in zip(found, wanted, strict=True):
        assert got.dtype == dtype and got.shape == expected.shape
        # Each is a sum of `terms` that are rounded, and so are the sums that make the terms.
        terms = upstream.numel() / got.numel()
        bound = weft.finfo(dtype).eps * (8 + terms**0.5) * (1 + expected.abs().max().item())
        weft.testing.assert_close(got.double(), expected, rtol=0, atol=8 * bound)


@pytest.mark.parametrize("format", FORMATS)
def test_a_mean_far_from_0_costs_what_its_rounding_does(format: weft.memory_format) -> None:
    x, weight, bias, _ = data((2, 32, 16, 16), weft.float32)
    x = (x + 1000).contiguous(memory_format=format)
    got = F.group_norm(x, 4, weight, bias).double()
    exact = in_operators(x.double(), 4, weight.double(), bias.double())
    # The mean is rounded, and each element of which it is taken, to the last place of 1000.
    bound = 4 * 1000 * weft.finfo(weft.float32).eps * weight.abs().max().item()
    weft.testing.assert_close(got, exact, rtol=0, atol=bound)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("threads", [1, 2])
def test_without_vectors(format: weft.memory_format, threads: int) -> None:
    x, weight, bias, upstream = data((4, 8, 60, 40))
    x = x.contiguous(memory_format=format).requires_grad_()
    ones, zeros = weft.ones_like(weight), weft.zeros_like(bias)
    before = weft.get_num_threads()
    weft.set_num_threads(threads)
    try:
        for given in ((None, None), (weight, None), (None, bias)):
            whole = [own if own is not None else other for own, other in zip(given, (ones, zeros))]
            mine, other = F.group_norm(x, 4, *given), in_operators(x, 4, *whole)
            weft.testing.assert_close(mine, other)
            gradients = [weft.autograd.grad(each, x, upstream)[0] for each in (mine, other)]
            weft.testing.assert_close(*gradients)
    finally:
        weft.set_num_threads(before)


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0), (2, 0, 3)])
def test_nothing_is_normalised(shape: tuple[int, ...]) -> None:
    x, weight = weft.ones(*shape, requires_grad=True), weft.ones(shape[1], requires_grad=True)
    y = F.group_norm(x, 2, weight)
    y.sum().backward()
    assert y.shape == shape and x.grad.shape == shape
    assert weft.equal(weight.grad, weft.zeros(shape[1]))


@pytest.mark.parametrize("format", FORMATS)
def test_second_derivatives(format: weft.memory_format) -> None:
    x, weight, bias, _ = data((2, 4, 3, 2))
    x = x.contiguous(memory_format=format)
    leaves = [each.clone().requires_grad_() for each in (x, weight, bias)]

    def norm(x: weft.Tensor, *vectors: weft.Tensor) -> weft.Tensor:
        return F.group_norm(x, 2, *vectors)

    assert weft.autograd.gradcheck(norm, leaves) and weft.autograd.gradgradcheck(norm, leaves)
    assert weft.autograd.gradgradcheck(norm, leaves[:1])
    assert weft.autograd.gradgradcheck(norm, leaves[:2])
