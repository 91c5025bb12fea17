"""Normal vectors, and random covariance and correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from weft import _C, linalg
from weft._C import Tensor
from weft._functions.shapes import broadcast_shapes
from weft._runtime.samples import whole
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import no_grad
from weft.distributions import constraints
from weft.distributions.distribution import Distribution, Size
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.gamma import Beta, Chi2
from weft.distributions.multivariate_normal import _precision_to_scale_tril, solved
from weft.distributions.utils import lazy_property

_OF_MATRICES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def log_diagonal(factor: Tensor) -> Tensor:
    """The sum of the logarithms of the diagonal: half the log determinant of factor @ factor.mT."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class NormalVectors(Distribution):
    """Normal vectors around loc, by what a derived class knows of their covariance."""

    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    mean = mode = property(lambda self: self.loc, doc="loc.")

    def _half_log_det(self) -> Tensor:
        """Half of the log determinant of the covariance."""
        raise NotImplementedError

    def _squared_norm(self, columns: Tensor) -> Tensor:
        """trace(columns.mT @ inverse(covariance) @ columns)."""
        raise NotImplementedError

    def _factor(self) -> Tensor:
        """A matrix F with F @ F.mT the covariance."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = self._squared_norm((value - self.loc).unsqueeze(-1))
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return constant + self._half_log_det()


class _OfCovariance(Distribution):
    """A distribution by a covariance matrix, its inverse or its Cholesky factor."""

    def _matrix(self, **given: Tensor | None) -> Tensor:
        """The one that is given, which becomes a member."""
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 1:
            expected = ", ".join(given)
            raise ValueError(
                f"{type(self).__name__}: expected one of {expected}, got {names or 'none'}"
            )
        value: Any = given[names[0]]
        if value.dim() < 2:
            raise ValueError(
                f"{type(self).__name__}: expected {names[0]} of at least 2 dimensions, "
                f"got {value.dim()}"
            )
        setattr(self, names[0], value)
        return value

    def _keep_factor(self, matrix: Tensor) -> None:
        """Keeps the Cholesky factor of the matrix that was given, without the dimensions that loc
        or df adds. Classes of programs compute it in its own way: all else is made of it."""
        given = vars(self)
        if "scale_tril" in given:
            factor = matrix
        elif "covariance_matrix" in given:
            factor = linalg.cholesky(matrix)
        else:
            factor = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = factor

    def _widened(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self._batch_shape, *matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._widened(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._widened(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._widened(_C.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(_OfCovariance, NormalVectors):
    """Normal vectors of a mean and a covariance.

    >>> weft.distributions.MultivariateNormal(weft.zeros(2), weft.eye(2)).entropy()
    tensor(2.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, **_OF_MATRICES}  # noqa: RUF012

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal: expected loc of at least 1 dimension, got 0")
        matrix = self._matrix(
            covariance_matrix=covariance_matrix,
            scale_tril=scale_tril,
            precision_matrix=precision_matrix,
        )
        shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*shape, loc.shape[-1])
        for name in set(vars(self)) & set(_OF_MATRICES):
            setattr(self, name, matrix.expand(*shape, *matrix.shape[-2:]))
        super().__init__(shape, self.loc.shape[-1:], validate_args=validate_args)
        self._keep_factor(matrix)

    @property
    def variance(self) -> Tensor:
        """Of each component."""
        return self._factor().pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _C.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._factor() @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return log_diagonal(self._factor()).expand(self._batch_shape)

    def _squared_norm(self, columns: Tensor) -> Tensor:
        return solved(self._factor(), columns).pow(2).sum((-2, -1))

    def _factor(self) -> Tensor:
        return self._unbroadcasted_scale_tril


