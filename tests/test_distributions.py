"""weft.distributions beside PyTorch's, and against sums and integrals of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from libraries import both
from weft._C import _aten

import weft

MATRIX = [[2.0, 0.5], [0.5, 1.0]]
FACTOR = [[1.5, 0.0], [0.5, 1.0]]
# class, its parameters, and values of its support
CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("Normal", {"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("LogNormal", {"loc": [0.5, -1.0], "scale": [0.5, 1.0]}, [0.25, 3.0]),
    ("HalfNormal", {"scale": [0.5, 2.0]}, [0.25, 3.0]),
    ("Laplace", {"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("Uniform", {"low": [0.0, -1.0], "high": [1.0, 2.0]}, [0.25, 1.5]),
    ("Exponential", {"rate": [0.5, 3.0]}, [0.25, 1.5]),
    ("Cauchy", {"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("HalfCauchy", {"scale": [0.5, 2.0]}, [0.25, 3.0]),
    ("Gumbel", {"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("Weibull", {"scale": [0.5, 2.0], "concentration": [1.5, 3.0]}, [0.25, 1.5]),
    ("Pareto", {"scale": [0.5, 2.0], "alpha": [2.5, 6.0]}, [0.75, 3.0]),
    ("Kumaraswamy", {"concentration1": [0.5, 2.0], "concentration0": [1.5, 3.0]}, [0.25, 0.5]),
    ("GeneralizedPareto", {"loc": [0.5, 0.0], "scale": [1.0, 2.0], "concentration": [-0.25, 0.125]}, [1.0, 3.0]),
    ("GeneralizedPareto", {"loc": [0.5, 0.0], "scale": [1.0, 2.0], "concentration": [0.0, 0.75]}, [1.0, 3.0]),
    ("VonMises", {"loc": [0.5, -1.0], "concentration": [0.5, 5.0]}, [0.0, 3.0]),
    ("Gamma", {"concentration": [0.5, 3.0], "rate": [1.0, 2.0]}, [0.25, 3.0]),
    ("Chi2", {"df": [1.5, 6.0]}, [0.25, 3.0]),
    ("InverseGamma", {"concentration": [3.5, 6.0], "rate": [1.0, 2.0]}, [0.25, 3.0]),
    ("Beta", {"concentration1": [0.5, 3.0], "concentration0": [1.5, 2.0]}, [0.25, 0.5]),
    ("Dirichlet", {"concentration": [[0.5, 1.0, 3.0], [0.5, 0.75, 0.25]]}, [[0.25, 0.25, 0.5], [0.5, 0.125, 0.375]]),
    ("StudentT", {"df": [3.0, 8.0], "loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("FisherSnedecor", {"df1": [3.0, 8.0], "df2": [9.0, 10.0]}, [0.25, 3.0]),
    ("ContinuousBernoulli", {"probs": [0.25, 0.5]}, [0.25, 0.75]),
    ("ContinuousBernoulli", {"logits": [0.0005, -2.0]}, [0.25, 0.75]),
    ("Bernoulli", {"probs": [0.25, 0.75]}, [0.0, 1.0]),
    ("Bernoulli", {"logits": [0.25, -0.75]}, [0.0, 1.0]),
    ("Categorical", {"probs": [[1.0, 2.0, 1.0], [0.0, 0.5, 0.5]]}, [1, 2]),
    ("Categorical", {"logits": [[1.0, 2.0, 1.0], [0.0, 0.5, 0.5]]}, [1, 0]),
    ("OneHotCategorical", {"probs": [[1.0, 2.0], [3.0, 1.0]]}, [[1.0, 0.0], [0.0, 1.0]]),
    ("OneHotCategoricalStraightThrough", {"probs": [[1.0, 2.0], [3.0, 1.0]]}, [[1.0, 0.0], [0.0, 1.0]]),
    ("Poisson", {"rate": [0.5, 3.0]}, [0.0, 4.0]),
    ("Geometric", {"probs": [0.25, 0.75]}, [0.0, 4.0]),
    ("Geometric", {"logits": [0.25, -0.75]}, [0.0, 4.0]),
    ("Binomial", {"total_count": 4, "probs": [0.25, 0.75]}, [0.0, 3.0]),
    ("Binomial", {"total_count": 4, "logits": [0.25, -0.75]}, [0.0, 3.0]),
    ("NegativeBinomial", {"total_count": [2.5, 4.0], "probs": [0.25, 0.5]}, [0.0, 3.0]),
    ("Multinomial", {"total_count": 4, "probs": [[1.0, 2.0, 1.0], [0.25, 0.5, 0.25]]}, [[1.0, 2.0, 1.0], [0.0, 4.0, 0.0]]),
    ("MultivariateNormal", {"loc": [[0.5, -1.0], [0.0, 0.0]], "covariance_matrix": MATRIX}, [[0.25, 0.5], [1.0, 0.0]]),
    ("MultivariateNormal", {"loc": [[0.5, -1.0], [0.0, 0.0]], "precision_matrix": MATRIX}, [[0.25, 0.5], [1.0, 0.0]]),
    ("MultivariateNormal", {"loc": [0.5, -1.0], "scale_tril": [FACTOR, FACTOR]}, [[0.25, 0.5], [1.0, 0.0]]),
    ("LowRankMultivariateNormal", {"loc": [[0.5, -1.0], [0.0, 0.0]], "cov_factor": [[0.5], [2.0]], "cov_diag": [1.0, 0.5]}, [[0.25, 0.5], [1.0, 0.0]]),
    ("Wishart", {"df": [4.0, 6.5], "covariance_matrix": MATRIX}, [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.25], [0.25, 3.0]]]),
    ("Wishart", {"df": [4.0, 6.5], "precision_matrix": MATRIX}, [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.25], [0.25, 3.0]]]),
    ("LKJCholesky", {"dim": 2, "concentration": [0.5, 3.0]}, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0]]]),
    ("LogisticNormal", {"loc": [[0.5, -1.0], [0.0, 0.0]], "scale": [1.0, 2.0]}, [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]),
    ("RelaxedBernoulli", {"temperature": 0.5, "probs": [0.25, 0.75]}, [0.25, 0.5]),
    ("RelaxedBernoulli", {"temperature": 2.0, "logits": [0.25, 0.75]}, [0.25, 0.5]),
    ("RelaxedOneHotCategorical", {"temperature": 0.5, "probs": [[0.25, 0.75], [0.5, 0.5]]}, [[0.25, 0.75], [0.5, 0.5]]),
]  # fmt: skip
FIGURES = ("mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample")
FUNCTIONS = ("log_prob", "cdf", "entropy", "enumerate_support", "perplexity", "icdf")
NUMBERS = ("total_count", "dim")  # parameters that stay Python numbers
#: figures where PyTorch's formula is wrong or lacks a property that it says it has
BETTER = {
    ("Kumaraswamy", "mode"), ("Dirichlet", "mode"), ("Chi2", "repr"), ("OneHotCategorical", "repr"),
    ("OneHotCategoricalStraightThrough", "repr"),
}  # fmt: skip
INFINITE = frozenset(("Cauchy", "HalfCauchy"))
IDS = [f"{name}-{'-'.join(parameters)}" for name, parameters, _ in CASES]


def made(lib: Any, name: str, parameters: dict[str, Any], dtype: str = "float32") -> Any:
    tensors = {
        key: value
        if key in NUMBERS and isinstance(value, int)
        else lib.tensor(value, dtype=getattr(lib, dtype))
        for key, value in parameters.items()
    }
    return getattr(lib.distributions, name)(**tensors)


def as_lists(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def figures(lib: Any, name: str, parameters: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    """All that a distribution says of itself; the name of the error where it refuses."""
    one, found = made(lib, name, parameters), {}
    one = one.expand((2, *one.batch_shape))
    for each in (*FIGURES, *FUNCTIONS):
        try:
            got = getattr(one, each)
            if each in ("log_prob", "cdf"):
                got = got(lib.tensor(values))
            elif each == "icdf":
                got = got(lib.tensor([0.25, 0.125]))
            elif callable(got):
                got = got()
        except NotImplementedError:
            got = "NotImplementedError"
        except AttributeError:  # entropy of an expanded Multinomial
            assert lib is not weft
            continue
        found[each] = as_lists(got)
    lib.manual_seed(3)
    found["sample"] = one.sample((3,)).tolist()
    lib.manual_seed(3)
    found["rsample"] = one.rsample((3,)).tolist() if one.has_rsample else None
    found["repr"] = repr(made(lib, name, parameters))
    found["support"] = repr(one.support)
    return found


def assert_same(got: Any, expected: Any, message: str = "") -> None:
    if isinstance(expected, list):
        np.testing.assert_allclose(got, expected, rtol=3e-5, atol=3e-6, err_msg=message)
    else:
        assert got == expected, message


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=IDS)
def test_distributions_equal_torch(name: str, parameters: Any, values: Any) -> None:
    torch = pytest.importorskip("torch")
    got, expected = (figures(lib, name, parameters, values) for lib in (weft, torch))
    for key in expected:
        if (name, key) not in BETTER:
            assert_same(got[key], expected[key], key)


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=IDS)
def test_densities_are_what_is_drawn(name: str, parameters: Any, values: Any) -> None:
    """Mean, variance and entropy of samples are those that the formulas give."""
    weft.manual_seed(0)
    one = made(weft, name, parameters, "float64")
    drawn = one.sample((20_000,))
    assert drawn.shape == (20_000, *one.batch_shape, *one.event_shape)
    assert bool(one.support.check(drawn).all())
    assert one.log_prob(weft.tensor(values)).shape == one.batch_shape
    pairs = (
        []
        if name in ("Categorical", "VonMises")
        else [("mean", drawn.mean(0)), ("variance", drawn.var(0))]
    )
    for figure, found in pairs:
        try:
            expected = getattr(one, figure)
        except NotImplementedError:
            continue
        if expected.isfinite().all():
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0.2, atol=0.06)
    try:
        expected = one.entropy()
    except NotImplementedError:
        expected = None
    if expected is not None:
        entropy = -one.log_prob(drawn).mean(0)
        np.testing.assert_allclose(entropy.numpy(), expected.numpy(), rtol=0.1, atol=0.05)
    if one.has_enumerate_support:
        total = one.log_prob(one.enumerate_support()).exp().sum(0)
        np.testing.assert_allclose(total.numpy(), np.ones(2), rtol=1e-5)


#: the derivative of the mean for the parameter, of distributions that are differentiated implicitly
SLOPES = [
    ("Gamma", {"concentration": 0.5, "rate": 2.0}, "concentration", 0.5),
    ("Gamma", {"concentration": 30.0, "rate": 2.0}, "rate", -7.5),
    ("Chi2", {"df": 3.0}, "df", 1.0),
    ("Beta", {"concentration1": 2.0, "concentration0": 3.0}, "concentration1", 3 / 25),
    ("Beta", {"concentration1": 0.5, "concentration0": 0.25}, "concentration0", -8 / 9),
    ("StudentT", {"df": 5.0, "loc": 1.0, "scale": 2.0}, "loc", 1.0),
    ("FisherSnedecor", {"df1": 3.0, "df2": 12.0}, "df2", -0.02),
    ("InverseGamma", {"concentration": 6.0, "rate": 2.0}, "concentration", -0.08),
    ("Kumaraswamy", {"concentration1": 1.0, "concentration0": 3.0}, "concentration0", -1 / 16),
    ("Weibull", {"scale": 2.0, "concentration": 1.0}, "scale", 1.0),
    ("HalfNormal", {"scale": 2.0}, "scale", 0.7978846),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "by", "expected"), SLOPES)
def test_reparametrised_gradients(name: str, parameters: Any, by: str, expected: float) -> None:
    weft.manual_seed(0)
    tensors = {key: weft.tensor(value, dtype=weft.float64) for key, value in parameters.items()}
    tensors[by].requires_grad_()
    getattr(weft.distributions, name)(**tensors).rsample((40_000,)).mean().backward()
    assert tensors[by].grad.item() == pytest.approx(expected, rel=0.06)


@pytest.mark.parity
def test_derivatives_of_samples_equal_torch() -> None:
    """PyTorch's are approximations, good to about 0.1 % where the density is."""
    torch = pytest.importorskip("torch")
    a, ratio = np.meshgrid([0.01, 0.5, 2.0, 30.0, 1e4], [0.1, 0.9, 1.0, 1.2, 3.0])
    got = _aten._standard_gamma_grad(weft.tensor(a), weft.tensor(a * ratio)).numpy()
    expected = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(a * ratio)).numpy()
    near = np.abs(ratio - 1) * np.sqrt(a) < 5
    np.testing.assert_allclose(got[near], expected[near], rtol=3e-3)
    x, a, b = (v.ravel() for v in np.meshgrid([0.01, 0.3, 0.7, 0.99], [0.2, 1.0, 7.0], [0.3, 2.0]))
    got = _aten._dirichlet_grad(*(weft.tensor(v) for v in (x, a, a + b))).numpy()
    expected = torch._dirichlet_grad(*(torch.tensor(v) for v in (x, a, a + b))).numpy()
    np.testing.assert_allclose(got, expected, rtol=0.02)


