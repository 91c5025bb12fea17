"""Gradients of rows that the table's own samples cannot reach: writes in place, symmetric matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.autograd import gradcheck, gradgradcheck

MASK = weft.tensor([[True, False, True], [False, True, False]])
ROWS = weft.tensor([1, 0])
WHERE = weft.tensor([[1, 0, 2], [2, 1, 0]])


def matrix(seed: int, *shape: int) -> weft.Tensor:
    generator = weft.Generator().manual_seed(seed)
    return weft.rand(*shape, dtype=weft.float64, generator=generator) + 0.2


#: function of x and y, both 2 x 3; x is written to, so a copy of it is
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "copy_": lambda x, y: x.copy_(y),
    "copy_ broadcast": lambda x, y: x.copy_(y[0]),
    "copy_ into a view": lambda x, y: x[:, 1:].copy_(y[:, 1:]),
    "fill_.Scalar": lambda x, y: x.fill_(2.0),
    "fill_.Tensor": lambda x, y: x.fill_(y[0, 0]),
    "zero_": lambda x, y: x[0].zero_(),
    "index_put_": lambda x, y: x.index_put_([ROWS], y),
    "index_put_ accumulate": lambda x, y: x.index_put_([ROWS], y, True),
    "index_add_": lambda x, y: x.index_add_(0, ROWS, y, alpha=2),
    "index_copy_": lambda x, y: x.index_copy_(0, ROWS, y),
    "index_fill_.int_Scalar": lambda x, y: x.index_fill_(1, ROWS, 2.0),
    "index_fill_.int_Tensor": lambda x, y: x.index_fill_(1, weft.tensor([0, 2, 0, -1]), y[0, 0]),
    "scatter_.src": lambda x, y: x.scatter_(1, WHERE, y),
    "scatter_.value": lambda x, y: x.scatter_(1, WHERE[:, :1], 2.0),
    "scatter_add_": lambda x, y: x.scatter_add_(1, WHERE, y),
    "masked_scatter_": lambda x, y: x.masked_scatter_(MASK, y),
    "masked_fill_": lambda x, y: x.masked_fill_(MASK, y[0, 0]),
    "tril_": lambda x, y: x.tril_(),
    "triu_": lambda x, y: x.triu_(),
    "t_": lambda x, y: x.t_(),
    "transpose_": lambda x, y: x.transpose_(0, 1),
    "unsqueeze_": lambda x, y: x.unsqueeze_(1),
    "squeeze_": lambda x, y: (x.unsqueeze(0) * 1.0).squeeze_(),
    "t_ of a view": lambda x, y: x[:, 1:].t_().mul_(3.0),
    "transpose_ of a view": lambda x, y: x[1:].transpose_(0, 1) * y[0].sum(),
    "unsqueeze_ of a view": lambda x, y: x[1].unsqueeze_(1).mul_(y[:1].t()),
    "squeeze_ of a view": lambda x, y: x[:, :1].squeeze_().mul_(y[:, 0]),
    "squeeze_.dim of a view of a view": lambda x, y: x[:, 1:][:1].squeeze_(0).mul_(2.0),
    "square_": lambda x, y: x.square_(),
    "ldexp_": lambda x, y: x.ldexp_(y),
    "logit_": lambda x, y: x.mul_(0.4).logit_(),
    "logit_ eps": lambda x, y: x.mul_(0.4).logit_(0.2),
    "nan_to_num_": lambda x, y: x.nan_to_num_(1.0),
    "scatter_.reduce": lambda x, y: x.scatter_(1, WHERE, y, reduce="multiply"),
    "scatter_.value_reduce": lambda x, y: x.scatter_(1, WHERE, 3.0, reduce="add"),
    "clamp_": lambda x, y: x.clamp_(0.3, 0.9),
    "clamp_.Tensor": lambda x, y: x.clamp_(y * 0.5, y * 1.5),
    "div_.Scalar_mode": lambda x, y: x.div_(2, rounding_mode="floor"),
    "gelu_": lambda x, y: weft._C._aten.gelu_(x),
    "erfinv_": lambda x, y: x.mul_(0.4).erfinv_(),
    "uniform_": lambda x, y: x[0].uniform_(generator=weft.Generator().manual_seed(1)),
}


@pytest.mark.parametrize("name", WRITES)
def test_in_place(name: str) -> None:
    def function(x: weft.Tensor, y: weft.Tensor) -> weft.Tensor:
        x = x * 1.0
        result = WRITES[name](x, y)
        return result + x * y.sum() if result.shape == x.shape else x * x

    inputs = [matrix(1, 2, 3).requires_grad_(), matrix(2, 2, 3).requires_grad_()]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


#: forms whose derivative can be told from the result, where the factor is positive
OF_RESULT: dict[str, Callable[[Any, float], Any]] = {
    "leaky_relu_": lambda x, factor: weft._C._nn.leaky_relu_(x, 0.2 * factor),
    "elu_": lambda x, factor: weft._C._nn.elu_(x, 0.7 * factor, 1.3, 0.4),
    "hardtanh_": lambda x, factor: weft._C._nn.hardtanh_(x, -0.5, 0.8),
}


@pytest.mark.parametrize("factor", [1, -1])
@pytest.mark.parametrize("name", OF_RESULT)
def test_in_place_forms_keep_a_copy_only_where_they_must(name: str, factor: float) -> None:
    x = ((matrix(5, 3, 4) - 0.7) * 3).requires_grad_()
    write = OF_RESULT[name]
    assert gradcheck(lambda x: write(x.clone(), factor), [x])
    assert gradgradcheck(lambda x: write(x.clone(), factor), [x])
    kept: list[int] = []

    def pack(tensor: weft.Tensor) -> weft.Tensor:
        kept.append(tensor.data_ptr())
        return tensor

    target = x.clone()
    with weft.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = write(target, factor)
    assert (kept == [result.data_ptr()]) == (factor > 0 or name == "hardtanh_")


#: of a symmetric positive definite matrix: those operators read one triangle only
SYMMETRIC: dict[str, Callable[[Any], Any]] = {
    "linalg_cholesky": lambda a: weft.linalg.cholesky(a),
    "linalg_eigvalsh": lambda a: weft.linalg.eigvalsh(a),
    "linalg_eigh": lambda a: weft.linalg.eigh(a)[0],
    "linalg_slogdet": lambda a: weft.linalg.slogdet(a)[1],
    "linalg_qr": lambda a: weft.linalg.qr(a)[1],
    "linalg_svd": lambda a: weft.linalg.svd(a)[1],
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_of_a_symmetric_matrix(name: str) -> None:
    def function(a: weft.Tensor) -> Any:
        return SYMMETRIC[name](a @ a.mT + weft.eye(3, dtype=weft.float64))

    assert gradcheck(function, [matrix(3, 3, 3).requires_grad_()])


#: functions of decompositions that do not see the freedom of their vectors (signs and phases)
WITHOUT_GAUGE: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda a: weft.linalg.eigh(a + a.mH)[1].abs(),
    "eigh upper": lambda a: weft.linalg.eigh(a + a.mH, UPLO="U")[1].abs(),
    "eigh projector": lambda a: _projector(weft.linalg.eigh(a + a.mH)[1][..., :2]),
    "svd u": lambda a: weft.linalg.svd(a, False)[0].abs(),
    "svd v": lambda a: weft.linalg.svd(a, False)[2].abs(),
    "svd low rank": lambda a: _low_rank(*weft.linalg.svd(a, False)),
    "svd, V for its adjoint": lambda a: (lambda u, s, v: _low_rank(u, s, v.mH))(*weft.svd(a)),
    "qr q": lambda a: weft.linalg.qr(a)[0].abs(),
    "qr r": lambda a: weft.linalg.qr(a)[1].abs(),
    "cholesky": lambda a: weft.linalg.cholesky(a @ a.mH + weft.eye(a.size(-2), dtype=a.dtype)),
    "pinv": lambda a: weft.linalg.pinv(a),
    "lstsq": lambda a: weft.linalg.lstsq(a, a[..., :1] * 2 + 1)[0],
    "slogdet": lambda a: weft.linalg.slogdet(a @ a.mH),
    "det": lambda a: weft.linalg.det(a[..., :3]),
    "inv": lambda a: weft.linalg.inv(a[..., :3]),
    "solve": lambda a: weft.linalg.solve(a[..., :3], a),
    "solve from the right": lambda a: weft.linalg.solve(a[..., :3], a.mH, left=False),
    "cholesky_solve": lambda a: weft.cholesky_solve(a, a[..., :3].tril()),
    "cholesky_inverse": lambda a: weft.cholesky_inverse(a[..., :3].tril()),
    "cholesky_inverse upper": lambda a: weft.cholesky_inverse(a[..., :3].triu(), True),
}
SQUARE = ("eigh", "eigh upper", "eigh projector")
WIDE_OR_SQUARE = (
    "det", "inv", "solve", "solve from the right", "cholesky_solve", "slogdet",
    "cholesky_inverse", "cholesky_inverse upper",
)  # fmt: skip


def _projector(vectors: weft.Tensor) -> weft.Tensor:
    return vectors @ vectors.mH


def _low_rank(u: weft.Tensor, s: weft.Tensor, vh: weft.Tensor) -> weft.Tensor:
    return (u[..., :2] * s[..., :2].unsqueeze(-2)) @ vh[..., :2, :]


def _shapes(name: str) -> list[tuple[int, ...]]:
    if name in SQUARE:
        return [(3, 3), (2, 3, 3)]
    return [(3, 3), (3, 4)] if name in WIDE_OR_SQUARE else [(3, 3), (4, 3), (3, 4), (2, 3, 2)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", WITHOUT_GAUGE)
def test_decompositions(name: str, dtype: str) -> None:
    for shape in _shapes(name):
        a = matrix(11, *shape) * 2 + 0.1
        if dtype == "complex128":
            a = a + matrix(12, *shape) * 1j
        if shape[-1] == shape[-2]:
            a = a + weft.eye(shape[-1], dtype=a.dtype) * 2
        leaf = a.detach().requires_grad_()
        assert gradcheck(WITHOUT_GAUGE[name], [leaf])
        assert gradgradcheck(WITHOUT_GAUGE[name], [leaf])


def test_the_value_of_mode_and_what_nan_to_num_replaces() -> None:
    x = matrix(5, 2, 3).requires_grad_()
    assert gradcheck(lambda x: (x * 1.0).mode(1)[0], [x])
    assert gradcheck(lambda x: (x * 1.0).mode(0, keepdim=True)[0], [x])
    for hole in (weft.inf, -weft.inf, weft.nan):
        assert gradcheck(lambda x: x.masked_fill(MASK, hole).nan_to_num(2.0, 3.0, 4.0) * x, [x])  # noqa: B023


def test_hardtanh_at_its_limits_and_at_nan() -> None:
    """At a limit the gradient is 0; NaN passes it on, as in relu: no value is hidden."""
    x = weft.tensor([float("nan"), -1, 0, 1, 2], requires_grad=True)
    weft.nn.functional.hardtanh(x).backward(weft.full((5,), 3.0))
    assert x.grad is not None and x.grad.tolist() == [3, 0, 3, 0, 0]


def test_hardswish_and_hardsigmoid_at_their_limits_and_at_nan() -> None:
    x = weft.tensor([float("nan"), -3, 0, 3, 4], requires_grad=True)
    for function, slopes in (
        (weft.nn.functional.hardswish, [1, 0, 0.5, 1, 1]),
        (weft.nn.functional.hardsigmoid, [0, 0, 1 / 6, 0, 0]),
    ):
        (grad,) = weft.autograd.grad(function(x).sum(), x)
        assert weft.allclose(grad, weft.tensor(slopes, dtype=weft.float32))
