"""Transforms from unconstrained numbers onto the values of a constraint.

>>> weft.distributions.biject_to(weft.distributions.constraints.unit_interval)
SigmoidTransform()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.distributions import constraints as sets
from weft.distributions import transforms
from weft.distributions.constraints import Constraint
from weft.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry(Constraint):
    """Calling it with a constraint gives the transform that is registered for its class."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Registers a function from a constraint of this class to a transform; a decorator without
        one. TypeError for an argument that is no constraint."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"register: expected a constraint, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform onto a constraint. NotImplementedError where its class has none."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            name = type(constraint).__name__
            raise NotImplementedError(
                f"ConstraintRegistry: expected a registered constraint, got {name}"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
"""Bijections: for Hamiltonian Monte Carlo and the like, which need densities."""

transform_to = ConstraintRegistry()
"""Transforms that suit optimisation: they may have more coordinates than they need."""


def _register(constraint: Any, factory: Factory, *registries: ConstraintRegistry) -> None:
    for registry in registries or (biject_to, transform_to):
        registry.register(constraint, factory)


def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    bounds = isinstance(low, (int, float)) and isinstance(high, (int, float))
    if bounds and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    affine = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), affine])


def _shifted_exp(bound: Any, scale: int) -> Transform:
    affine = transforms.AffineTransform(bound, scale)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


def _parts(maker: Any, registry: ConstraintRegistry) -> Factory:
    def factory(constraint: Any) -> Transform:
        inner = [registry(each) for each in constraint.cseq]
        lengths = [constraint.lengths] if isinstance(constraint, sets.cat) else []
        return maker(inner, constraint.dim, *lengths)

    return factory


def _independent(registry: ConstraintRegistry) -> Factory:
    return lambda c: transforms.IndependentTransform(
        registry(c.base_constraint), c.reinterpreted_batch_ndims
    )


_register(sets.real, lambda c: transforms.identity_transform)
_register(sets.greater_than, lambda c: _shifted_exp(c.lower_bound, 1))
_register(sets.greater_than_eq, lambda c: _shifted_exp(c.lower_bound, 1))
_register(sets.less_than, lambda c: _shifted_exp(c.upper_bound, -1))
_register(sets.interval, _between)
_register(sets.half_open_interval, _between)
_register(sets.simplex, lambda c: transforms.StickBreakingTransform(), biject_to)
_register(sets.simplex, lambda c: transforms.SoftmaxTransform(), transform_to)
_register(sets.lower_cholesky, lambda c: transforms.LowerCholeskyTransform(), transform_to)
_register(sets.positive_definite, lambda c: transforms.PositiveDefiniteTransform(), transform_to)
_register(
    sets.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform(), transform_to
)
_register(sets.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())
for _registry in (biject_to, transform_to):
    _register(sets.independent, _independent(_registry), _registry)
    _register(sets.cat, _parts(transforms.CatTransform, _registry), _registry)
    _register(sets.stack, _parts(transforms.StackTransform, _registry), _registry)
