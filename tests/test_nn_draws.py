"""Bags of embeddings, and activations that draw."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import nn
from weft.autograd import gradcheck
from weft.nn import functional as F

TABLE = np.random.default_rng(4).normal(size=(7, 3))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode: str) -> None:
    fold = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    table = weft.from_numpy(TABLE.copy()).requires_grad_()
    rows = weft.tensor([[1, 4, 2], [0, 6, 3]])
    expected = fold(TABLE[rows.numpy()], 1)
    np.testing.assert_allclose(F.embedding_bag(rows, table, mode=mode).detach().numpy(), expected)
    flat, offsets = rows.reshape(-1), weft.tensor([0, 2, 2])
    got = F.embedding_bag(flat, table, offsets, mode=mode).detach().numpy()
    np.testing.assert_allclose(got[0], fold(TABLE[[1, 4]], 0))
    np.testing.assert_array_equal(got[1], 0)  # an empty bag
    np.testing.assert_allclose(got[2], fold(TABLE[[2, 0, 6, 3]], 0))
    ends = weft.tensor([0, 2, 2, 6])
    last = F.embedding_bag(flat, table, ends, mode=mode, include_last_offset=True)
    np.testing.assert_array_equal(last.detach().numpy(), got)
    padded = F.embedding_bag(rows, table, mode=mode, padding_idx=4).detach().numpy()
    np.testing.assert_allclose(padded[0], fold(TABLE[[1, 2]], 0))
    assert gradcheck(lambda t: F.embedding_bag(rows, t, mode=mode), [table])


def test_embedding_bag_weights_and_errors() -> None:
    table, rows = weft.from_numpy(TABLE), weft.tensor([[1, 4], [0, 6]])
    weights = weft.tensor([[2.0, -1.0], [0.5, 3.0]], dtype=weft.float64).requires_grad_()

    def weighted(w: weft.Tensor) -> weft.Tensor:
        return F.embedding_bag(rows, table, mode="sum", per_sample_weights=w)

    np.testing.assert_allclose(weighted(weights)[0].detach().numpy(), 2 * TABLE[1] - TABLE[4])
    assert gradcheck(weighted, [weights])
    layer = nn.EmbeddingBag(7, 3, mode="sum", padding_idx=0)
    assert layer.weight[0].tolist() == [0, 0, 0]
    assert tuple(layer(rows).shape) == (2, 3)
    with pytest.raises(ValueError, match="embedding_bag: expected mode 'sum', 'mean' or 'max'"):
        F.embedding_bag(rows, table, mode="min")
    with pytest.raises(ValueError, match="expected offsets that rise from 0 to at most 4"):
        F.embedding_bag(rows.reshape(-1), table, weft.tensor([0, 5]))


def test_rrelu_and_gumbel_softmax() -> None:
    weft.manual_seed(1)
    x = weft.tensor([-2.0] * 2000 + [3.0])
    y = nn.RReLU(0.1, 0.3)(x)
    slopes = y[:-1] / -2
    assert (
        y[-1].item() == 3 and 0.1 <= slopes.min().item() < 0.11 < 0.29 < slopes.max().item() <= 0.3
    )
    assert nn.RReLU(0.1, 0.3).eval()(x)[0].item() == pytest.approx(-0.4)
    logits = weft.tensor([[0.0, 1.0, 2.0]]).expand(4000, 3).contiguous().requires_grad_()
    drawn = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert drawn.sum(1).round(decimals=5).unique().tolist() == [1]
    shares = drawn.detach().mean(0).numpy()
    np.testing.assert_allclose(shares, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=0.03)
    drawn[:, 0].sum().backward()
    assert logits.grad is not None and bool((logits.grad[:, 0] > 0).any())
