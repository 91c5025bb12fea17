"""Numbers of PyTorch's compilers that are not known yet. Those of weft's programs always are: no
object is of these classes."""

from __future__ import annotations

import math
from typing import Any


class _Symbolic:
    """RuntimeError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{cls.__name__}: expected a plain number, which weft's compilers work with, got a "
            "symbolic one"
        )


class SymInt(_Symbolic):
    """An int that is not known: asked for in isinstance, which says False."""


class SymFloat(_Symbolic):
    """A float that is not known: asked for in isinstance, which says False."""


class SymBool(_Symbolic):
    """A bool that is not known: asked for in isinstance, which says False."""


# Functions that take known numbers and unknown ones: here they are Python's. ----------------------


def sym_int(a: Any) -> int:
    """int(a).

    >>> weft.sym_int(2.7)
    2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """float(a).

    >>> weft.sym_float(2)
    2.0
    """
    return float(a)


def sym_not(a: Any) -> bool:
    """not a.

    >>> weft.sym_not(True)
    False
    """
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers; a float where one of them is.

    >>> weft.sym_max(3, 2.0)
    3.0
    """
    return _as_one(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The lesser of two numbers; a float where one of them is.

    >>> weft.sym_min(3, 2.0)
    2.0
    """
    return _as_one(min(a, b), a, b)


def _as_one(chosen: Any, a: Any, b: Any) -> Any:
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


def sym_sum(args: Any) -> Any:
    """sum(args).

    >>> weft.sym_sum([1, 2])
    3
    """
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f. AssertionError unless b is a bool and both others are of one type.

    >>> weft.sym_ite(True, 1, 2)
    1
    """
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError(f"sym_ite: expected a bool and two values of one type, got {b!r}")
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """math.sqrt(a).

    >>> weft.sym_sqrt(4)
    2.0
    """
    return math.sqrt(a)


def sym_constrain_range(size: Any, *, min: Any = None, max: Any = None) -> None:
    """Raises RuntimeError unless min <= size <= max; None is no bound.

    >>> weft.sym_constrain_range(3, min=2, max=4)
    """
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(
            f"sym_constrain_range: expected a number from {min} to {max}, got {size}"
        )


def sym_constrain_range_for_size(size: Any, *, min: Any = None, max: Any = None) -> None:
    """sym_constrain_range for a number of entries: at least 0 unless `min` says more.

    >>> weft.sym_constrain_range_for_size(3)
    """
    sym_constrain_range(size, min=0 if min is None else min, max=max)