def test_derivatives_of_samples() -> None:
    """Against central differences of distribution functions."""
    special = pytest.importorskip("scipy.special")
    a, ratio = (v.ravel() for v in np.meshgrid([0.02, 0.5, 3.0, 40.0, 1e3], [0.3, 0.98, 1.02, 1.1]))
    x, h = a * ratio, 1e-5 * a
    density = np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
    expected = -(special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h) / density
    near = np.abs(ratio - 1) * np.sqrt(a) < 4
    got = _aten._standard_gamma_grad(weft.tensor(a), weft.tensor(x)).numpy()
    np.testing.assert_allclose(got[near], expected[near], rtol=2e-6)
    x, a, b = (
        v.ravel() for v in np.meshgrid([1e-3, 0.3, 0.7, 0.999], [0.02, 1.0, 9.0], [0.3, 2.0])
    )
    h = 1e-5 * a
    density = np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - special.betaln(a, b))
    up, down = (
        np.where(x * (a + b) < a, special.betainc(e, b, x), -special.betaincc(e, b, x))
        for e in (a + h, a - h)
    )
    expected = -(up - down) / (2 * h) / density
    got = _aten._dirichlet_grad(*(weft.tensor(v) for v in (x, a, a + b))).numpy() * (1 - x)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


GAMMAS = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (np.inf, 1.0), (1.0, np.inf), (-1.0, 1.0), (1.0, -1.0), (0.01, 0.02),
          (0.3, 1e-8), (1.0, 1.01), (2.5, 9.0), (70.0, 60.0), (1e3, 1e3), (1e5, 1.002e5), (np.nan, 1.0)]  # fmt: skip


