"""Cases of the random rows: determinism under a seed, ranges and moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

from .spec import A, Fails, S, case

_N = 40_000


def _same_after_seed(draw: Callable[[], Any]) -> Any:
    """The draw, checked to repeat under the same seed and to change without one."""
    weft.manual_seed(7)
    first = draw()
    second = draw()
    weft.manual_seed(7)
    assert draw().tolist() == first.tolist()
    assert first.tolist() != second.tolist()
    return first


def _moments(values: Any, mean: float, std: float) -> None:
    values = values.double()
    assert abs(values.mean().item() - mean) < 6 * std / _N**0.5
    assert abs(values.std().item() / std - 1) < 0.03


def _uniform(low: float, high: float, draw: Callable[[], Any]) -> None:
    values = _same_after_seed(draw)
    assert low <= values.min().item() <= values.max().item() < high
    _moments(values, (low + high) / 2, (high - low) / 12**0.5)


def _inplace(function: Any, *args: float) -> Callable[[], Any]:
    return lambda: function(weft.empty(_N), *args)


case("rand", check=lambda f: _uniform(0, 1, lambda: f(_N)), grad=False)
case("rand_like", check=lambda f: _uniform(0, 1, lambda: f(weft.empty(_N))), grad=False)
case(
    "uniform_",
    check=lambda f: _uniform(-2, 3, _inplace(f, -2, 3)),
    grad=False,
    fails=(
        Fails(S(A((2,)), 0, 1e300), RuntimeError, "uniform_: expected a range inside float32, got [0, 1e+300)"),
    ),
)
case("randn", check=lambda f: _moments(_same_after_seed(lambda: f(_N)), 0, 1), grad=False)
case("randn_like", check=lambda f: _moments(_same_after_seed(lambda: f(weft.empty(_N))), 0, 1), grad=False)
case("normal_", check=lambda f: _moments(_same_after_seed(_inplace(f, 3, 2)), 3, 2), grad=False)


def _integers(values: Any, low: int, high: int) -> None:
    assert values.dtype == weft.int64
    assert (values.min().item(), values.max().item()) == (low, high - 1)


case("randint", check=lambda f: _integers(_same_after_seed(lambda: f(9, (_N,))), 0, 9), grad=False)
case("randint.low", check=lambda f: _integers(_same_after_seed(lambda: f(-4, 9, (_N,))), -4, 9), grad=False)


def _permutation(function: Any) -> None:
    order = _same_after_seed(lambda: function(1000))
    assert sorted(order.tolist()) == list(range(1000))


case(
    "randperm",
    check=_permutation,
    grad=False,
    fails=(
        Fails(S(257, dtype=weft.uint8), RuntimeError, "randperm: expected n that uint8 can count to, got 257"),
    ),
)


def _coin(values: Any, p: float) -> None:
    assert set(values.tolist()) == {0.0, 1.0}
    _moments(values, p, (p * (1 - p)) ** 0.5)


case("bernoulli", check=lambda f: _coin(_same_after_seed(lambda: f(weft.full((_N,), 0.3))), 0.3), grad=False)
case("bernoulli_.float", check=lambda f: _coin(_same_after_seed(_inplace(f, 0.7)), 0.7), grad=False)


def _dropout(function: Any) -> None:
    x = weft.ones(_N, requires_grad=True)
    y = function(x, 0.25, True)
    assert sorted(set(y.tolist())) == [0.0, weft.tensor(1 / 0.75).item()]
    assert abs((y == 0).double().mean().item() - 0.25) < 0.02
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert function(x, 0.25, False).tolist() == x.tolist()


case("dropout", check=_dropout, grad=False)


def _multinomial(function: Any) -> None:
    weights = weft.tensor([0.0, 1.0, 3.0])
    drawn = _same_after_seed(lambda: function(weights, _N, True))
    assert (drawn == 0).sum().item() == 0
    assert abs((drawn == 2).double().mean().item() - 0.75) < 0.02
    assert sorted(function(weights, 2).tolist()) == [1, 2]


case("multinomial", check=_multinomial, grad=False)


def _poisson(function: Any) -> None:
    """The counts of each rate against its probabilities: Pearson's chi-square, cells of 5 or more
    expected counts. 50 cells exceed their mean by 5 deviations for one seed in a million."""
    for rate in (0.3, 4.0, 9.9, 10.0, 12.5, 300.0):
        counts = _same_after_seed(lambda rate=rate: function(weft.full((_N,), rate, dtype=weft.float64)))
        _moments(counts, rate, rate**0.5)
        values = np.arange(int(rate + 12 * rate**0.5 + 12))
        steps = [math.log(rate / k) for k in values[1:]]
        expected = _N * np.exp(np.cumsum([-rate, *steps]))
        seen = np.bincount(counts.long().numpy(), minlength=len(values))
        often = expected >= 5
        cells = [*zip(seen[often], expected[often], strict=True), (seen[~often].sum(), expected[~often].sum())]
        chi_square = sum((found - wanted) ** 2 / wanted for found, wanted in cells if wanted > 1)
        freedom = len(cells) - 1
        assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5, (rate, chi_square, freedom)


case("poisson", check=_poisson, grad=False)


def _gamma(function: Any) -> None:
    for shape in (0.3, 1.0, 7.5):
        drawn = _same_after_seed(lambda shape=shape: function(weft.full((_N,), shape)))
        assert abs(drawn.double().mean().item() - shape) < 6 * (shape / _N) ** 0.5
        assert (
            abs(drawn.double().var().item() / shape - 1) < 0.06
        )  # its deviation: (2 + 6 / shape) / n, root
    assert function(weft.zeros(2)).tolist() == [weft.finfo(weft.float32).tiny] * 2


def _dirichlet(function: Any) -> None:
    drawn = _same_after_seed(lambda: function(weft.tensor([0.5, 1.0, 2.5]).expand(_N, 3))).double()
    assert (drawn.sum(-1) - 1).abs().max().item() < 1e-6
    for mean, share in zip(drawn.mean(0).tolist(), (0.125, 0.25, 0.625), strict=True):
        assert abs(mean - share) < 6 * (share * (1 - share) / 5 / _N) ** 0.5


def _binomial(function: Any) -> None:
    for count, chance in ((4, 0.3), (100, 0.6), (9, 0.9)):
        drawn = _same_after_seed(
            lambda n=count, p=chance: function(weft.full((_N,), float(n)), weft.tensor(p))
        )
        _moments(drawn, count * chance, (count * chance * (1 - chance)) ** 0.5)
    assert function(weft.tensor([3.0, 4.0]), weft.tensor([0.0, 1.0])).tolist() == [0, 4]


case("_standard_gamma", check=_gamma, grad=False)
case("_sample_dirichlet", check=_dirichlet, grad=False)
case("binomial", check=_binomial, grad=False)

# ---- the rest of the family ----
case("exponential_", check=lambda f: _moments(_same_after_seed(_inplace(f, 2.0)), 0.5, 0.5), grad=False)
case("bernoulli.p", check=lambda f: _coin(_same_after_seed(lambda: f(weft.empty(_N), 0.3)), 0.3), grad=False)
case("bernoulli_.Tensor", check=lambda f: _coin(_same_after_seed(lambda: f(weft.empty(_N), weft.full((_N,), 0.6))), 0.6), grad=False)


def _whole(function: Any, *args: int) -> Callable[[], Any]:
    return lambda: function(weft.empty(_N, dtype=weft.int64), *args)


case("random_", check=lambda f: _same_after_seed(_whole(f)), grad=False)
case("random_.to", check=lambda f: _integers(_same_after_seed(_whole(f, 9)), 0, 9), grad=False)
case("random_.from", check=lambda f: _integers(_same_after_seed(_whole(f, -4, 9)), -4, 9), grad=False)
case("randint_like", check=lambda f: _integers(_same_after_seed(lambda: f(weft.empty(_N, dtype=weft.int64), 9)), 0, 9), grad=False)
case("randint_like.low_dtype", check=lambda f: _integers(_same_after_seed(lambda: f(weft.empty(_N, dtype=weft.int64), -4, 9)), -4, 9), grad=False)
case("normal.float_float", check=lambda f: _moments(_same_after_seed(lambda: f(3.0, 2.0, (_N,))), 3, 2), grad=False)
case("normal.Tensor_float", check=lambda f: _moments(_same_after_seed(lambda: f(weft.full((_N,), 3.0), 2.0)), 3, 2), grad=False)
case("normal.float_Tensor", check=lambda f: _moments(_same_after_seed(lambda: f(3.0, weft.full((_N,), 2.0))), 3, 2), grad=False)
case("normal.Tensor_Tensor", check=lambda f: _moments(_same_after_seed(lambda: f(weft.full((_N,), 3.0), weft.full((_N,), 2.0))), 3, 2), grad=False)


def _with_generator(draw: Callable[[Any], Any]) -> None:
    """A generator of one's own repeats under its seed and leaves the default one alone."""
    state = weft.get_rng_state().tolist()
    first = draw(weft.Generator().manual_seed(3)).tolist()
    assert draw(weft.Generator().manual_seed(3)).tolist() == first
    assert draw(weft.Generator().manual_seed(4)).tolist() != first
    assert weft.get_rng_state().tolist() == state


