"""What the retired arguments of losses, size_average and reduce, say as a reduction."""

from __future__ import annotations

import warnings
from typing import Any

_ENUM = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction. ValueError for another.

    >>> get_enum("mean"), get_enum("sum"), get_enum("none")
    (1, 2, 0)
    """
    if reduction not in _ENUM:
        raise ValueError(f"get_enum: expected a reduction of {list(_ENUM)}, got {reduction!r}")
    return _ENUM[reduction]


def legacy_get_enum(size_average: Any, reduce: Any, emit_warning: bool = True) -> int:
    """get_enum of legacy_get_string."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def legacy_get_string(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """reduce=False is 'none', size_average=False is 'sum'; each is True where it is not given.

    >>> legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    average = True if size_average is None else bool(size_average)
    reduced = True if reduce is None else bool(reduce)
    reduction = "none" if not reduced else "mean" if average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use reduction="
            f"'{reduction}' instead.",
            stacklevel=2,
        )
    return reduction
