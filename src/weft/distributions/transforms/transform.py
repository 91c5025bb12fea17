"""Transforms: what they share, their inverses, and transforms made of others."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft.distributions import constraints
from weft.distributions.utils import _sum_rightmost

Shape = Any


class Transform:
    """An invertible map from `domain` to `codomain`.

    A derived class defines `_call`, `_inverse` and `log_abs_det_jacobian`. cache_size 1 keeps the
    last pair of values, so that inverting the last result costs nothing and is exact.
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: expected cache_size 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._inv: Callable[[], Any] | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # that of nn.Module, in a class that is one too

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """Dimensions of one value, where domain and codomain agree. ValueError otherwise."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError(
                f"{type(self).__name__}.event_dim: expected equal event dimensions, got "
                f"{self.domain.event_dim} and {self.codomain.event_dim}"
            )
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse. The inverse of the inverse is this object."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 for an increasing map, -1 for a decreasing one."""
        raise NotImplementedError(f"{type(self).__name__}.sign: expected a monotone transform")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache_size."""
        if self._cache_size == cache_size:
            return self
        if cache_size not in (0, 1):
            raise ValueError(f"with_cache: expected cache_size 0 or 1, got {cache_size}")
        new = type(self).__new__(type(self))
        vars(new).update(self.__getstate__(), _cache_size=cache_size, _cached_x_y=(None, None))
        return new

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Tensor) -> Tensor:
        """y for x."""
        return self._map(x, self._call, 0)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._map(y, self._inverse, 1)

    def _map(self, value: Tensor, function: Callable[[Tensor], Tensor], place: int) -> Tensor:
        """A function of a value, or the partner of the cached value in `place`."""
        if self._cache_size and value is self._cached_x_y[place]:
            return self._cached_x_y[1 - place]
        result = function(value)
        if self._cache_size:
            self._cached_x_y = (result, value) if place else (value, result)
        return result

    def _lacks(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}.{method}: expected a transform with it")

    def _call(self, x: Tensor) -> Tensor:
        self._lacks("_call")

    def _inverse(self, y: Tensor) -> Tensor:
        self._lacks("_inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx| of each value, from both sides of the map."""
        self._lacks("log_abs_det_jacobian")

    def forward_shape(self, shape: Shape) -> Shape:
        """The shape of y for a shape of x."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """The shape of x for a shape of y."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv: Any = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    inv = property(lambda self: self._inv, doc="The transform.")
    domain = property(lambda self: self._inv.codomain, doc="The codomain of the transform.")
    codomain = property(lambda self: self._inv.domain, doc="The domain of the transform.")
    bijective = property(lambda self: self._inv.bijective, doc="As the transform.")
    sign = property(lambda self: self._inv.sign, doc="As the transform.")

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after the other, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _end(self, parts: Sequence[Any], first: str, last: str) -> constraints.Constraint:
        """The domain at one end, with as many event dimensions as the inner parts need there."""
        if not parts:
            return constraints.real
        found = getattr(parts[0], first)
        needed = getattr(parts[-1], last).event_dim
        for part in reversed(parts):
            ahead, behind = getattr(part, first).event_dim, getattr(part, last).event_dim
            needed = max(needed + ahead - behind, ahead)
        more = needed - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    @property
    def domain(self) -> constraints.Constraint:
        """Where values start."""
        return self._end(self.parts, "domain", "codomain")

    @property
    def codomain(self) -> constraints.Constraint:
        """Where values end."""
        return self._end(self.parts[::-1], "codomain", "domain")

    bijective = property(lambda self: all(p.bijective for p in self.parts), doc="All are.")

    @property
    def sign(self) -> Any:
        """The product of the signs."""
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self) -> Transform:
        """The inverses in the opposite order."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, inverse._inv = weakref.ref(inverse), weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = self._cache_size == cache_size
        return self if same else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return _C.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim, total = self.domain.event_dim, _C.zeros(())
        for part, before, after in zip(self.parts, values, values[1:]):
            term = part.log_abs_det_jacobian(before, after)
            total = total + _sum_rightmost(term, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to one value: their Jacobians are summed."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = self._cache_size == cache_size
        count = self.reinterpreted_batch_ndims
        return self if same else IndependentTransform(self.base_transform, count, cache_size)

    def _more(self, base: constraints.Constraint) -> constraints.Constraint:
        return constraints.independent(base, self.reinterpreted_batch_ndims)

    domain = property(lambda self: self._more(self.base_transform.domain), doc="Of whole events.")
    codomain = property(
        lambda self: self._more(self.base_transform.codomain), doc="Of whole events."
    )
    bijective = property(lambda self: self.base_transform.bijective, doc="As the base.")
    sign = property(lambda self: self.base_transform.sign, doc="As the base.")

    def _call(self, x: Tensor) -> Tensor:
        self._check("x", x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check("y", y, self.codomain)
        return self.base_transform.inv(y)

    def _check(self, name: str, value: Tensor, within: constraints.Constraint) -> None:
        if value.dim() < within.event_dim:
            raise ValueError(
                f"IndependentTransform: expected {name} of at least {within.event_dim} dimensions, "
                f"got {value.dim()}"
            )

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        inner = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(inner, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"
