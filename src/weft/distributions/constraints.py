"""Sets of values: what parameters may be, and what samples are."""

from __future__ import annotations

from typing import Any

import weft
from weft import Tensor


class Constraint:
    """A set of values. `check` says of each whether it is in; the last event_dim dimensions are
    one value."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """True where a value is in the set."""
        raise NotImplementedError(f"{type(self).__name__}.check: expected a constraint with one")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.strip('_').title()}({values})"


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # all but nan


class interval(Constraint):
    """Numbers between two bounds, which belong to the set."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class integer_interval(interval):
    """Whole numbers between two bounds, which belong to the set."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class greater_than(Constraint):
    """Numbers above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class greater_than_eq(greater_than):
    """Numbers above a bound, or equal to it."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _NonnegativeInteger(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= 0)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class independent(Constraint):
    """Values of another constraint whose last dimensions are one value."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        return result.flatten(result.dim() - self.reinterpreted_batch_ndims).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        below = (value.tril() == value).flatten(-2).all(-1)
        return below & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        symmetric = weft.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)
        return symmetric & (weft.linalg.cholesky_ex(value).info == 0)


real = _Real()
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _Boolean()
nonnegative_integer = _NonnegativeInteger()
simplex = _Simplex()
one_hot = _OneHot()
lower_cholesky = _LowerCholesky()
positive_definite = _PositiveDefinite()