@pytest.mark.parity
def test_incomplete_gamma_equals_torch() -> None:
    torch = pytest.importorskip("torch")
    a, x = np.array(GAMMAS).T
    for name in ("igamma", "igammac"):
        got = getattr(weft, name)(weft.tensor(a), weft.tensor(x)).numpy()
        expected = getattr(torch, name)(torch.tensor(a), torch.tensor(x)).numpy()
        np.testing.assert_allclose(got, expected, rtol=2e-8, err_msg=name)


def test_incomplete_gamma() -> None:
    """Of whole numbers it is a sum: igammac(n, x) = exp(-x) * sum(x**k / k! for k < n)."""
    x = weft.linspace(0.125, 30, 40, dtype=weft.float64)
    for n in (1, 2, 7):
        total = sum(x**k / float(np.prod(np.arange(1, k + 1))) for k in range(n)) * (-x).exp()
        upper = weft.igammac(weft.full_like(x, float(n)), x)
        np.testing.assert_allclose(upper.numpy(), total.numpy(), rtol=1e-9)
        lower = weft.igamma(weft.tensor(float(n), dtype=weft.float64), x)
        np.testing.assert_allclose((lower + upper).numpy(), 1.0, rtol=1e-12)
    assert weft.special.gammainc is weft.igamma and weft.special.gammaincc is weft.igammac
    assert weft.tensor(1.0).igamma(weft.tensor(0.0)).item() == 0
    x = x[:3].requires_grad_()
    weft.igamma(weft.tensor(2.0), x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (x * (-x).exp()).detach().numpy(), rtol=1e-9)


