"""Transforms, constraints and the registry between them, beside PyTorch's and autograd."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft

SQUARE = [[0.5, -1.0, 0.25], [2.0, -0.5, 1.0], [0.0, 3.0, 1.5]]
ROW = [0.5, -1.0, 2.0]
# name, how to make it, an input
TRANSFORMS: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("affine", lambda d: d.AffineTransform(1.0, -2.0), ROW),
    ("affine of tensors", lambda d: d.AffineTransform(tensor(d, [0.0, 1.0, 2.0]), tensor(d, [1.0, -1.0, 3.0])), ROW),
    ("affine of vectors", lambda d: d.AffineTransform(1.0, 2.0, event_dim=1), ROW),
    ("exp", lambda d: d.ExpTransform(), ROW),
    ("log", lambda d: d.ExpTransform().inv, [0.5, 1.0, 3.0]),
    ("power", lambda d: d.PowerTransform(2.0), [0.5, 1.0, 3.0]),
    ("negative power", lambda d: d.PowerTransform(tensor(d, -0.5)), [0.5, 1.0, 3.0]),
    ("sigmoid", lambda d: d.SigmoidTransform(), ROW),
    ("softplus", lambda d: d.SoftplusTransform(), ROW),
    ("tanh", lambda d: d.TanhTransform(), ROW),
    ("abs", lambda d: d.AbsTransform(), [0.5, 1.0, 2.0]),
    ("cdf", lambda d: d.CumulativeDistributionTransform(d.Normal(0.0, 2.0)), ROW),
    ("stick breaking", lambda d: d.StickBreakingTransform(), ROW),
    ("softmax", lambda d: d.SoftmaxTransform(), ROW),
    ("reshape", lambda d: d.ReshapeTransform((3,), (3, 1)), ROW),
    ("independent", lambda d: d.IndependentTransform(d.ExpTransform(), 1), ROW),
    ("compose", lambda d: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)]), ROW),
    ("compose of events", lambda d: d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.StickBreakingTransform()]), ROW),
    ("compose of nothing", lambda d: d.identity_transform, ROW),
    ("cat", lambda d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=-1, lengths=[2, 1]), ROW),
    ("cat of events", lambda d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=0, lengths=[2, 1]), SQUARE),
    ("stack", lambda d: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.SigmoidTransform()], dim=-1), SQUARE),
    ("lower cholesky", lambda d: d.LowerCholeskyTransform(), SQUARE),
    ("positive definite", lambda d: d.PositiveDefiniteTransform(), SQUARE),
    ("correlations", lambda d: d.CorrCholeskyTransform(), ROW),
]  # fmt: skip
NAMES = [name for name, *_ in TRANSFORMS]


def tensor(distributions: Any, value: Any) -> Any:
    """A tensor of the library that the distributions belong to."""
    if distributions is weft.distributions:
        return weft.tensor(value)
    return pytest.importorskip("torch").tensor(value)


def attempt(use: Callable[[], Any]) -> Any:
    try:
        got = use()
    except (NotImplementedError, ValueError) as error:
        return type(error).__name__
    return got.tolist() if hasattr(got, "tolist") else got


def facts(distributions: Any, make: Callable[[Any], Any], value: Any) -> dict[str, Any]:
    transform = make(distributions)
    x = tensor(distributions, value)
    y = transform(x)
    found = {
        "y": y.tolist(),
        "x": transform.inv(y).tolist(),
        "determinant": attempt(lambda: transform.log_abs_det_jacobian(x, y)),
        "inverse determinant": attempt(lambda: transform.inv.log_abs_det_jacobian(y, x)),
        "sign": attempt(lambda: transform.sign),
        "event_dim": attempt(lambda: transform.event_dim),
        "forward_shape": attempt(lambda: tuple(transform.forward_shape(x.shape))),
        "inverse_shape": attempt(lambda: tuple(transform.inverse_shape(y.shape))),
        "too short": attempt(lambda: tuple(transform.forward_shape(()))),
    }
    for name in ("bijective", "domain", "codomain"):
        found[name] = str(getattr(transform, name))
    found["repr"] = repr(transform), repr(transform.inv)
    return found


@pytest.mark.parity
@pytest.mark.parametrize(("name", "make", "value"), TRANSFORMS, ids=NAMES)
def test_transforms_equal_torch(name: str, make: Any, value: Any) -> None:
    torch = pytest.importorskip("torch")
    got, expected = (facts(lib.distributions, make, value) for lib in (weft, torch))
    for key, want in expected.items():
        if isinstance(want, list | float):
            np.testing.assert_allclose(got[key], want, rtol=2e-5, atol=2e-6, err_msg=key)
        else:
            assert got[key] == want, key


@pytest.mark.parametrize(("name", "make", "value"), TRANSFORMS, ids=NAMES)
def test_determinants_and_inverses(name: str, make: Any, value: Any) -> None:
    transform, x = make(weft.distributions), weft.tensor(value, dtype=weft.float64)
    y = transform(x)
    assert transform.codomain.check(y).all() and transform.domain.check(x).all()
    assert transform.inv.inv is transform and transform == transform
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    if transform.bijective or name == "abs":
        np.testing.assert_allclose(
            transform.inv(y).numpy(), x.numpy(), rtol=1e-9 if name != "cdf" else 1e-6
        )
    if not transform.bijective:
        return
    if name in ("stick breaking", "compose of events", "correlations"):
        rows = {"correlations": lambda v: v.tril(-1).reshape(-1)[[3, 6, 7]]}.get(
            name, lambda v: v[:-1]
        )
        jacobian = weft.autograd.functional.jacobian(lambda v: rows(transform(v)), x)
    else:
        jacobian = (
            weft.autograd.functional.jacobian(lambda v: transform(v).reshape(-1), x.reshape(-1))
            if name == "reshape"
            else weft.autograd.functional.jacobian(transform, x)
        )
        jacobian = jacobian.reshape(x.numel(), x.numel())
    total = transform.log_abs_det_jacobian(x, y).sum()
    expected = np.linalg.slogdet(jacobian.numpy()).logabsdet
    assert float(total) == pytest.approx(expected, abs=1e-7)


def test_caches_and_copies() -> None:
    d = weft.distributions
    transform = d.ComposeTransform([d.TanhTransform(), d.AffineTransform(0.0, 2.0)]).with_cache()
    x = weft.tensor([30.0])  # tanh is 1 there: without a cache the inverse is inf
    assert transform.inv(transform(x)) is x
    assert d.TanhTransform().inv(d.TanhTransform()(x)).isinf().all()
    again = pickle.loads(pickle.dumps(d.AffineTransform(1.0, 2.0)))
    assert again == d.AffineTransform(1.0, 2.0) and again != d.AffineTransform(1.0, 3.0)
    assert copy.copy(d.ExpTransform()) == d.ExpTransform() != d.TanhTransform()


CONSTRAINTS: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("real", lambda c: c.real, [[0.0, np.nan, np.inf]]),
    ("real_vector", lambda c: c.real_vector, [[0.0, 1.0], [0.0, np.nan]]),
    ("positive", lambda c: c.positive, [[0.0, 1.0, np.nan]]),
    ("nonnegative", lambda c: c.nonnegative, [[0.0, 1.0, -1.0]]),
    ("unit_interval", lambda c: c.unit_interval, [[0.0, 1.0, 1.5]]),
    ("interval", lambda c: c.interval(-2.0, 3.0), [[-2.0, 3.0, 3.5]]),
    ("half_open_interval", lambda c: c.half_open_interval(-2.0, 3.0), [[-2.0, 3.0, 2.5]]),
    ("integer_interval", lambda c: c.integer_interval(0, 3), [[0.0, 3.0, 2.5, 4.0]]),
    ("less_than", lambda c: c.less_than(2.0), [[1.0, 2.0]]),
    ("greater_than", lambda c: c.greater_than(2.0), [[1.0, 2.0, 3.0]]),
    ("greater_than_eq", lambda c: c.greater_than_eq(2.0), [[1.0, 2.0, 3.0]]),
    ("boolean", lambda c: c.boolean, [[0.0, 1.0, 0.5]]),
    ("one_hot", lambda c: c.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
    ("nonnegative_integer", lambda c: c.nonnegative_integer, [[0.0, 1.5, -1.0]]),
    ("positive_integer", lambda c: c.positive_integer, [[0.0, 1.0, 2.0]]),
    ("simplex", lambda c: c.simplex, [[0.25, 0.75], [0.5, 0.75], [-0.5, 1.5]]),
    ("multinomial", lambda c: c.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 4.0]]),
    ("square", lambda c: c.square, [[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0]]]),
    ("symmetric", lambda c: c.symmetric, [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]]),
    ("positive_semidefinite", lambda c: c.positive_semidefinite, [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]]),
    ("positive_definite", lambda c: c.positive_definite, [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]),
    ("lower_triangular", lambda c: c.lower_triangular, [[[1.0, 0.0], [0.5, -1.0]], [[1.0, 2.0], [2.0, 1.0]]]),
    ("lower_cholesky", lambda c: c.lower_cholesky, [[[1.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [0.5, -1.0]]]),
    ("corr_cholesky", lambda c: c.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]]]),
    ("independent", lambda c: c.independent(c.positive, 1), [[1.0, 2.0], [0.0, 1.0]]),
    ("cat", lambda c: c.cat([c.positive, c.real], dim=-1, lengths=[1, 2]), [[1.0, -1.0, 0.0], [-1.0, -1.0, 0.0]]),
    ("stack", lambda c: c.stack([c.positive, c.real], dim=0), [[[1.0, 2.0], [-1.0, 0.0]], [[-1.0, 2.0], [-1.0, 0.0]]]),
]  # fmt: skip


def checked(lib: Any, make: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    constraint = make(lib.distributions.constraints)
    found = [constraint.check(lib.tensor(value)).tolist() for value in values]
    names = []
    for registry in (lib.distributions.biject_to, lib.distributions.transform_to):
        try:
            transform = registry(constraint)
            names.append(repr(transform))
        except NotImplementedError:
            names.append("NotImplementedError")
    return [*found, *names, repr(constraint), constraint.is_discrete, constraint.event_dim]


@pytest.mark.parity
@pytest.mark.parametrize(("name", "make", "values"), CONSTRAINTS)
def test_constraints_equal_torch(name: str, make: Any, values: list[Any]) -> None:
    torch = pytest.importorskip("torch")
    assert checked(weft, make, values) == checked(torch, make, values)


@pytest.mark.parametrize(("name", "make", "values"), CONSTRAINTS)
def test_registered_transforms_end_in_the_constraint(name: str, make: Any, values: Any) -> None:
    constraint = make(weft.distributions.constraints)
    answers = [bool(constraint.check(weft.tensor(value)).all()) for value in values]
    assert not all(answers)  # each row has a value outside
    weft.manual_seed(0)
    for registry in (weft.distributions.biject_to, weft.distributions.transform_to):
        try:
            transform = registry(constraint)
        except NotImplementedError:
            continue
        shape = transform.inverse_shape((3, 3) if name != "stack" else (2, 3))
        assert constraint.check(transform(weft.randn(shape))).all()


def test_registering() -> None:
    registry = weft.distributions.constraint_registry.ConstraintRegistry()

    @registry.register(weft.distributions.constraints.boolean)
    def _(constraint: Any) -> Any:
        return weft.distributions.SigmoidTransform()

    assert repr(registry(weft.distributions.constraints.boolean)) == "SigmoidTransform()"


def composites(lib: Any) -> list[Any]:
    # float64: near the ends of tanh, densities of float32 numbers keep few digits.
    d, t = lib.distributions, functools.partial(lib.tensor, dtype=lib.float64)
    normal = d.Normal(t([[0.5, -1.0], [0.0, 2.0]]), t([1.0, 2.0]))
    mixture = d.Categorical(t([[0.25, 0.75], [0.5, 0.5]]))
    return [
        d.Independent(normal, 1),
        d.Independent(d.Independent(normal, 1), 1),
        d.Independent(d.Bernoulli(t([0.25, 0.75])), 0),
        d.TransformedDistribution(normal, [d.TanhTransform(), d.AffineTransform(1.0, -2.0)]),
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.AffineTransform(t([0.0, 1.0]), 2.0)),
        d.TransformedDistribution(normal, d.StickBreakingTransform()),
        d.TransformedDistribution(d.Independent(normal, 1), d.ExpTransform()),
        d.TransformedDistribution(d.Uniform(0.0, 1.0), []),
        d.MixtureSameFamily(mixture, normal),
        d.MixtureSameFamily(d.Categorical(t([1.0, 2.0])), normal),
        d.MixtureSameFamily(d.Categorical(t([1.0, 2.0])), d.Independent(d.Laplace(t([[0.5, -1.0], [0.0, 2.0]]), 1.0), 1)),
    ]  # fmt: skip


def described(lib: Any, one: Any) -> dict[str, Any]:
    found = {
        "batch": tuple(one.batch_shape),
        "event": tuple(one.event_shape),
        "repr": repr(one),
        "rsample": one.has_rsample,
    }
    for name in ("mean", "variance", "entropy"):
        found[name] = attempt(
            lambda name=name: getattr(one, name) if name != "entropy" else one.entropy()
        )
    lib.manual_seed(5)
    wide = one.expand((3, *one.batch_shape))
    drawn = wide.sample((4,))
    found["sample"], found["log_prob"] = drawn.tolist(), wide.log_prob(drawn).tolist()
    found["cdf"] = attempt(lambda: one.cdf(drawn))
    found["support"] = one.support.check(drawn).all().item()
    found["narrow log_prob"] = one.log_prob(drawn).tolist()
    return found


@pytest.mark.parity
@pytest.mark.parametrize("index", range(11))
def test_composites_equal_torch(index: int) -> None:
    torch = pytest.importorskip("torch")
    got, expected = (described(lib, composites(lib)[index]) for lib in (weft, torch))
    for key, want in expected.items():
        if isinstance(want, list):
            np.testing.assert_allclose(got[key], want, rtol=5e-5, atol=5e-6, err_msg=key)
        else:
            assert got[key] == want, key


@pytest.mark.parametrize("index", range(11))
def test_composites_expand(index: int) -> None:
    one = composites(weft)[index]
    wide = one.expand((3, *one.batch_shape))
    drawn = wide.sample((4,))
    assert drawn.shape == (4, *wide.batch_shape, *wide.event_shape)
    np.testing.assert_allclose(wide.log_prob(drawn).numpy(), one.log_prob(drawn).numpy(), rtol=1e-5)


def test_distributions_of_others() -> None:
    """A class of a program: its own expand, no support, parameters in the constraints."""
    d = weft.distributions

    class Half(d.Distribution):
        arg_constraints = {"scale": d.constraints.positive}  # noqa: RUF012

        def __init__(self, scale: Any, validate_args: Any = None) -> None:
            (self.scale,) = d.utils.broadcast_all(scale)
            super().__init__(self.scale.shape, validate_args=validate_args)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Half, _instance)
            new.scale = self.scale.expand(batch_shape)
            super(Half, new).__init__(batch_shape, validate_args=False)
            return new

        def rsample(self, sample_shape: Any = ()) -> Any:
            return self.scale * weft.rand(self._extended_shape(sample_shape)) / 2

        def log_prob(self, value: Any) -> Any:
            if self._validate_args:
                self._validate_sample(value)
            return (2 / self.scale).log().expand(value.shape)

    half = Half(2.0).expand((2,))
    assert half.sample((3,)).shape == (3, 2) and half.log_prob(weft.ones(2)).tolist() == [0, 0]
    with pytest.warns(UserWarning, match="Half: expected a support"):
        Half(2.0).log_prob(weft.tensor(0.5))

    class Other(Half):
        def __init__(self) -> None:
            super().__init__(1.0)

    with pytest.raises(
        NotImplementedError, match=r"Other.expand: expected a class with an __init__"
    ):
        Other().expand((2,))
    d.register_kl(Half, Half)(lambda p, q: (q.scale / p.scale).log())
    assert d.kl_divergence(Other(), Half(1.0)).item() == 0


@both
def test_pieces_of_a_stick_keep_what_is_left(lib: Any) -> None:
    stick, x = lib.distributions.StickBreakingTransform(), lib.tensor([1e3, -1e3])
    y = stick(x)
    assert stick.inv(y).isfinite().all() and stick.log_abs_det_jacobian(x, y).isfinite()
