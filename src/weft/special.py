"""Special functions under the names of `torch.special`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import casting_takes_out
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten
gammainc, gammaincc, multigammaln = _C.igamma, _C.igammac, _C.mvlgamma
_OTHER_NAMES = {
    "gammaln": "lgamma",
    "psi": "digamma",
    "expit": "sigmoid",
    "round": "round",
}
_SAME_NAMES = frozenset(
    "digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma sinc "  # noqa: SIM905
    "softmax xlogy".split()
)
_ROWS = frozenset("entr erfcx i0e i1 i1e log_ndtr ndtr ndtri".split())  # noqa: SIM905
# Bessel functions, and their values at 0.5.
_BESSEL = {
    "airy_ai": "0.2317",
    "bessel_j0": "0.9385",
    "bessel_j1": "0.2423",
    "bessel_y0": "-0.4445",
    "bessel_y1": "-1.4715",
    "modified_bessel_i0": "1.0635",
    "modified_bessel_i1": "0.2579",
    "modified_bessel_k0": "0.9244",
    "modified_bessel_k1": "1.6564",
    "scaled_modified_bessel_k0": "1.5241",
    "scaled_modified_bessel_k1": "2.7310",
    "spherical_bessel_j0": "0.9589",
}
# What rows with gradients compute under other names.
_ORDERS = {"modified_bessel_i0": _C.i0, "modified_bessel_i1": _aten.special_i1}
# Polynomials, and the values at 0.7 of those of degree 2.
_POLYNOMIALS = {
    "chebyshev_polynomial_t": "-0.0200",
    "chebyshev_polynomial_u": "0.9600",
    "chebyshev_polynomial_v": "-0.4400",
    "chebyshev_polynomial_w": "2.3600",
    "hermite_polynomial_h": "-0.0400",
    "hermite_polynomial_he": "-0.5100",
    "laguerre_polynomial_l": "-0.1550",
    "legendre_polynomial_p": "0.2350",
    "shifted_chebyshev_polynomial_t": "-0.6800",
    "shifted_chebyshev_polynomial_u": "-0.3600",
    "shifted_chebyshev_polynomial_v": "-1.1600",
    "shifted_chebyshev_polynomial_w": "0.4400",
}


def _pair(function: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two tensors; a number takes the dtype of the other where that is floating."""
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise TypeError(f"{function}: expected at least one tensor, got {a!r} and {b!r}")
    if not isinstance(a, Tensor):
        return _C.tensor(a, dtype=b.dtype if b.is_floating_point() else None), b
    if not isinstance(b, Tensor):
        return a, _C.tensor(b, dtype=a.dtype if a.is_floating_point() else None)
    return a, b


@casting_takes_out
def xlog1py(input: Any, other: Any) -> Tensor:
    """input * log1p(other), 0 where input is 0; either may be a number.

    Tensors broadcast; integers become the default dtype.

    >>> weft.special.xlog1py(weft.tensor([0.0, 2.0]), weft.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """
    return _aten.special_xlog1py(*_pair("xlog1py", input, other))


@casting_takes_out
def zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz's zeta function: the sum of (other + k) ** -input over k >= 0.

    Tensors broadcast; integers become the default dtype.

    >>> weft.special.zeta(weft.tensor([2.0, 4.0]), 1.0)
    tensor([1.6449, 1.0823])
    """
    return _aten.special_zeta(*_pair("zeta", input, other))


def _check_full(function: str, x: Tensor) -> None:
    if x.dtype in (_C.float16, _C.bfloat16):
        raise NotImplementedError(f"{function}: expected float32 or float64, got {x.dtype}")


def _bessel(name: str) -> Callable[..., Tensor]:
    def function(input: Tensor) -> Tensor:
        _check_full(name, input)
        return _ORDERS[name](input) if name in _ORDERS else _aten._special_bessel(input, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The Bessel function {name}, element by element; without gradient.\n\n"
        "The shape of input; integers and bools become the default dtype. RuntimeError for complex "
        "numbers, NotImplementedError for 16 bits.\n\n"
        f">>> weft.special.{name}(weft.tensor([0.5]))\ntensor([{_BESSEL[name]}])\n"
    )
    return casting_takes_out(function)


def _polynomial(name: str) -> Callable[..., Tensor]:
    def function(input: Any, n: Any) -> Tensor:
        x, degree = _pair(name, input, n)
        _check_full(name, x)
        return _aten._special_polynomial(x, degree, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {name} of degree n at input; without gradient.\n\n"
        "Both broadcast; integers and bools become the default dtype. RuntimeError for complex "
        "numbers, NotImplementedError for 16 bits.\n\n"
        f">>> weft.special.{name}(weft.tensor([0.7]), 2)\ntensor([{_POLYNOMIALS[name]}])\n"
    )
    return casting_takes_out(function)


def __getattr__(name: str) -> Any:
    if name in _OTHER_NAMES or name in _SAME_NAMES:
        return getattr(_C, _OTHER_NAMES.get(name, name))
    if name in _ROWS:
        return getattr(_aten, f"special_{name}")
    if name in _BESSEL or name in _POLYNOMIALS:
        made = globals()[name] = (_bessel if name in _BESSEL else _polynomial)(name)
        return made
    raise AttributeError(f"module 'weft.special' has no attribute {name!r}")


_declare(globals())
