"""Losses by margins and distances, and the alignment loss, against plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import nn
from weft.autograd import gradcheck
from weft.nn import functional as F

RNG = np.random.default_rng(9)
X, Y, Z = (RNG.normal(size=(4, 5)) for _ in range(3))
SIGNS = RNG.choice([-1.0, 1.0], (4, 5))
LABELS = np.array([2, 0, 4, 1])
MANY = np.array([[0, 3, -1, -1, -1], [1, -1, 2, 3, 4], [4, 2, 1, -1, 0], [-1, 0, 0, 0, 0]])
POSITIVE = RNG.uniform(0.2, 4, (4, 5))


def _hinge(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _distance(a: np.ndarray, b: np.ndarray, p: float = 2, eps: float = 1e-6) -> np.ndarray:
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def _multi_margin(p: int) -> list[float]:
    return [
        sum(max(0, 1 - x[t] + x[i]) ** p for i in range(5) if i != t) / 5 for x, t in zip(X, LABELS)
    ]


def _multilabel() -> list[float]:
    losses = []
    for x, row in zip(X, MANY):
        inside = list(itertools.takewhile(lambda t: t >= 0, row))
        outside = [i for i in range(5) if i not in inside]
        losses.append(sum(max(0, 1 - (x[t] - x[i])) for t in inside for i in outside) / 5)
    return losses


def _log_sigmoid(x: np.ndarray) -> np.ndarray:
    return -np.log1p(np.exp(-x))


_STIRLING = np.where(
    POSITIVE > 1, POSITIVE * np.log(POSITIVE) - POSITIVE + 0.5 * np.log(2 * np.pi * POSITIVE), 0
)
# (function, float arguments, other arguments, options, expected losses)
CASES: list[tuple[Callable[..., Any], list[Any], list[Any], dict[str, Any], Any]] = [
    (F.margin_ranking_loss, [X, Y], [SIGNS], {"margin": 0.3}, _hinge(0.3 - SIGNS * (X - Y))),
    (F.hinge_embedding_loss, [X], [SIGNS], {"margin": 0.7}, np.where(SIGNS == 1, X, _hinge(0.7 - X))),
    (F.soft_margin_loss, [X], [SIGNS], {}, np.log1p(np.exp(-SIGNS * X))),
    (
        F.cosine_embedding_loss, [X, Y], [SIGNS[:, 0]], {"margin": 0.1},
        np.where(SIGNS[:, 0] == 1, 1 - _cosine(X, Y), _hinge(_cosine(X, Y) - 0.1)),
    ),
    (
        F.triplet_margin_loss, [X, Y, Z], [], {"margin": 0.9},
        _hinge(0.9 + _distance(X, Y) - _distance(X, Z)),
    ),
    (
        F.triplet_margin_loss, [X, Y, Z], [], {"p": 3, "swap": True},
        _hinge(1 + _distance(X, Y, 3) - np.minimum(_distance(X, Z, 3), _distance(Y, Z, 3))),
    ),
    (F.multi_margin_loss, [X], [LABELS], {}, _multi_margin(1)),
    (F.multi_margin_loss, [X], [LABELS], {"p": 2}, _multi_margin(2)),
    (F.multilabel_margin_loss, [X], [MANY], {}, _multilabel()),
    (
        F.multilabel_soft_margin_loss, [X], [SIGNS > 0], {},
        -np.where(SIGNS > 0, _log_sigmoid(X), _log_sigmoid(-X)).mean(-1),
    ),
    (F.poisson_nll_loss, [X], [POSITIVE], {}, np.exp(X) - POSITIVE * X),
    (F.poisson_nll_loss, [X], [POSITIVE], {"full": True}, np.exp(X) - POSITIVE * X + _STIRLING),
    (
        F.poisson_nll_loss, [POSITIVE], [POSITIVE], {"log_input": False},
        POSITIVE - POSITIVE * np.log(POSITIVE + 1e-8),
    ),
]  # fmt: skip


def _tensor(array: np.ndarray) -> weft.Tensor:
    values = array.astype("float64") if array.dtype.kind == "b" else array
    return weft.from_numpy(values.copy())


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{sorted(c[3])}")
def test_loss(case: Any) -> None:
    function, floats, others, options, expected = case
    fixed = [_tensor(a) for a in others]
    inputs = [_tensor(a).requires_grad_() for a in floats]
    for reduction, fold in (("none", np.asarray), ("mean", np.mean), ("sum", np.sum)):
        got = function(*inputs, *fixed, **options, reduction=reduction)
        np.testing.assert_allclose(got.detach().numpy(), fold(expected), rtol=1e-10)
    assert gradcheck(lambda *ts: function(*ts, *fixed, **options), inputs)
    with pytest.raises(ValueError, match="expected reduction 'none', 'mean' or 'sum', got 'most'"):
        function(*inputs, *fixed, **options, reduction="most")


@pytest.mark.parametrize("beyond", [(), (4,), (2, 3)])
@pytest.mark.parametrize("classes", [True, False])
def test_linear_cross_entropy_is_that_of_the_logits(beyond: tuple[int, ...], classes: bool) -> None:
    weft.manual_seed(0)
    loss = nn.LinearCrossEntropyLoss(
        3, 5, out_features=beyond, bias=True, weight=weft.rand(5), label_smoothing=0.1
    ).double()
    assert list(loss.state_dict()) == ["weight", "linear.weight", "linear.bias"]
    x = weft.randn(6, 3, dtype=weft.float64, requires_grad=True)
    target = weft.randint(0, 5, (6, *beyond)) if classes else weft.rand(6, 5, *beyond).softmax(1)
    logits = loss.linear(x).reshape(6, 5, *beyond)
    expected = F.cross_entropy(logits, target, loss.weight, label_smoothing=0.1)
    assert weft.allclose(loss(x, target), expected)
    assert gradcheck(lambda x: loss(x, target), [x])


def test_linear_cross_entropy_refuses() -> None:
    x, w, target = weft.ones(2, 3), weft.ones(4, 3), weft.zeros(2, dtype=weft.int64)
    assert F.linear_cross_entropy(x[0], w, target[0]).item() == pytest.approx(np.log(4))
    for given, text in (
        ({"input": x[None]}, r"expected input \[n, k\] for linear_weight .*got \(1, 2, 3\)"),
        ({"linear_weight": w[0]}, r"got \(2, 3\) and \(3,\)"),
        ({"linear_bias": weft.ones(3)}, r"expected linear_bias of shape \(4,\), got \(3,\)"),
        ({"target": weft.ones(2, 4), "ignore_index": -1}, "expected classes as target with ign"),
    ):
        with pytest.raises(RuntimeError, match=f"linear_cross_entropy: .*{text}"):
            F.linear_cross_entropy(**{"input": x, "linear_weight": w, "target": target, **given})


def test_layers_call_the_functions() -> None:
    x, y, z, signs = (weft.from_numpy(a) for a in (X, Y, Z, SIGNS))
    labels, many = weft.from_numpy(LABELS), weft.from_numpy(MANY)
    for layer, args, expected in (
        (nn.MarginRankingLoss(0.2), (x, y, signs), F.margin_ranking_loss(x, y, signs, 0.2)),
        (nn.HingeEmbeddingLoss(), (x, signs), F.hinge_embedding_loss(x, signs)),
        (
            nn.SoftMarginLoss(reduction="sum"),
            (x, signs),
            F.soft_margin_loss(x, signs, reduction="sum"),
        ),
        (nn.CosineEmbeddingLoss(), (x, y, signs[:, 0]), F.cosine_embedding_loss(x, y, signs[:, 0])),
        (nn.TripletMarginLoss(), (x, y, z), F.triplet_margin_loss(x, y, z)),
        (nn.TripletMarginWithDistanceLoss(), (x, y, z), F.triplet_margin_loss(x, y, z)),
        (nn.MultiMarginLoss(p=2), (x, labels), F.multi_margin_loss(x, labels, 2)),
        (nn.MultiLabelMarginLoss(), (x, many), F.multilabel_margin_loss(x, many)),
        (nn.PoissonNLLLoss(), (x, y.abs()), F.poisson_nll_loss(x, y.abs())),
        (nn.PairwiseDistance(3), (x, y), weft.from_numpy(_distance(X, Y, 3))),
    ):
        np.testing.assert_allclose(layer(*args).numpy(), expected.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="TripletMarginLoss: expected margin > 0, got 0"):
        nn.TripletMarginLoss(margin=0)
    with pytest.raises(RuntimeError, match="multi_margin_loss: expected an input"):
        F.multi_margin_loss(x, labels[:2])


def test_distances_and_products() -> None:
    x = weft.from_numpy(X).requires_grad_()
    pairs = [np.linalg.norm(X[i] - X[j]) for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(F.pdist(x).detach().numpy(), pairs)
    assert gradcheck(F.pdist, [x])
    w, b = weft.from_numpy(RNG.normal(size=(3, 5, 2))), weft.from_numpy(RNG.normal(size=3))
    y = weft.from_numpy(RNG.normal(size=(4, 2)))
    expected = np.einsum("ni,oij,nj->no", X, w.numpy(), y.numpy()) + b.numpy()
    np.testing.assert_allclose(F.bilinear(x, y, w, b).detach().numpy(), expected)
    assert tuple(nn.Bilinear(5, 2, 3)(weft.ones(4, 5), weft.ones(4, 2)).shape) == (4, 3)
    image = RNG.normal(size=(2, 5, 3))
    squares = np.pad(image**2, [(0, 0), (1, 1), (0, 0)])
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    got = F.local_response_norm(weft.from_numpy(image), 3, 0.5, 0.75, 2.0)
    np.testing.assert_allclose(got.numpy(), image / (2 + 0.5 * sums / 3) ** 0.75)


# ---- alignment ----


def _chance(probabilities: np.ndarray, target: list[int], blank: int) -> float:
    """The sum over all paths that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(probabilities.shape[1]), repeat=len(probabilities)):
        spelled = [c for c, _ in itertools.groupby(path) if c != blank]
        if spelled == target:
            total += math.prod(p[c] for p, c in zip(probabilities, path))
    return total


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_loss_is_the_sum_over_all_paths(blank: int) -> None:
    scores = weft.from_numpy(RNG.normal(size=(5, 3, 3))).requires_grad_()
    letters = [c for c in range(3) if c != blank]
    targets = [[letters[0], letters[0]], [letters[1]], []]
    lengths = [5, 4, 3]
    rows = weft.tensor([t + [letters[0]] * (2 - len(t)) for t in targets])
    flat = weft.tensor([c for t in targets for c in t])
    counts = [len(t) for t in targets]
    chances = np.exp(F.log_softmax(scores.detach(), 2).numpy())
    expected = [
        -math.log(_chance(chances[:n, i], t, blank))
        for i, (n, t) in enumerate(zip(lengths, targets))
    ]
    for given in (rows, flat):
        losses = F.ctc_loss(F.log_softmax(scores, 2), given, lengths, counts, blank, "none")
        np.testing.assert_allclose(losses.detach().numpy(), expected, rtol=1e-10)
    mean = F.ctc_loss(
        F.log_softmax(scores, 2), rows, weft.tensor(lengths), weft.tensor(counts), blank
    )
    assert mean.item() == pytest.approx(np.mean([e / max(c, 1) for e, c in zip(expected, counts)]))
    assert gradcheck(
        lambda t: F.ctc_loss(F.log_softmax(t, 2), rows, lengths, counts, blank), [scores]
    )


