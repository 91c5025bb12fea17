"""Every function of `math` in a program: the value of Python's, bit for bit, or the same class of error."""

from __future__ import annotations

import math
import random
import struct
import sys
from typing import Any

import pytest

from weft import jit

_random = random.Random(3)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 1e-300, -1e-300, 5e-324, 20.5, 23.0, 24.0, 141.5,
           170.5, 171.7, 172.0, -170.5, -199.5, -300.5, 700.0, 710.0, -745.0, math.pi, 4503599627370497.5, 1e18, 1e300,
           -1e300, math.inf, -math.inf, math.nan]  # fmt: skip
FLOATS = [
    *SPECIAL,
    *(_random.uniform(-5, 5) for _ in range(200)),
    *(_random.uniform(-180, 180) for _ in range(100)),
    *(_random.choice((-1, 1)) * 10 ** _random.uniform(-300, 300) for _ in range(50)),
]
PAIRS = [(a, b) for a in SPECIAL for b in SPECIAL]
INTS = [0, 1, 2, 3, 5, 12, 20, 33, 66, -1, -6]
INT_PAIRS = [(a, b) for a in INTS for b in INTS]
LISTS = [([0.1] * 10,), ([1e16, 1.0, -1e16],), ([2.0, 3.5],), ([],), ([1e308, 1e308, -1e308],),
         ([1.0, 2.0**-53, 2.0**-106],), ([math.inf, 1.0],), ([math.inf, -math.inf],),
         ([math.nan, math.inf],), ([1e308, math.inf, 1e308],),
         *(([_random.uniform(-1, 1) * 10 ** _random.uniform(-9, 9) for _ in range(n)],)
           for n in range(1, 60))]  # fmt: skip
NEAR = [_random.uniform(-1, 1) * 10 ** _random.uniform(-4, 4) for _ in range(400)]
POINTS = [(NEAR[i : i + 5], NEAR[i + 5 : i + 10]) for i in range(0, 390, 10)]

# The parameters of each function, and the arguments to try.
OF_FLOAT = "x: float", [(x,) for x in FLOATS]
OF_FLOATS = "x: float, y: float", [*PAIRS, *zip(NEAR[::2], NEAR[1::2])]
OF_INTS = "x: int, y: int", INT_PAIRS
FUNCTIONS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(
        [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cbrt",
            "ceil",
            "cos",
            "cosh",
            "degrees",
            "erf",
            "erfc",
            "exp",
            "exp2",
            "expm1",
            "fabs",
            "floor",
            "frexp",
            "gamma",
            "isfinite",
            "isinf",
            "isnan",
            "lgamma",
            "log",
            "log10",
            "log1p",
            "log2",
            "modf",
            "radians",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "trunc",
            "ulp",
        ],
        OF_FLOAT,
    ),
    **dict.fromkeys(
        ["atan2", "copysign", "fmod", "hypot", "isclose", "nextafter", "pow", "remainder"],
        OF_FLOATS,
    ),
    **dict.fromkeys(["comb", "gcd", "lcm", "perm"], OF_INTS),
    **dict.fromkeys(("factorial", "isqrt"), ("x: int", [(x,) for x in INTS])),
    "fsum": ("xs: List[float]", LISTS),
    "prod": ("xs: List[float]", [args for args in LISTS if args[0]]),  # of none it is an int
    "dist": (
        "p: List[float], q: List[float]",
        [([1.0, 2.5], [3.0, 4.1]), ([1.0], [3.0, 4.0]), *POINTS],
    ),
    "ldexp": ("x: float, n: int", [(x, n) for x in SPECIAL for n in (0, 1, -7, 100, 1100, -1100)]),
}


def shown(value: Any) -> Any:
    """A value so that NaN and -0.0 can be compared."""
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("d", value)
    return type(value), value


def outcome(function: Any, args: tuple[Any, ...]) -> Any:
    """The value, or the class of the error."""
    try:
        return shown(function(*args))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return type(error)


def test_no_function_is_forgotten():
    every = {name for name, value in vars(math).items() if callable(value) and name[0] != "_"}
    assert every - set(FUNCTIONS) <= {"sumprod", "fma"}  # which came with later Pythons


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if hasattr(math, name)])
def test_same_bits(name):
    parameters, calls = FUNCTIONS[name]
    names = ", ".join(each.partition(":")[0].strip() for each in parameters.split(","))
    unit = jit.CompilationUnit(f"def f({parameters}):\n    return math.{name}({names})\n")
    compared = 0
    for args in calls:
        if sys.version_info < (3, 11) and name == "pow" and args[1:] == (-math.inf,):
            continue  # Python 3.10 raises where later ones have infinity
        expected = outcome(getattr(math, name), args)
        if expected == (int, 0) or not _is_long(expected):
            assert outcome(unit.f, args) == expected, args
            compared += 1
        else:  # ints have 64 bits
            assert outcome(unit.f, args) in (OverflowError, ValueError), args
    assert compared


def _is_long(expected: Any) -> bool:
    return isinstance(expected, tuple) and expected[0] is int and abs(expected[1]) >= 2**63


@pytest.mark.parametrize("number", ["0.5", "5", "-2.5", "30.25"])
@pytest.mark.parametrize("name", ["gamma", "lgamma"])
def test_a_constant_gives_what_a_variable_gives(name, number):
    text = f"def f(x: float):\n    return math.{name}({number}), math.{name}(x)\n"
    folded, computed = jit.CompilationUnit(text).f(float(number))
    assert shown(folded) == shown(computed) == shown(getattr(math, name)(float(number)))


# Other arguments than those above.
CALLS = {
    "math.hypot(x, n, 2)": "three numbers",
    "math.hypot(x)": "one number",
    "math.hypot(*(x, n, x, 0.1))": "a tuple",
    "math.dist((x, n), (1, 2.5))": "tuples",
    "math.dist([n, 2], [1, 2])": "ints",
    "math.fsum(i / 7 for i in range(n))": "a generator",
    "math.fsum((n, x, True))": "a tuple",
    "math.fsum([n, n])": "ints",
    "math.perm(n)": "one number",
    "math.perm(n, None)": "None",
    "math.perm(n, n if x > 2 else None)": "perhaps None",
    "math.ulp(n)": "an int",
    "math.nextafter(n, x)": "an int and a float",
}


@pytest.mark.parametrize("call", CALLS)
def test_other_arguments(call: str) -> None:
    unit = jit.CompilationUnit(f"def f(x: float, n: int):\n    return {call}\n")
    assert "CallPython" not in str(unit.f.inlined_graph)
    for x, n in ((1.5, 4), (2.25, 3), (-3.0, 6)):
        python = eval(f"lambda x, n: {call}", {"math": math})
        assert outcome(unit.f, (x, n)) == outcome(python, (x, n))


def test_no_function_is_a_call_of_python() -> None:
    for name, (parameters, _) in FUNCTIONS.items():
        if hasattr(math, name):
            names = ", ".join(each.partition(":")[0].strip() for each in parameters.split(","))
            unit = jit.CompilationUnit(f"def f({parameters}):\n    return math.{name}({names})\n")
            assert "CallPython" not in str(unit.f.inlined_graph), name
