"""The functions of `math` and `cmath`, with Python's errors: ValueError outside of the domain,
OverflowError where the result is too large."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from weft._ops.builtins.reference import check_int, int64, round_half_even, to_float
from weft._ops.builtins.rows import builtin as _builtin

builtin = partial(_builtin, family="mathematics")


# What a result that is infinite means for finite arguments: "grows" a result too large, "pole" a
# point outside of the domain.
_WITH_COMPLEX = {
    "sqrt": "grows", "exp": "grows", "log": "pole", "log10": "pole", "sin": "grows",
    "cos": "grows", "tan": "grows", "asin": "grows", "acos": "grows", "atan": "grows",
    "sinh": "grows", "cosh": "grows", "tanh": "grows", "asinh": "grows", "acosh": "grows",
    "atanh": "pole",
}  # fmt: skip
# Of these CPython has some only since 3.11; programs have them with every Python.
_REAL = {
    "log1p": ("std::log1p", "pole", math.log1p), "expm1": ("std::expm1", "grows", math.expm1),
    "log2": ("std::log2", "pole", math.log2),
    "erf": ("std::erf", "as_is", math.erf), "erfc": ("std::erfc", "as_is", math.erfc),
    "gamma": ("std::tgamma", "gamma", math.gamma),
    "lgamma": ("std::lgamma", "log_gamma", math.lgamma),
    "degrees": ("to_degrees", "as_is", math.degrees),
    "radians": ("to_radians", "as_is", math.radians), "fabs": ("std::fabs", "as_is", math.fabs),
    "cbrt": ("std::cbrt", "as_is", getattr(math, "cbrt", None)),
    "mathexp2": ("std::exp2", "grows", getattr(math, "exp2", None)),
    "ulp": ("math_ulp", "as_is", math.ulp),
}  # fmt: skip


def _unary(name: str, cpp: str, kind: str, function: Any, complex_function: Any) -> None:
    doc = f"math.{name}."

    def any_number(a: Any) -> Any:
        return complex_function(a) if isinstance(a, complex) else function(a)

    on_numbers = any_number if function is not None else None
    builtin(
        f"{name}.int(int a) -> float", f"{kind}(to_double(a), {cpp}(to_double(a)))", function, doc
    )
    builtin(f"{name}.float(float a) -> float", f"{kind}(a, {cpp}(a))", function, doc)
    if complex_function is not None:
        builtin(
            f"{name}.complex(complex a) -> complex", f"complex_{name}(a)", complex_function,
            f"cmath.{name}.",
        )  # fmt: skip
    on_complex = f"complex_{name}(z)" if complex_function is not None else f'no_complex("{name}")'
    builtin(
        f"{name}.Scalar(Scalar a) -> Scalar",
        f"scalar_math(a, [](double x) {{ return {kind}(x, {cpp}(x)); }},"
        f" []([[maybe_unused]] std::complex<double> z) {{ return {on_complex}; }})",
        on_numbers, doc,
    )  # fmt: skip


for _name, _kind in _WITH_COMPLEX.items():
    _unary(_name, f"std::{_name}", _kind, getattr(math, _name), getattr(cmath, _name))
for _name, (_cpp, _kind, _function) in _REAL.items():
    _unary(_name, _cpp, _kind, _function, None)

_WHOLE: dict[str, Any] = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc}
for _name, _function in _WHOLE.items():
    _doc = f"math.{_name}."
    builtin(f"{_name}.int(int a) -> int", "+a", _function, _doc)
    builtin(f"{_name}.float(float a) -> int", f"to_int(std::{_name}(a))", int64(_function), _doc)
    builtin(
        f"{_name}.Scalar(Scalar a) -> Scalar", f"scalar_{_name}", int64(_function), _doc
    )  # fmt: skip

builtin("round.int(int a) -> float", "to_double(a)", float, "The number itself, as a float.")
builtin(
    "round.float(float a) -> float", "std::nearbyint(a)", round_half_even,
    "The nearest whole number; of two, the even one.",
)  # fmt: skip
builtin(
    "round.Scalar(Scalar a) -> Scalar", "scalar_round", lambda a: round_half_even(float(a)),
    "The nearest whole number; of two, the even one.",
)  # fmt: skip
builtin(
    "round.digits(float a, int ndigits) -> float", "round_digits", round,
    "The nearest number with so many digits after the point.",
)  # fmt: skip

_PAIRS = (("int", "int"), ("float", "float"), ("int", "float"), ("float", "int"))


def _binary(name: str, cpp: str, function: Any, scalar_overload: str, doc: str) -> None:
    for a, b in _PAIRS:
        overload = a if a == b else f"{a}_{b}"
        builtin(
            f"{name}.{overload}({a} a, {b} b) -> float", f"{cpp}(to_double(a), to_double(b))",
            to_float(function), doc,
        )  # fmt: skip
    builtin(
        f"{name}{scalar_overload}(Scalar a, Scalar b) -> float",
        f"{cpp}(real_part(\"{name}\", a), real_part(\"{name}\", b))", to_float(function), doc,
    )  # fmt: skip


_binary("fmod", "math_fmod", math.fmod, "", "math.fmod: the remainder with the sign of a.")
_binary(
    "mathremainder", "math_remainder", math.remainder, "",
    "math.remainder: the distance of a from the nearest multiple of b.",
)  # fmt: skip
_binary("copysign", "std::copysign", math.copysign, "", "The size of a with the sign of b.")
_binary("atan2", "std::atan2", math.atan2, ".Scalar_Scalar", "The angle of the point (b, a).")
_binary("hypot", "math_hypot", math.hypot, ".Scalar_Scalar", "The length of (a, b).")
_binary(
    "mathnextafter", "std::nextafter", math.nextafter, "",
    "math.nextafter: the float behind a on the way to b.",
)  # fmt: skip

for _a, _b in _PAIRS:
    builtin(
        f"log.{_a}_{_b}({_a} a, {_b} b) -> float", "log_base(to_double(a), to_double(b))", math.log,
        "The logarithm of a to the base b.",
    )  # fmt: skip
builtin(
    "log.Scalar_Scalar(Scalar a, Scalar b) -> float",
    'log_base(real_part("log", a), real_part("log", b))', math.log,
    "The logarithm of a to the base b.",
)  # fmt: skip
builtin(
    "log.complex_complex(complex a, complex b) -> complex", "divide_complex(complex_log(a), "
    "complex_log(b))", lambda a, b: cmath.log(a) / cmath.log(b),
    "The logarithm of a to the base b.",
)  # fmt: skip
for _a, _b in _PAIRS:
    _overload = _a if _a == _b else f"{_a}_{_b}"
    builtin(
        f"polar.{_overload}({_a} a, {_b} b) -> complex", "polar(to_double(a), to_double(b))",
        cmath.rect, "The number of length a at angle b.",
    )  # fmt: skip

builtin("gcd.int(int a, int b) -> int", "math_gcd(a, b)", int64(math.gcd), "math.gcd.")
builtin(
    "fsum.float(float[] a) -> float", "list_exact_sum", math.fsum,
    "math.fsum: the sum, rounded once.",
)  # fmt: skip
builtin(
    "mathdist.float(float[] a, float[] b) -> float", "list_distance", math.dist,
    "math.dist: how far one point is from another.",
)  # fmt: skip
builtin("lcm.int(int a, int b) -> int", "math_lcm(a, b)", int64(math.lcm), "math.lcm.")


def _factorial(a: int) -> int:
    return check_int(math.factorial(min(a, 21)))


def _choice(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Ways to choose, of which 64 bits hold few: no larger one is worked out."""

    def checked(n: int, k: int) -> int:
        steps = k if function is math.perm else min(k, n - k)
        if k <= n and steps > 40:
            raise OverflowError(f"int: expected a result of 64 bits, got {n} and {k}")
        return check_int(function(n, k))

    return checked