def test_ctc_loss_of_what_cannot_be_spelled() -> None:
    x = F.log_softmax(weft.zeros(2, 1, 3), 2).requires_grad_()
    targets = weft.tensor([[1, 1]])  # needs a blank between: three steps
    assert F.ctc_loss(x, targets, [2], [2]).item() == math.inf
    loss = F.ctc_loss(x, targets, [2], [2], zero_infinity=True)
    assert loss.item() == 0
    assert nn.CTCLoss(zero_infinity=True)(x, targets, [2], [2]).item() == 0
    with pytest.raises(
        RuntimeError, match=r"ctc_loss: expected 1 input_lengths in \[0, 2\], got \[3\]"
    ):
        F.ctc_loss(x, targets, [3], [2])


@pytest.mark.parametrize("given", [{"size_average": False}, {"size_average": True},
                                   {"reduce": False}, {"size_average": False, "reduce": True}])  # fmt: skip
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "kl_div",
                                  "binary_cross_entropy", "binary_cross_entropy_with_logits",
                                  "soft_margin_loss", "hinge_embedding_loss", "poisson_nll_loss",
                                  "multilabel_soft_margin_loss"])  # fmt: skip
def test_retired_arguments_mean_a_reduction(name, given):
    x, y = weft.rand(3, 4), weft.rand(3, 4)
    average, reduce = given.get("size_average"), given.get("reduce")
    meant = "none" if reduce is False else "sum" if average is False else "mean"
    function = getattr(weft.nn.functional, name)
    with pytest.warns(UserWarning, match=f"please use reduction='{meant}'"):
        found = function(x, y, **given)
    assert weft.equal(found, function(x, y, reduction=meant))


