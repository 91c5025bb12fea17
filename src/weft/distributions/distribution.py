"""What distributions share: shapes, checks of parameters and values, expansion."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft._runtime.samples import whole
from weft.autograd.grad_mode import no_grad
from weft.distributions.constraints import is_dependent
from weft.distributions.utils import broadcast_all, lazy_property

Size = _C.Size


class Distribution:
    """A family of distributions of the shape batch_shape over values of the shape event_shape.

    arg_constraints: what each parameter may be; support: the values. validate_args: parameters and
    values are checked (ValueError); None for what set_default_validate_args said, at first yes.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: Any = {}  # noqa: RUF012
    _validate_args = __debug__

    if TYPE_CHECKING:  # parameters become members by `_take`

        def __getattr__(self, name: str) -> Any: ...

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments unless told."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, value in self._given().items():
                constraint = self.arg_constraints[name]
                if not (is_dependent(constraint) or whole(constraint.check(value)).all()):
                    raise ValueError(
                        f"{type(self).__name__}: expected {name} within {constraint!r}, got {value}"
                    )
        super().__init__()  # that of nn.Module, in a class that is one too

    def _take(self, validate_args: bool | None, **parameters: Any) -> None:
        """Keeps parameters, broadcast to one shape, which is that of the batch."""
        for name, value in zip(parameters, broadcast_all(*parameters.values())):
            setattr(self, name, value)
        Distribution.__init__(self, value.shape, validate_args=validate_args)

    def _given(self) -> dict[str, Tensor]:
        """The parameters that are kept, by name."""
        return {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch_shape."""
        batch_shape = Size(batch_shape)
        new, given = self._copied(_instance), self._given()
        for name in set(vars(new)) - set(given):
            if isinstance(getattr(type(new), name, None), lazy_property):
                delattr(new, name)  # computed for the smaller batch
        for name, value in given.items():
            inner = value.shape[len(self._batch_shape) :]
            setattr(new, name, value.expand(batch_shape + inner))
        new._batch_shape = batch_shape
        return new

    def _copied(self, instance: Any = None) -> Any:
        """A shallow copy, or `instance` with the members of this one."""
        if instance is None:
            return copy.copy(self)
        vars(instance).update(vars(self))
        return instance

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A new object for the `expand` of cls. NotImplementedError for a derived class that has an
        __init__ of its own but no `expand`."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__}.expand: expected a class with an __init__ of its own to "
                f"have one, got that of {cls.__name__}"
            )
        return type(self).__new__(type(self))

    @property
    def batch_shape(self) -> _C.Size:
        """The shape of the family."""
        return self._batch_shape

    @property
    def event_shape(self) -> _C.Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of the shape sample_shape + batch_shape + event_shape, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)), which is the form to use."""
        warnings.warn("sample_n: expected sample((n,))", UserWarning, stacklevel=2)
        return self.sample((n,))

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def _lacks(self, what: str) -> NoReturn:
        name = type(self).__name__
        raise NotImplementedError(f"{name}.{what}: expected a distribution with it, got {self!r}")

    @property
    def support(self) -> Any:
        """The constraint that values satisfy."""
        self._lacks("support")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        self._lacks("variance")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values as of sample, with gradients for the parameters."""
        self._lacks("rsample")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or its density, of each value."""
        self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which there is this probability."""
        self._lacks("icdf")

    def entropy(self) -> Tensor:
        """The expected negative logarithm of the probability."""
        self._lacks("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dimension."""
        self._lacks("enumerate_support")

    def _all_values(self, values: Tensor, expand: bool) -> Tensor:
        inner = len(self._batch_shape)
        shaped = values.reshape(-1, *(1,) * inner, *self._event_shape)
        return shaped.expand(-1, *self._batch_shape, *self._event_shape) if expand else shaped

    def _extended_shape(self, sample_shape: Any = ()) -> _C.Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check(self, value: Tensor) -> None:
        """_validate_sample where the arguments of this distribution are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """ValueError for a value of another shape, or outside of the support."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: expected a tensor, got {type(value).__name__}")
        own, inner = tuple(self._batch_shape + self._event_shape), len(self._event_shape)
        pairs = zip(reversed(value.shape), reversed(own))
        event = tuple(value.shape[max(value.dim() - inner, 0) :])
        if event != tuple(self._event_shape) or any(a != b and 1 not in (a, b) for a, b in pairs):
            raise ValueError(
                f"{name}: expected values of a shape that broadcasts with {own}, "
                f"got {tuple(value.shape)}"
            )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{name}: expected a support to check values, got none", stacklevel=3)
            return
        if not whole(support.check(value)).all():
            raise ValueError(f"{name}: expected values within {support!r}, got {value}")

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in self._given().items()
        )
        return f"{type(self).__name__}({given})"
