"""The vocabulary of the operator test table: samples, domains, cases.

A case is the sister of a table row: the same key, and what the generic tests in ``test_ops.py`` need
to know about it. Samples name their arrays by shape and domain only; the tests realise them for each
dtype and memory layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTS = ("uint8", "int8", "int16", "int32", "int64")
WIDE_FLOATS = FLOATS + HALVES
REALS = WIDE_FLOATS + INTS
ALL = REALS + ("bool",)
INTEGRAL = INTS + ("bool",)

Domain = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Any real number; the default."""
    return rng.normal(0.0, 2.0, shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Well above zero: logarithms, roots, divisors."""
    return rng.uniform(0.2, 3.0, shape)


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Inside (-1, 1): inverse sines, atanh."""
    return rng.uniform(-0.9, 0.9, shape)


def probability(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Inside (0, 1)."""
    return rng.uniform(0.05, 0.95, shape)


def nonzero(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Away from zero on both sides: divisors, kinks at zero."""
    return rng.uniform(0.3, 3.0, shape) * rng.choice([-1.0, 1.0], shape)


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """No two values alike or close: maxima, sorting, medians have one answer."""
    count = math.prod(shape)
    return (rng.permutation(count).reshape(shape) - count / 2) * 0.37 + 0.11


@dataclass(frozen=True)
class A:
    """An array argument of the dtype under test."""

    shape: tuple[int, ...]
    domain: Domain | None = None  # None: the case's


@dataclass(frozen=True)
class I:  # noqa: E742 - the table reads better with one letter
    """An int64 array with values in [low, high); never of the dtype under test."""

    shape: tuple[int, ...]
    low: int
    high: int


@dataclass(frozen=True)
class B:
    """A mask."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class F:
    """A float64-valued array of the dtype under test's floating kind, whatever the case's domain."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class K:
    """A positive floating array that takes no gradient: class weights."""

    shape: tuple[int, ...]


class S:
    """A sample: the positional and keyword arguments of one call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [repr(a) for a in self.args] + [f"{k}={v!r}" for k, v in self.kwargs.items()]
        return f"S({', '.join(parts)})"


@dataclass(frozen=True)
class Fails:
    """A call that must raise exactly this error text."""

    sample: S
    error: type[Exception]
    text: str


@dataclass
class Case:
    """What the tests know about one row."""

    name: str
    samples: list[S] = field(default_factory=list)
    ref: Callable[..., Any] | None = None
    domain: Domain = normal
    dtypes: tuple[str, ...] = FLOATS
    grad: bool = True  # only asked of rows that have a gradient
    gradgrad: bool = True
    tolerance: float = 1.0  # factor on the dtype's usual tolerance
    layouts: bool = True  # also run on transposed, strided and reversed memory
    fails: tuple[Fails, ...] = ()
    check: Callable[..., None] | None = None  # instead of ref: random rows assert properties
    parity: bool = True  # compare with PyTorch's operator of the same name
    forms: bool = True  # also the derived in-place and out= forms


CASES: dict[str, Case] = {}


def case(name: str, samples: Iterable[S] = (), ref: Callable[..., Any] | None = None, **options: Any) -> None:
    """Adds a case; the key is the row's ``name`` or ``name.overload``."""
    if name in CASES:
        raise ValueError(f"case: expected one case for {name}, got a second")
    CASES[name] = Case(name, list(samples), ref, **options)


def same_shape(*extra: Any, **kwargs: Any) -> list[S]:
    """Samples of a one-tensor row: matrix, scalar, empty, odd sizes around the vector width."""
    shapes = [(3, 4), (), (0, 3), (17,), (2, 3, 5)]
    return [S(A(shape), *extra, **kwargs) for shape in shapes]


def pairs(*extra: Any, **kwargs: Any) -> list[S]:
    """Samples of a two-tensor row: equal shapes and every way of broadcasting."""
    shapes = [
        ((3, 4), (3, 4)),
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((), (2, 3)),
        ((0, 3), (3,)),
        ((19,), (19,)),
        ((2, 1, 4), (3, 1)),
    ]
    return [S(A(a), A(b), *extra, **kwargs) for a, b in shapes]
