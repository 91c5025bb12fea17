"""Sets of values: the values that parameters may have, and the supports of distributions.

>>> weft.distributions.constraints.simplex.check(weft.tensor([0.25, 0.75]))
tensor(True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import _C, linalg
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft._tensor.limits import finfo


class Constraint:
    """A set of values. The last event_dim dimensions of a tensor are one value."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """True for each value in the set, of the shape without the event dimensions."""
        raise NotImplementedError(f"{type(self).__name__}.check: expected a constraint with one")

    def __repr__(self) -> str:
        words = type(self).__name__.strip("_").split("_")
        values = ", ".join(f"{k}={v}" for k, v in vars(self).items() if k in self._shown)
        return "".join(word[:1].upper() + word[1:] for word in words) + f"({values})"

    _shown: tuple[str, ...] = ("lower_bound", "upper_bound")


class _Dependent(Constraint):
    """The place of a constraint that depends on other parameters."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str) -> Any:
        value = vars(self)[name]
        if value is NotImplemented:
            raise NotImplementedError(f"dependent{name}: expected a constraint that states it")
        return value

    is_discrete = property(lambda self: self._known("_is_discrete"), doc="Of integers only.")
    event_dim = property(lambda self: self._known("_event_dim"), doc="Dimensions of one value.")

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """The same constraint with one or both facts stated."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("dependent.check: expected a known constraint, got a dependent one")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters, so that it cannot be checked alone."""
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property whose value is the constraint; on the class it stands for a dependent one."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)

    __repr__ = Constraint.__repr__


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # all but nan


class interval(Constraint):
    """Numbers between two bounds, which belong to the set."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class half_open_interval(interval):
    """Numbers from a lower bound to an upper one, which does not belong to the set."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class integer_interval(interval):
    """Whole numbers between two bounds, which belong to the set."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _Above(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class greater_than(_Above):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class greater_than_eq(_Above):
    """Numbers above a bound, or equal to it."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class less_than(Constraint):
    """Numbers below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


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


class multinomial(Constraint):
    """Vectors of counts that add up to at most a bound."""

    _shown = ()

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class independent(Constraint):
    """Values of another constraint whose last dimensions are one value."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete, doc="As the base.")

    @property
    def event_dim(self) -> int:
        """Dimensions of one value."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.dim() < count:
            raise ValueError(
                f"independent.check: expected at least {self.event_dim} dimensions, "
                f"got {value.dim()}"
            )
        return result.reshape(*result.shape[: result.dim() - count], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values of the components of a mixture, whose dimension stands before the event's."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            got = type(base_constraint).__name__
            raise AssertionError(f"MixtureSameFamilyConstraint: expected a Constraint, got {got}")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete, doc="As the base.")
    event_dim = property(lambda self: self.base_constraint.event_dim, doc="As the base.")

    def check(self, value: Tensor) -> Tensor:
        inner = self.event_dim
        result = self.base_constraint.check(value.unsqueeze(-1 - inner))
        return result.all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return self._whole(value, value.shape[-2] == value.shape[-1])

    @staticmethod
    def _whole(value: Tensor, answer: bool) -> Tensor:
        return _C.full(value.shape[:-2], answer, dtype=_C.bool)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not square.all():
            return square
        return _C.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return linalg.cholesky_ex(value).info == 0


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = linalg.vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Parts(Constraint):
    """Parts of a tensor along a dimension, each within a constraint of its own."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError(f"{type(self).__name__}: expected constraints, got {cseq!r}")
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq), doc="Any is.")


class cat(_Parts):
    """Values of several constraints, concatenated along `dim` by `lengths`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"cat: expected {len(self.cseq)} lengths, got {len(self.lengths)}")

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq), doc="The largest.")

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return _C.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class stack(_Parts):
    """Values of several constraints, stacked along `dim`."""

    @property
    def event_dim(self) -> int:
        """The largest of the parts, and one more where `dim` stands within it."""
        inner = max(c.event_dim for c in self.cseq)
        return inner + 1 if self.dim + inner < 0 else inner

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return _C.stack([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


dependent = _Dependent()
real = _Real()
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _Boolean()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
simplex = _Simplex()
one_hot = _OneHot()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()


_list_own(vars())