def test_second_derivatives_of_incomplete_gamma() -> None:
    """The density at `other` is differentiated on, by the order too; the first one by it raises."""
    a = weft.tensor([0.7, 2.0, 9.0], dtype=weft.float64, requires_grad=True)
    x = weft.tensor([0.4, 3.0, 8.0], dtype=weft.float64, requires_grad=True)
    for function in (weft.igamma, weft.igammac):
        assert weft.autograd.gradgradcheck(lambda x, f=function: f(a.detach(), x), [x])

        def slope(a: Any, x: Any, f: Any = function) -> Any:
            x = x if x.requires_grad else x.detach().requires_grad_()
            with weft.enable_grad():
                return weft.autograd.grad(f(a, x).sum(), x, create_graph=True)[0]

        assert weft.autograd.gradcheck(slope, [a, x])
        with pytest.raises(NotImplementedError, match=r"^igammac?: expected no gradient for self"):
            function(a, x).sum().backward()


def test_derivatives_of_samples_are_differentiated_by_what_comes_in() -> None:
    """As in PyTorch: once more by the gradient, and not by the concentration."""
    for name, draw in (
        ("_standard_gamma", weft._standard_gamma),
        ("_dirichlet", weft._sample_dirichlet),
    ):
        a = weft.tensor([0.7, 2.0], requires_grad=True)
        grad = weft.ones(2, requires_grad=True)
        (slope,) = weft.autograd.grad(draw(a), a, grad, create_graph=True)
        weft.autograd.grad(slope.sum(), grad, retain_graph=True)
        with pytest.raises(NotImplementedError, match=f"^{name}_grad: expected no gradient for"):
            weft.autograd.grad(slope.sum(), a)


#: count, probability: each way to draw, and the ends
BINOMIALS = [
    (3.0, 0.2),
    (10.0, 0.9),
    (100.0, 0.05),
    (100.0, 0.3),
    (1e6, 0.6),
    (5.0, 0.0),
    (5.0, 1.0),
    (0.0, 0.5),
]


@pytest.mark.parametrize(("count", "prob"), BINOMIALS)
def test_binomial(count: float, prob: float) -> None:
    weft.manual_seed(0)
    drawn = weft.binomial(
        weft.full((20_000,), count, dtype=weft.float64), weft.tensor(prob).double()
    )
    spread = (count * prob * (1 - prob)) ** 0.5
    assert abs(drawn.mean().item() - count * prob) <= 5 * spread / 20_000**0.5
    assert drawn.var().item() == pytest.approx(spread**2, rel=0.06)
    assert bool(((drawn >= 0) & (drawn <= count) & (drawn % 1 == 0)).all())


