"""Bags of embeddings, and activations that draw."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import weft
from weft import nn
from weft.autograd import gradcheck, gradgradcheck
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
    with pytest.raises(RuntimeError, match="expected offsets that rise from 0 to at most 4"):
        F.embedding_bag(rows.reshape(-1), table, weft.tensor([0, 5]))


def test_bags_have_gradients_of_both_orders_by_frequency_too() -> None:
    table = weft.from_numpy(TABLE.copy()).requires_grad_()
    entries, starts = weft.tensor([1, 4, 2, 1, 0, 1, 3, 5]).int(), weft.tensor([0, 3, 3, 6]).int()
    factors = weft.linspace(-1, 2, 8, dtype=weft.float64, requires_grad=True)
    for mean in (False, True):

        def bags(t: weft.Tensor, f: weft.Tensor, mean: bool = mean) -> weft.Tensor:
            return weft._C._aten._bag_sum(t, entries, starts, f, mean)

        assert gradcheck(bags, [table, factors])
        assert gradgradcheck(bags, [table, factors])
        rows = F.embedding(entries, table, scale_grad_by_freq=True)
        parts = [rows[:3], rows[3:3], rows[3:6], rows[6:]]
        expected = weft.stack([part.sum(0) / (max(len(part), 1) if mean else 1) for part in parts])
        mode = "mean" if mean else "sum"
        found = F.embedding_bag(entries, table, starts, mode=mode, scale_grad_by_freq=True)
        assert weft.allclose(found, expected)
        slopes = [weft.autograd.grad((each**2).sum(), table)[0] for each in (found, expected)]
        assert weft.allclose(*slopes)


def test_a_mean_of_16_bits_is_rounded_once() -> None:
    table = weft.full((2, 70), 60000.0, dtype=weft.float16)
    assert F.embedding_bag(weft.zeros(1, 40).long(), table).tolist() == [[60000.0] * 70]
    ones = weft.ones(1, 3, dtype=weft.bfloat16)
    assert F.embedding_bag(weft.zeros(1, 1000).long(), ones, mode="sum").tolist() == [[1000.0] * 3]


ROWS = [[1, 4, 2, 1], [0, 1, 3, 5]]


@pytest.mark.parametrize("order", [1.0, 2.0, 3.5, np.inf])
@pytest.mark.parametrize("call", ["embedding", "bag", "layer", "bag layer", "renorm_"])
def test_rows_that_are_named_get_a_norm_of_at_most_max_norm(call: str, order: float) -> None:
    table, rows = weft.from_numpy(TABLE.copy()), weft.tensor(ROWS)
    norms = np.linalg.norm(TABLE, order, 1, keepdims=True)
    limit = float(np.median(norms))
    expected = np.where(norms > limit, TABLE * limit / (norms + 1e-7), TABLE)
    expected[6] = TABLE[6]
    options = {"max_norm": limit, "norm_type": order}
    calls = {
        "embedding": lambda: F.embedding(rows, table, **options),
        "bag": lambda: F.embedding_bag(rows, table, **options),
        "layer": lambda: nn.Embedding.from_pretrained(table, **options)(rows),
        "bag layer": lambda: nn.EmbeddingBag.from_pretrained(table, **options)(rows),
        "renorm_": lambda: weft.embedding_renorm_(table, rows, limit, order)[rows],
    }
    result = calls[call]().numpy()
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-12)
    rows_of = expected[np.array(ROWS)]
    np.testing.assert_allclose(result, rows_of.mean(1) if "bag" in call else rows_of, rtol=1e-12)


def test_rows_within_max_norm_are_not_written() -> None:
    weight = weft.full((2, 2), 0.1, requires_grad=True)
    for limit, writes in ((1.0, False), (0.1, True)):
        saved = (weight * weight).sum()
        loss = saved + F.embedding(weft.tensor([0]), weight, max_norm=limit).sum()
        if writes:
            with pytest.raises(RuntimeError, match="it was changed in place after being saved"):
                loss.backward()
        else:
            loss.backward()


def test_gradients_of_rows_are_divided_by_their_counts() -> None:
    rows, counts = weft.tensor(ROWS), np.bincount(np.array(ROWS).reshape(-1), minlength=7)
    table = weft.from_numpy(TABLE.copy()).requires_grad_()
    factors = weft.from_numpy(1 / np.maximum(counts, 1)[:, None])
    direction = weft.from_numpy(TABLE[::-1].copy())
    functions = {
        "rows": F.embedding,
        "sums": partial(F.embedding_bag, mode="sum"),
        "means": partial(F.embedding_bag, mode="mean"),
    }
    for function in functions.values():
        start = weft.randn_like(function(rows, table)).requires_grad_()
        (plain,) = weft.autograd.grad(function(rows, table), table, start)
        scaled_rows = function(rows, table, scale_grad_by_freq=True)
        (scaled,) = weft.autograd.grad(scaled_rows, table, start, create_graph=True)
        np.testing.assert_allclose(scaled.detach().numpy(), (plain * factors).numpy())
        # The gradient is linear in that of the result, which is linear in the table.
        (second,) = weft.autograd.grad(scaled, start, direction)
        np.testing.assert_allclose(second.numpy(), function(rows, direction * factors).numpy())


def test_tables_show_and_check_their_options() -> None:
    table = weft.from_numpy(TABLE)
    options = {"max_norm": 1.0, "norm_type": 3.0, "scale_grad_by_freq": True, "padding_idx": -1}
    shown = "max_norm=1.0, norm_type=3.0, scale_grad_by_freq=True"
    assert repr(nn.Embedding(7, 3, **options)) == f"Embedding(7, 3, padding_idx=6, {shown})"
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum", **options)
    assert repr(bag) == f"EmbeddingBag(7, 3, {shown}, mode='sum', padding_idx=6)"
    assert not bag.weight.requires_grad and bag.weight.data_ptr() == table.data_ptr()
    assert nn.EmbeddingBag.from_pretrained(table, freeze=False).weight.requires_grad
    for layer in (nn.Embedding, nn.EmbeddingBag):
        with pytest.raises(AssertionError, match=r"expected padding_idx in \[-7, 7\), got -8"):
            layer(7, 3, padding_idx=-8)
        with pytest.raises(
            AssertionError, match=r"expected a weight of shape \(7, 3\), got \(3, 7\)"
        ):
            layer(7, 3, _weight=weft.ones(3, 7))
        with pytest.raises(AssertionError, match=r"expected a 2-d table, got shape \(3,\)"):
            layer.from_pretrained(table[0])
    rows = weft.tensor(ROWS)
    with pytest.raises(
        RuntimeError, match=r"embedding_bag: expected padding_idx in \[-7, 7\), got 7"
    ):
        F.embedding_bag(rows, table, padding_idx=7)
    with pytest.raises(ValueError, match="expected neither sparse nor scale_grad_by_freq"):
        F.embedding_bag(rows, table, mode="max", scale_grad_by_freq=True)
    with pytest.raises(NotImplementedError, match="expected mode 'sum' with per_sample_weights"):
        F.embedding_bag(rows, table, per_sample_weights=weft.ones(2, 4))
    with pytest.warns(UserWarning, match="input before the weight"):
        assert weft.equal(F.embedding_bag(table, rows), F.embedding_bag(rows, table))
    half = table.half()
    exact = F.embedding_bag(rows, half.double(), mode="sum").half()
    assert weft.equal(F.embedding_bag(rows, half, mode="sum"), exact)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1, -2])
@pytest.mark.parametrize("limit", [None, 1.0])
def test_bags_equal_torch(mode: str, padding: int | None, limit: float | None) -> None:
    torch = pytest.importorskip("torch")
    flat = np.array(ROWS).reshape(-1)
    cases: list[tuple[np.ndarray, dict[str, Any]]] = [
        (np.array(ROWS), {}),
        (np.array(ROWS, np.int32), {}),
        (flat, {"offsets": np.array([0, 3, 3, 8])}),
        (flat, {"offsets": np.array([0, 3, 7]), "include_last_offset": True}),
    ]
    if mode == "sum":
        cases.append((np.array(ROWS), {"per_sample_weights": np.linspace(-1, 1, 8).reshape(2, 4)}))
    for rows, options in cases:
        results = []
        for lib in (weft, torch):
            table = lib.tensor(TABLE).requires_grad_()
            given = {
                key: lib.tensor(value) if isinstance(value, np.ndarray) else value
                for key, value in options.items()
            }
            rest = {"mode": mode, "padding_idx": padding, "max_norm": limit}
            bags = lib.nn.functional.embedding_bag(lib.tensor(rows), table, **given, **rest)
            (bags**2).sum().backward()
            results.append([t.detach().numpy() for t in (bags, table, table.grad)])
        for ours, theirs in zip(*results):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


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