class LowRankMultivariateNormal(NormalVectors):
    """Normal vectors whose covariance is cov_factor @ cov_factor.mT + diag(cov_diag): small systems
    of the size of the rank are solved (Woodbury's identity)."""

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1 or cov_factor.dim() < 2:
            raise ValueError(
                "LowRankMultivariateNormal: expected loc of 1 and cov_factor of 2 dimensions at "
                f"least, got {loc.dim()} and {cov_factor.dim()}"
            )
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size or cov_diag.dim() < 1 or cov_diag.shape[-1] != size:
            raise ValueError(
                f"LowRankMultivariateNormal: expected {size} rows of cov_factor and elements of "
                f"cov_diag, got {tuple(cov_factor.shape)} and {tuple(cov_diag.shape)}"
            )
        batches = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        shape = broadcast_shapes(*batches)
        self.loc, self.cov_diag = loc.expand(*shape, size), cov_diag.expand(*shape, size)
        self.cov_factor = cov_factor.expand(*shape, *cov_factor.shape[-2:])
        super().__init__(shape, (size,), validate_args=validate_args)

    @lazy_property
    def variance(self) -> Tensor:
        """Of each component."""
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Its lower Cholesky factor."""
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Its inverse."""
        scaled = self._scaled_factor
        half = solved(self._capacitance_tril, scaled)
        return self.cov_diag.reciprocal().diag_embed() - half.mT @ half

    @property
    def _scaled_factor(self) -> Tensor:
        """cov_factor.mT @ inverse(diag(cov_diag))."""
        return self.cov_factor.mT / self.cov_diag.unsqueeze(-2)

    @lazy_property
    def _capacitance_tril(self) -> Tensor:
        """The Cholesky factor of the capacitance, I + W.mT @ inverse(D) @ W."""
        inner = self._scaled_factor @ self.cov_factor
        return linalg.cholesky(inner + _C.eye(inner.shape[-1], dtype=inner.dtype))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        factors = _C.randn(*shape[:-1], self.cov_factor.shape[-1], dtype=self.loc.dtype)
        noise = _C.randn(shape, dtype=self.loc.dtype)
        common = (self.cov_factor @ factors.unsqueeze(-1)).squeeze(-1)
        return self.loc + common + self.cov_diag.sqrt() * noise

    def _half_log_det(self) -> Tensor:
        return log_diagonal(self._capacitance_tril) + 0.5 * self.cov_diag.log().sum(-1)

    def _squared_norm(self, columns: Tensor) -> Tensor:
        alone = (columns.pow(2) / self.cov_diag.unsqueeze(-1)).sum((-2, -1))
        common = solved(self._capacitance_tril, self._scaled_factor @ columns)
        return alone - common.pow(2).sum((-2, -1))

    def _factor(self) -> Tensor:
        return _C.cat([self.cov_factor, self.cov_diag.sqrt().diag_embed()], -1)