# every pair that PyTorch has a divergence for
ALONE = {
    "Beta": {"concentration1": [0.75, 3.0], "concentration0": [1.5, 2.0]},
    "ContinuousBernoulli": {"probs": [0.25, 0.875]},
    "Chi2": {"df": [0.75, 3.0]},
    "Exponential": {"rate": [0.5, 3.0]},
    "Gamma": {"concentration": [0.75, 3.0], "rate": [1.5, 2.0]},
    "Gumbel": {"loc": [0.5, -1.0], "scale": [1.0, 2.0]},
    "Laplace": {"loc": [0.5, -1.0], "scale": [1.0, 2.0]},
    "Normal": {"loc": [0.25, -1.0], "scale": [1.5, 2.0]},
    "Pareto": {"scale": [0.5, 0.25], "alpha": [2.5, 6.0]},
    "Uniform": {"low": [0.25, 0.5], "high": [0.75, 1.5]},
    "Bernoulli": {"probs": [0.25, 1.0]},
    "Poisson": {"rate": [0.5, 3.0]},
    "Binomial": {"total_count": 3, "probs": [0.25, 0.75]},
    "Geometric": {"probs": [0.25, 0.75]},
    "HalfNormal": {"scale": [0.5, 2.0]},
    "Cauchy": {"loc": [0.5, -1.0], "scale": [1.0, 2.0]},
    "LogNormal": {"loc": [0.5, -1.0], "scale": [0.5, 1.0]},
}  # fmt: skip
OTHER = {
    "Beta": {"concentration1": [1.5, 0.25], "concentration0": [0.5, 1.0]},
    "ContinuousBernoulli": {"probs": [0.5, 0.25]},
    "Pareto": {"scale": [0.25, 0.5], "alpha": [1.5, 0.75]},
    "Uniform": {"low": [-0.125, -0.5], "high": [1.125, 1.25]},
    "Bernoulli": {"probs": [0.5, 0.75]},
    "Binomial": {"total_count": 3, "probs": [0.5, 0.125]},
    "Geometric": {"probs": [0.5, 0.125]},
}
VECTORS = [
    ("Categorical", {"probs": [[1.0, 2.0], [0.5, 0.5]]}, {"probs": [[0.0, 2.0], [0.25, 0.5]]}),
    ("OneHotCategorical", {"probs": [[1.0, 2.0], [0.0, 0.5]]}, {"probs": [[3.0, 2.0], [0.25, 0.5]]}),
    ("Dirichlet", {"concentration": [[1.0, 2.0, 0.5]]}, {"concentration": [[3.0, 0.5, 0.5]]}),
    ("Wishart", {"df": [4.0], "covariance_matrix": MATRIX}, {"df": [3.0], "scale_tril": FACTOR}),
]  # fmt: skip


def divergence(lib: Any, p: Any, q: Any) -> Any:
    try:
        return lib.distributions.kl_divergence(p, q).tolist()
    except NotImplementedError:
        return "NotImplementedError"


@pytest.mark.parity
@pytest.mark.parametrize("first", ALONE)
def test_divergences_equal_torch(first: str) -> None:
    torch = pytest.importorskip("torch")
    for second, parameters in (ALONE | OTHER).items():
        got, expected = (
            divergence(lib, made(lib, first, ALONE[first]), made(lib, second, parameters))
            for lib in (weft, torch)
        )
        assert_same(got, expected, f"{first} {second}")


@pytest.mark.parity
@pytest.mark.parametrize(("name", "p", "q"), VECTORS)
def test_divergences_of_vectors_equal_torch(name: str, p: Any, q: Any) -> None:
    torch = pytest.importorskip("torch")
    got, expected = (
        divergence(lib, made(lib, name, p), made(lib, name, q)) for lib in (weft, torch)
    )
    assert_same(got, expected)


@pytest.mark.parity
def test_divergences_of_normal_vectors_equal_torch() -> None:
    torch = pytest.importorskip("torch")
    cases = [(name, parameters) for name, parameters, _ in CASES if "MultivariateNormal" in name]
    for p in cases:
        for q in cases:
            got, expected = (divergence(lib, made(lib, *p), made(lib, *q)) for lib in (weft, torch))
            assert_same(got, expected, f"{p} {q}")


@pytest.mark.parametrize("first", ["Beta", "Gamma", "Normal", "Uniform", "Exponential", "Gumbel"])
def test_divergences_are_means(first: str) -> None:
    weft.manual_seed(0)
    p = made(weft, first, ALONE[first], "float64")
    drawn = p.sample((50_000,))
    for second in ("Gamma", "Normal", "Gumbel", "Uniform", "Beta"):
        try:
            exact = weft.distributions.kl_divergence(
                p, q := made(weft, second, OTHER.get(second, ALONE[second]))
            )
        except NotImplementedError:
            continue
        q._validate_args = q.__dict__.get("_validate_args", False) and False
        within = q.support.check(drawn).all(0)
        assert (exact.isfinite() | ~within).all() and (exact.isinf() | within).all()
        inside = drawn.clamp(1e-9, 1 - 1e-9) if second == "Beta" else drawn
        mean = (p.log_prob(drawn) - q.log_prob(inside)).mean(0)
        for a, b, finite in zip(mean.tolist(), exact.tolist(), exact.isfinite().tolist()):
            assert not finite or a == pytest.approx(b, rel=0.1, abs=0.05), (first, second)


