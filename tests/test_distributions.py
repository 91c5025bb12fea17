"""weft.distributions beside PyTorch's, and against sums and integrals of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

# class, its parameters, and values of its support
CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("Normal", {"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("LogNormal", {"loc": [0.5, -1.0], "scale": [0.5, 1.0]}, [0.25, 3.0]),
    ("Laplace", {"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, [0.0, 3.0]),
    ("Uniform", {"low": [0.0, -1.0], "high": [1.0, 2.0]}, [0.25, 1.5]),
    ("Exponential", {"rate": [0.5, 3.0]}, [0.25, 1.5]),
    ("Bernoulli", {"probs": [0.25, 0.75]}, [0.0, 1.0]),
    ("Bernoulli", {"logits": [0.25, -0.75]}, [0.0, 1.0]),
    ("Categorical", {"probs": [[1.0, 2.0, 1.0], [0.0, 0.5, 0.5]]}, [1, 2]),
    ("Categorical", {"logits": [[1.0, 2.0, 1.0], [0.0, 0.5, 0.5]]}, [1, 0]),
    ("OneHotCategorical", {"probs": [[1.0, 2.0], [3.0, 1.0]]}, [[1.0, 0.0], [0.0, 1.0]]),
    ("Poisson", {"rate": [0.5, 3.0]}, [0.0, 4.0]),
]  # fmt: skip
FIGURES = ("mean", "mode", "variance", "stddev", "batch_shape", "event_shape")
FUNCTIONS = ("log_prob", "cdf", "entropy", "enumerate_support", "perplexity", "icdf")


def made(lib: Any, name: str, parameters: dict[str, Any]) -> Any:
    tensors = {key: lib.tensor(value) for key, value in parameters.items()}
    return getattr(lib.distributions, name)(**tensors)


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
                got = got(lib.tensor(0.25))
            elif callable(got):
                got = got()
        except NotImplementedError:
            got = "NotImplementedError"
        found[each] = got.tolist() if hasattr(got, "tolist") else got
    lib.manual_seed(3)
    found["sample"] = one.sample((3,)).tolist()
    try:
        lib.manual_seed(3)
        found["rsample"] = one.rsample((3,)).tolist() if one.has_rsample else None
    except NotImplementedError:
        found["rsample"] = "NotImplementedError"
    again = made(lib, name, parameters)
    found["kl"] = None
    if name != "LogNormal":
        other = {key: (np.array(v)[::-1] + 0.125).tolist() for key, v in parameters.items()}
        if name == "Bernoulli" and "probs" in other:
            other = {"probs": [0.5, 0.125]}
        found["kl"] = lib.distributions.kl_divergence(again, made(lib, name, other)).tolist()
    found["repr"] = repr(again) if name not in ("LogNormal", "OneHotCategorical") else ""
    return found


@pytest.mark.parity
@pytest.mark.parametrize(("name", "parameters", "values"), CASES)
def test_distributions_equal_torch(name: str, parameters: Any, values: Any) -> None:
    torch = pytest.importorskip("torch")
    got, expected = (figures(lib, name, parameters, values) for lib in (weft, torch))
    for key in expected:
        if isinstance(expected[key], list):
            np.testing.assert_allclose(got[key], expected[key], rtol=2e-5, atol=1e-6, err_msg=key)
        else:
            assert got[key] == expected[key], key


@pytest.mark.parametrize(("name", "parameters", "values"), CASES)
def test_densities_are_what_is_drawn(name: str, parameters: Any, values: Any) -> None:
    weft.manual_seed(0)
    one = made(weft, name, parameters)
    drawn = one.sample((20_000,))
    assert drawn.shape == (20_000, *one.batch_shape, *one.event_shape)
    assert bool(one.support.check(drawn).all())
    if name != "Categorical":
        np.testing.assert_allclose(drawn.mean(0).numpy(), one.mean.numpy(), rtol=0.1, atol=0.1)
        np.testing.assert_allclose(drawn.var(0).numpy(), one.variance.numpy(), rtol=0.3, atol=0.1)
    if hasattr(type(one), "entropy") and name not in ("Poisson",):
        entropy = -one.log_prob(drawn).mean(0)
        np.testing.assert_allclose(entropy.numpy(), one.entropy().numpy(), rtol=0.1, atol=0.05)
    if one.has_enumerate_support:
        total = one.log_prob(one.enumerate_support()).exp().sum(0)
        np.testing.assert_allclose(total.numpy(), np.ones(2), rtol=1e-5)


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
    (lambda d: d.Normal(0.0, -1.0), r"Normal: expected scale within Greater_Than\(lower_bound=0"),
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
    (lambda d: d.register_kl(int, d.Normal), "register_kl: expected classes of distributions"),
]


@pytest.mark.parametrize(("use", "message"), REFUSED)
def test_refused(use: Any, message: str) -> None:
    with pytest.raises((ValueError, NotImplementedError, TypeError), match=message):
        use(weft.distributions)
