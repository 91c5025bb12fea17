"""What the retired arguments of losses, size_average and reduce, say as a reduction."""

from __future__ import annotations

import warnings
from typing import Any


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