def test_entropy_of_exponential_families() -> None:
    """The general formula, by the gradient of the log normaliser, against those of the classes.
    It raises where the mean of the carrier is not stated, as PyTorch's."""
    family = weft.distributions.ExponentialFamily
    for name, parameters, _ in CASES:
        one = made(weft, name, parameters, "float64")
        if name in ("Poisson", "Beta", "Dirichlet"):
            with pytest.raises(NotImplementedError, match="_mean_carrier_measure"):
                family.entropy(one)
        elif isinstance(one, family):
            np.testing.assert_allclose(
                family.entropy(one).detach().numpy(), one.entropy().numpy(), rtol=1e-5, err_msg=name
            )


def test_gradients_reach_parameters() -> None:
    loc, scale = weft.zeros(2, requires_grad=True), weft.ones(2, requires_grad=True)
    normal = weft.distributions.Independent(weft.distributions.Normal(loc, scale), 1)
    assert normal.event_shape == (2,) and normal.has_rsample
    normal.rsample((5,)).sum().backward()
    assert loc.grad.tolist() == [5, 5] and not normal.sample().requires_grad
    divergence = weft.distributions.kl_divergence(normal, normal.expand((3,)))
    assert divergence.tolist() == [0, 0, 0]
    logits = weft.zeros(3, requires_grad=True)
    weft.distributions.Categorical(logits=logits).log_prob(weft.tensor(1)).backward()
    np.testing.assert_allclose(logits.grad.numpy(), [-1 / 3, 2 / 3, -1 / 3], rtol=1e-5)


REFUSED = [
    (lambda d: d.Normal(0.0, -1.0), r"Normal: expected scale within GreaterThan\(lower_bound=0"),
    (lambda d: d.Normal(weft.zeros(2), 1.0).log_prob(weft.ones(3)), r"broadcasts with \(2,\), got"),
    (lambda d: d.Bernoulli(), "Bernoulli: expected probs or logits, got neither"),
    (lambda d: d.Bernoulli(0.5, 0.5), "Bernoulli: expected probs or logits, got both"),
    (lambda d: d.Bernoulli(0.5).log_prob(weft.tensor(2.0)), "Bernoulli: expected values within"),
    (lambda d: d.Bernoulli(0.5).rsample(), "Bernoulli.rsample: expected a distribution with it"),
    (lambda d: d.Categorical(weft.tensor(1.0)), "Categorical: expected at least 1 dimension"),
    (lambda d: d.Uniform(1.0, 0.0), "Uniform: expected low < high"),
    (lambda d: d.Normal("a", 1.0), "broadcast_all: expected tensors and numbers, got str"),
    (lambda d: d.Independent(d.Normal(0.0, 1.0), 1), "Independent: expected at most 0 dimensions"),
    (lambda d: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)), "got Normal and Poisson"),
    (lambda d: d.kl_divergence(d.Laplace(0.0, 1.0), d.Poisson(1.0)), "got Laplace and Poisson"),
    (lambda d: d.Gamma(0.0, 1.0), "Gamma: expected concentration within GreaterThan"),
    (
        lambda d: d.Gamma(1.0, 1.0).log_prob(weft.tensor(-1.0)),
        "Gamma: expected values within GreaterThanEq",
    ),
    (lambda d: d.Dirichlet(weft.tensor(1.0)), "Dirichlet: expected at least 1 dimension, got 0"),
    (
        lambda d: d.MultivariateNormal(weft.zeros(2)),
        "MultivariateNormal: expected one of covariance_matrix, scale_tril, precision_matrix, got none",
    ),
    (
        lambda d: d.MultivariateNormal(weft.zeros(2), weft.eye(2) - 2),
        "MultivariateNormal: expected covariance_matrix within PositiveDefinite",
    ),
    (
        lambda d: d.MultivariateNormal(weft.zeros(2), weft.ones(2)),
        "MultivariateNormal: expected covariance_matrix of at least 2 dimensions, got 1",
    ),
    (
        lambda d: d.LowRankMultivariateNormal(weft.zeros(2), weft.ones(3, 1), weft.ones(2)),
        "LowRankMultivariateNormal: expected 2 rows",
    ),
    (lambda d: d.Wishart(1.0, weft.eye(3)), "Wishart: expected df above 2, got"),
    (lambda d: d.LKJCholesky(1), "LKJCholesky: expected dim of at least 2, got 1"),
    (lambda d: d.HalfNormal(-1.0), "HalfNormal: expected scale within"),
    (lambda d: d.Geometric(0.0), "Geometric: expected probs above 0"),
    (
        lambda d: d.Multinomial(weft.tensor(2), weft.ones(2)),
        "Multinomial: expected an int as total_count, got Tensor",
    ),
    (
        lambda d: d.Binomial(weft.tensor([1, 2]), 0.5).enumerate_support(),
        "Binomial.enumerate_support: expected one total_count",
    ),
    (
        lambda d: d.Categorical(weft.ones(2)).log_prob(weft.tensor(2)),
        "Categorical: expected values within IntegerInterval",
    ),
    (
        lambda d: d.MultivariateNormal(weft.zeros(2), weft.eye(2)).log_prob(weft.zeros(3)),
        r"values of a shape that broadcasts with \(2,\), got \(3,\)",
    ),
    (
        lambda d: d.TransformedDistribution(d.Normal(0.0, 1.0), [1]),
        "TransformedDistribution: expected a transform or several",
    ),
    (
        lambda d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.SoftmaxTransform()),
        "expected a base of at least 1 dimensions",
    ),
    (
        lambda d: d.MixtureSameFamily(d.Categorical(weft.ones(2)), d.Normal(weft.zeros(3), 1.0)),
        "MixtureSameFamily: expected components of a batch",
    ),
    (
        lambda d: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
        "MixtureSameFamily: expected a Categorical, got Normal",
    ),
    (
        lambda d: d.biject_to(d.constraints.boolean),
        "ConstraintRegistry: expected a registered constraint, got _Boolean",
    ),
    (lambda d: d.biject_to.register(1, lambda c: None), "register: expected a constraint, got 1"),
    (lambda d: d.constraints.dependent.check(weft.ones(1)), "expected a known constraint"),
    (lambda d: d.ExpTransform(cache_size=2), "ExpTransform: expected cache_size 0 or 1, got 2"),
    (lambda d: d.ExpTransform().with_cache(2), "with_cache: expected cache_size 0 or 1, got 2"),
    (lambda d: d.AbsTransform().sign, "AbsTransform.sign: expected a monotone transform"),
    (
        lambda d: d.ReshapeTransform((2,), (3,)),
        "ReshapeTransform: expected shapes with as many elements",
    ),
    (
        lambda d: d.CorrCholeskyTransform()(weft.ones(2)),
        "vec_to_tril_matrix: expected as many elements as a triangle has, got 2",
    ),
    (
        lambda d: weft.igamma(1.0, weft.ones(1)),
        "igamma: expected argument 'input' of type Tensor, got float",
    ),
    (lambda d: d.register_kl(1, d.Normal), "register_kl: expected classes, got 1"),
]