@pytest.mark.parametrize("name", ["MSELoss", "L1Loss", "CrossEntropyLoss", "BCELoss", "NLLLoss"])
def test_retired_arguments_of_modules(name):
    cls = getattr(weft.nn, name)
    with pytest.warns(UserWarning, match="please use reduction='sum'"):
        assert cls(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="please use reduction='none'"):
        assert cls(reduce=False).reduction == "none"


def test_retired_arguments_in_programs():
    def sum_of_squares(x, y):
        return weft.nn.functional.mse_loss(x, y, size_average=False)

    x, y = weft.rand(3), weft.rand(3)
    expected = weft.nn.functional.mse_loss(x, y, reduction="sum")
    with pytest.warns(UserWarning, match="please use reduction=.sum."):
        assert weft.equal(weft.jit.script(sum_of_squares)(x, y), expected)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_sizes_that_broadcast_are_warned_of(name: str) -> None:
    loss = getattr(weft.nn.functional, name)
    with pytest.warns(UserWarning, match=rf"^Using a target size .*\[3, 1\]\)\): {name}"):
        assert loss(weft.ones(3, 1), weft.zeros(3), reduction="none").shape == (3, 3)
    loss(weft.ones(3, 1), weft.zeros(3, 1))  # warnings are errors here


def test_losses_of_integers_and_of_one_sample() -> None:
    whole = weft.tensor([1, 2, 3])
    signs = weft.tensor([1, -1, 1])
    assert F.margin_ranking_loss(whole, whole + 1, signs, reduction="none").tolist() == [
        1.0,
        0.0,
        1.0,
    ]
    assert F.margin_ranking_loss(whole, whole + 1, signs).item() == pytest.approx(2 / 3)
    for target in (weft.tensor([2]), weft.tensor(2)):
        loss = F.multi_margin_loss(weft.rand(3), target, reduction="none")
        assert loss.shape == target.shape


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss"])
@pytest.mark.parametrize("order", [1, -1])
def test_targets_without_dimensions_count_for_the_dtype(name: str, order: int) -> None:
    """The losses broadcast their arguments before they subtract, so that no one is 0-d."""
    loss = getattr(weft.nn.functional, name)
    x, y = weft.ones(3, requires_grad=True), weft.tensor(1.5, dtype=weft.float64)
    found = loss(*(x, y)[::order], reduction="none")
    assert found.dtype is weft.float64 and found.shape == (3,)
    found.sum().backward()
    assert x.grad is not None and x.grad.dtype is weft.float32 and (x.grad < 0).all()


def test_gaussian_loss_of_numbers_has_no_dimensions() -> None:
    x, var = weft.tensor(1.0, dtype=weft.float64), weft.tensor(2.0)
    found = F.gaussian_nll_loss(x, weft.tensor(3), var, reduction="none")
    assert found.dtype is weft.float64 and found.shape == ()
    assert found.item() == pytest.approx((math.log(2) + 4 / 2) / 2, rel=1e-6)