case("rand.generator", check=lambda f: _with_generator(lambda g: f(9, generator=g)), grad=False)
case("randn.generator", check=lambda f: _with_generator(lambda g: f(9, generator=g)), grad=False)
case("randint.generator", check=lambda f: _with_generator(lambda g: f(99, (9,), generator=g)), grad=False)
case("randint.low_generator", check=lambda f: _with_generator(lambda g: f(-9, 99, (9,), generator=g)), grad=False)
case("rand_like.generator", check=lambda f: _with_generator(lambda g: f(weft.empty(9), generator=g)), grad=False)
case("randn_like.generator", check=lambda f: _with_generator(lambda g: f(weft.empty(9), generator=g)), grad=False)
case("randint_like.generator", check=lambda f: _with_generator(lambda g: f(weft.empty(9), 99, generator=g)), grad=False)
case("randint_like.low_generator_dtype", check=lambda f: _with_generator(lambda g: f(weft.empty(9), -9, 99, generator=g)), grad=False)
case("randperm.generator", check=lambda f: _with_generator(lambda g: f(99, generator=g)), grad=False)


def _quartiles(values: Any, low: float, high: float) -> None:
    ordered = values.double().sort()[0]
    assert abs(ordered[_N // 4].item() - low) < 0.05 * max(1, abs(low))
    assert abs(ordered[3 * _N // 4].item() - high) < 0.05 * max(1, abs(high))


case("log_normal_", check=lambda f: _moments(_same_after_seed(_inplace(f, 1.0, 0.5)).log(), 1.0, 0.5), grad=False)
case("cauchy_", check=lambda f: _quartiles(_same_after_seed(_inplace(f, 1.0, 2.0)), -1.0, 3.0), grad=False)
case("geometric_", check=lambda f: _moments(_same_after_seed(_inplace(f, 0.25)), 4.0, 12**0.5), grad=False)