@pytest.mark.parametrize(("use", "message"), REFUSED)
def test_refused(use: Any, message: str) -> None:
    with pytest.raises((ValueError, NotImplementedError, TypeError), match=message):
        use(weft.distributions)


@both
def test_a_class_of_a_program_has_its_own_factor_and_event_shape(lib: Any) -> None:
    """Gaussian processes keep the covariance in parts, and show events as matrices."""
    normal = lib.distributions.MultivariateNormal
    matrix = lib.tensor(MATRIX)

    class Lazy(normal):  # type: ignore[misc, valid-type]
        def __init__(self, loc: Any) -> None:
            self.loc, self.calls = loc, 0
            super(normal, self).__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

        @property
        def _unbroadcasted_scale_tril(self) -> Any:
            self.calls += 1
            return lib.linalg.cholesky(matrix)

        @property
        def event_shape(self) -> Any:
            return lib.Size((1, 2))

    loc, value = lib.zeros(3, 2), lib.ones(3, 2)
    mine, plain = Lazy(loc), normal(loc, matrix)
    assert plain._unbroadcasted_scale_tril.shape == (2, 2) and plain.scale_tril.shape == (3, 2, 2)
    assert mine.covariance_matrix.shape == mine.precision_matrix.shape == (3, 2, 2)
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
        lib.testing.assert_close(getattr(mine, name), getattr(plain, name))
    lib.testing.assert_close(mine.log_prob(value), plain.log_prob(value))
    assert mine.entropy().shape == mine.sample().shape[:1] == (3,)
    lib.testing.assert_close(mine.entropy(), plain.entropy())
    assert mine.calls > 5


def test_lkj_samples_have_the_variance_of_their_density() -> None:
    """At concentration 1 a correlation of three dimensions has the density of 2 Beta(3/2, 3/2) - 1,
    of variance 1/4. PyTorch's samples have 0.3."""
    weft.manual_seed(0)
    factor = weft.distributions.LKJCholesky(3, 1.0).sample((20_000,))
    correlation = factor @ factor.mT
    for i, j in ((1, 0), (2, 0), (2, 1)):
        assert abs(correlation[:, i, j].var().item() - 0.25) < 0.01


def test_a_transform_may_be_a_module() -> None:
    class Scaling(weft.distributions.Transform, weft.nn.Module):
        domain = codomain = weft.distributions.constraints.real
        bijective = True
        __hash__ = weft.nn.Module.__hash__

        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.factor = weft.nn.Parameter(weft.tensor(2.0))

        def _call(self, x: Any) -> Any:
            return x * self.factor

        def _inverse(self, y: Any) -> Any:
            return y / self.factor

        def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
            return self.factor.abs().log()

    scaling = Scaling()
    assert [name for name, _ in scaling.named_parameters()] == ["factor"]
    made = weft.distributions.TransformedDistribution(
        weft.distributions.Normal(0.0, 1.0), [scaling]
    )
    made.log_prob(weft.tensor(4.0)).backward()
    assert scaling.factor.grad is not None and scaling.inv(weft.tensor(4.0)).item() == 2


