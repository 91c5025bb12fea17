"""Methods of numbers and sizes that no operator computes, written in the language."""

from __future__ import annotations

import math
from typing import Any

from weft.jit.frontend.written import product


def numel(sizes: Any) -> int:
    """sizes.numel() of a torch.Size."""
    return product(sizes, 1)


def is_integer(x: Any) -> Any:
    """x.is_integer() of a float."""
    return math.isfinite(x) and math.fmod(x, 1.0) == 0.0


def bit_length(n: Any) -> Any:
    """n.bit_length(): the digits of n without its sign, in base 2."""
    length = 0
    rest = n
    if n < 0:  # half of it, for the largest has no opposite
        length = 1
        rest = n // -2
    while rest > 0:
        rest >>= 1
        length += 1
    return length


def bit_count(n: Any) -> Any:
    """n.bit_count(): the ones among the digits of n without its sign."""
    count = 0
    rest = n
    if n < 0:
        count = n & 1
        rest = n // -2
    while rest > 0:
        count += rest & 1
        rest >>= 1
    return count