builtin("factorial.int(int a) -> int", "factorial(a)", _factorial, "math.factorial.")
builtin("comb.int(int n, int k) -> int", "math_comb(a, b)", _choice(math.comb), "math.comb.")
builtin("perm.int(int n, int k) -> int", "math_perm(a, b)", _choice(math.perm), "math.perm.")


def _isqrt(a: int) -> int:
    return math.isqrt(a)


builtin("isqrt.int(int a) -> int", "math_isqrt(a)", _isqrt, "math.isqrt.")
builtin("ldexp(float x, int i) -> float", "math_ldexp", math.ldexp, "x times 2 to the i.")
builtin("frexp(float a) -> (float, int)", "math_frexp", math.frexp, "Mantissa and exponent.")
builtin("modf(float a) -> (float, float)", "math_modf", math.modf, "Fraction and whole part.")
for _name in ("isnan", "isinf", "isfinite"):
    builtin(
        f"{_name}.float(float a) -> bool", f"std::{_name}(a)", getattr(math, _name),
        f"math.{_name}.",
    )  # fmt: skip
    _join = "&&" if _name == "isfinite" else "||"
    builtin(
        f"{_name}.complex(complex a) -> bool",
        f"std::{_name}(a.real()) {_join} std::{_name}(a.imag())", getattr(cmath, _name),
        f"cmath.{_name}.",
    )  # fmt: skip
builtin(
    "isclose.float(float a, float b, *, float rel_tol=1e-09, float abs_tol=0.0) -> bool",
    "math_isclose",
    lambda a, b, rel_tol=1e-9, abs_tol=0.0: math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol),
    "math.isclose.",
)
for _type in ("int", "float"):
    builtin(
        f"angle.{_type}({_type} a) -> float", "angle(to_double(a))",
        lambda a: math.nan if a != a else (math.pi if a < 0 else 0.0),
        "0, or pi for negative numbers.",
    )  # fmt: skip
builtin("angle.complex(complex a) -> float", "std::arg(a)", cmath.phase, "cmath.phase.")