class Wishart(_OfCovariance, ExponentialFamily):
    """The sum of df products v @ v.mT of normal vectors of a covariance: df may be a fraction."""

    support = constraints.positive_definite
    _mean_carrier_measure = 0
    has_rsample = True

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """df has to be above the size less 1."""
        return {**_OF_MATRICES, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = self._matrix(
            covariance_matrix=covariance_matrix,
            scale_tril=scale_tril,
            precision_matrix=precision_matrix,
        )
        df = _C.as_tensor(df, dtype=matrix.dtype)
        shape = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(shape)
        self._event_shape = Size(matrix.shape[-2:])
        if not (self.df > self._event_shape[-1] - 1).all():
            raise ValueError(
                f"Wishart: expected df above {self._event_shape[-1] - 1}, got {self.df}"
            )
        for name in set(vars(self)) & set(_OF_MATRICES):
            setattr(self, name, matrix.expand(*shape, *self._event_shape))
        super().__init__(shape, self._event_shape, validate_args=validate_args)
        self._keep_factor(matrix)

    @property
    def _wide_df(self) -> Tensor:
        return self.df[..., None, None]

    mean = property(lambda self: self._wide_df * self.covariance_matrix, doc="df * covariance.")

    @property
    def mode(self) -> Tensor:
        """nan where df is at most the size plus 1."""
        factor = self._wide_df - self._event_shape[-1] - 1
        return _C.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """Of each element."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._wide_df * (covariance.pow(2) + products)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """By Bartlett's decomposition. PyTorch draws what is positive definite once more: with the
        same seed samples are the same."""
        sample = self._drawn(sample_shape)
        again = whole(self.support.check(sample))
        if self._batch_shape:
            again = again.flatten(-len(self._batch_shape)).any(-1)
        sample[again] = self._drawn((int(again.sum()),))
        return sample

    def _drawn(self, sample_shape: Any) -> Tensor:
        """Products of triangles of normal numbers with themselves, chi on their diagonals."""
        size = self._event_shape[-1]
        df = self.df.unsqueeze(-1) - _C.arange(size, dtype=self.df.dtype)
        chi = Chi2(df, validate_args=False).rsample(sample_shape).sqrt()
        chi = chi.clamp(min=finfo(chi.dtype).eps)
        triangle = chi.diag_embed()
        row, column = _C.tril_indices(size, size, -1)
        shape = (*chi.shape[:-1], len(row))
        triangle[..., row, column] = _C.randn(shape, dtype=chi.dtype)
        factor = self._unbroadcasted_scale_tril @ triangle
        return factor @ factor.mT

    def _half_df(self) -> tuple[int, Tensor, Tensor]:
        """The size, df / 2, and the logarithm of the multivariate gamma function of it."""
        size = self._event_shape[-1]
        return size, self.df / 2, _C.mvlgamma(self.df / 2, p=size)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        size, half, normalizer = self._half_df()
        scale = half * size * math.log(2) + self.df * log_diagonal(self._unbroadcasted_scale_tril)
        trace = (self.precision_matrix * value).sum((-2, -1))  # both are symmetric
        shape = (half - (size + 1) / 2) * linalg.slogdet(value).logabsdet
        return shape - trace / 2 - scale - normalizer

    def entropy(self) -> Tensor:
        size, half, normalizer = self._half_df()
        scale = (size + 1) * (size * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril))
        mean = _C.digamma(half.unsqueeze(-1) - _C.arange(size, dtype=half.dtype) / 2).sum(-1)
        return scale + normalizer - (half - (size + 1) / 2) * mean + half * size

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        determinant = linalg.slogdet(-2 * x).logabsdet
        return half * (size * math.log(2) - determinant) + _C.mvlgamma(half, p=size)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, uniform at concentration 1, nearer to the identity
    above it (Lewandowski, Kurowicka, Joe, 2009)."""

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: expected dim of at least 2, got {dim}")
        self.dim = dim
        self._take(validate_args, concentration=concentration)
        self._event_shape = Size((dim, dim))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By the onion method: a row is a direction on a sphere times a length."""
        a = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2)
        rows = _C.arange(self.dim, dtype=a.dtype).sub(1).clamp(min=0) / 2
        with no_grad():
            squared = Beta(rows + 0.5, a - rows).sample(sample_shape).unsqueeze(-1)
            normal = _C.randn(self._extended_shape(sample_shape), dtype=a.dtype).tril(-1)
            length = linalg.vector_norm(normal, dim=-1, keepdim=True)
            below = squared.sqrt() * normal / _C.where(length > 0, length, 1.0)
            left = (1 - below.pow(2).sum(-1)).clamp(min=finfo(a.dtype).tiny)
            return below + left.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        size = self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = size - _C.arange(1, self.dim, dtype=value.dtype)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + order
        a = self.concentration + 0.5 * size
        normalizer = _C.mvlgamma(a - 0.5, p=size) - _C.lgamma(a) * size
        return (powers * diagonal.log()).sum(-1) - normalizer - 0.5 * size * math.log(math.pi)