def test_a_distribution_may_be_a_module() -> None:
    class Learned(weft.distributions.Distribution, weft.nn.Module):
        arg_constraints: Any = {}  # noqa: RUF012

        def __init__(self) -> None:
            super().__init__(validate_args=False)
            self.loc = weft.nn.Parameter(weft.zeros(2))

    assert [name for name, _ in Learned().named_parameters()] == ["loc"]


@both
def test_parameters_and_values_under_vmap(lib: Any) -> None:
    d, x = lib.distributions, lib.tensor([1.0, 2.0, 0.5])
    of_values = lib.func.vmap(d.Normal(0.0, 1.0).log_prob)(x)
    assert of_values.tolist() == d.Normal(0.0, 1.0).log_prob(x).tolist()
    for kind, value in (
        (d.Poisson, 2.0),
        (d.Exponential, 0.5),
        (lambda m: d.Uniform(-1.0, m), 0.25),
    ):
        one = lib.tensor(value)
        each = lib.func.vmap(lambda m, kind=kind, one=one: kind(m).log_prob(one))(x)
        assert lib.allclose(each, kind(x).log_prob(one))
    with pytest.raises((ValueError, RuntimeError)):
        # A call of torch.compile in this process has turned the default off for good.
        lib.func.vmap(lambda m: d.Poisson(m, validate_args=True).log_prob(lib.tensor(1.0)))(-x)


def test_gradients_of_wishart_samples() -> None:
    factor = weft.eye(2).requires_grad_()
    drawn = weft.distributions.Wishart(weft.tensor(4.0), scale_tril=factor)
    drawn.rsample((3,)).sum().backward()
    assert factor.grad is not None and factor.grad.isfinite().all() and factor.grad.abs().sum() > 0


@both
@pytest.mark.parametrize("diagonal", [-1, 0, 1])
def test_triangles_as_vectors(lib: Any, diagonal: int) -> None:
    utils = lib.distributions.utils
    lower = lib.arange(2.0 * 16).reshape(2, 4, 4).tril(diagonal)
    vectors = utils.tril_matrix_to_vec(lower, diagonal)
    assert vectors.shape == (2, [6, 10, 13][diagonal + 1])
    assert utils.vec_to_tril_matrix(vectors, diagonal).tolist() == lower.tolist()


@both
@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=IDS)
def test_values_outside_are_refused(lib: Any, name: str, parameters: Any, values: Any) -> None:
    lib.distributions.Distribution.set_default_validate_args(True)  # see above
    one, value = made(lib, name, parameters), lib.tensor(values)
    one.log_prob(value)
    outside = -1 - value if value.dtype == lib.int64 else value * math.nan
    with pytest.raises(ValueError, match=r"within the support|expected value"):
        one.log_prob(outside)
    last = [*parameters][-1]
    wrong = lib.tensor(parameters[last]) * math.nan
    with pytest.raises((ValueError, RuntimeError)):  # of a factor that is no number
        made(lib, name, {**parameters, last: wrong.tolist()})


def test_values_stand_beside_the_components_of_a_mixture() -> None:
    """Losses of libraries take the terms of each component."""
    d = weft.distributions
    normals = d.Independent(d.Normal(weft.zeros(5, 3, 2), 1.0), 1)
    mixture = d.MixtureSameFamily(d.Categorical(weft.ones(5, 3)), normals)
    assert mixture._pad(weft.ones(5, 2)).shape == (5, 1, 2)


@both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples_of_small_concentrations_are_inside(lib: Any, dtype: str) -> None:
    lib.manual_seed(0)
    small = lib.tensor([1e-2, 1e-2], dtype=getattr(lib, dtype))
    for drawn in (
        lib.distributions.Beta(small, small).sample([2000]),
        lib.distributions.Dirichlet(small).sample([2000]),
    ):
        assert drawn.min() > 0 and drawn.max() < 1


@both
@pytest.mark.parametrize("logits", [-1e9, -60.0, 60.0, 1e9])
def test_a_continuous_bernoulli_of_large_logits(lib: Any, logits: float) -> None:
    family = lib.distributions.ContinuousBernoulli(logits=lib.tensor(logits))
    assert family.log_prob(lib.tensor(float(logits > 0))).item() == pytest.approx(2.7690, abs=1e-4)
    assert math.isfinite(family.entropy()) and math.isfinite(family.mean)
    divergence = lib.distributions.kl_divergence(family, family)
    assert divergence.item() == pytest.approx(0.0, abs=1e-4)


@both
def test_an_independent_distribution_has_a_dependent_support(lib: Any) -> None:
    constraints = lib.distributions.constraints
    assert isinstance(lib.distributions.Independent.support, constraints.Constraint)
    assert constraints.is_dependent(lib.distributions.Independent.support)
