"""Functions of elements. Those of two arrays compute in the dtype of `result_type`, whatever the
arrays' dimensions are; PyTorch's count a 0-d array as a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft.array_api._dtypes import same_dtype

#: the functions of one array
_ONE = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp floor "
    "isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal "
    "signbit sin sinh sqrt square tan tanh trunc"
)
#: the functions of two
_TWO = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
    "divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow subtract"
)
ONE, TWO = tuple(_ONE.split()), tuple(_TWO.split())


def _function(name: str) -> Callable[..., Tensor]:
    return getattr(weft, {"equal": "eq", "bitwise_invert": "bitwise_not"}.get(name, name))


def _of_one(name: str) -> Callable[[Tensor], Tensor]:
    function = _function(name)

    def call(x: Tensor, /) -> Tensor:
        return function(x)

    return _named(call, name, function)


def _of_two(name: str) -> Callable[[Any, Any], Tensor]:
    function = _function(name)

    def call(x1: Any, x2: Any, /) -> Tensor:
        return function(*same_dtype(x1, x2))

    return _named(call, name, function)


def _named(call: Any, name: str, function: Any) -> Any:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _of_one(name) for name in ONE},
    **{name: _of_two(name) for name in TWO},
}


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts, zeros of a real array."""
    return weft.imag(x) if x.dtype.is_complex else weft.zeros_like(x)


def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, precise near zero; of a complex zero a real part of +0."""
    found = weft.expm1(x)
    return weft.complex(weft.real(found) + 0.0, weft.imag(found)) if x.dtype.is_complex else found


def round(x: Tensor, /) -> Tensor:
    """The nearest whole numbers, of two the even one; of complex elements both parts."""
    if x.dtype.is_complex:
        return weft.complex(weft.round(weft.real(x)), weft.round(weft.imag(x)))
    return weft.round(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; of complex elements x / abs(x); of NaN NaN."""
    found = weft.sgn(x)
    return weft.where(x == x, found, x) if x.dtype.is_floating_point else found


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """What is left of x1 after multiples of x2; of the sign of x2, zeros too."""
    divided, by = same_dtype(x1, x2)
    rest = weft.remainder(divided, by)
    if not rest.dtype.is_floating_point:
        return rest
    # Sums with zero set the sign of zeros; unlike copysign they keep the gradient.
    return weft.where(by < 0, -(0 - rest), 0 + rest)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """The elements within bounds, arrays or numbers that broadcast with x; of x's dtype."""
    result = x.clone()
    for bound, choose in ((min, weft.maximum), (max, weft.minimum)):
        if bound is not None:
            result = choose(*same_dtype(result, bound))
    return result.to(x.dtype)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, else x2."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        x1 = weft.tensor(x1)
    return weft.where(condition, *same_dtype(x1, x2))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is one of x2; the opposite with invert."""
    return weft.isin(*same_dtype(x1, x2), invert=invert)


__all__ = ["clip", "expm1", "imag", "isin", "remainder", "round", "sign", "where"]
