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
