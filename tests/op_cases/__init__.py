"""The operator test table: one case per row of ``weft._ops``, same keys.

Families mirror those of the operator table. To add an operator: its row there, its case here.
"""

from . import (
    arranging,
    counts,
    joining,
    linear,
    movement,
    neural,
    numeric,
    pointwise,
    products,
    randomness,
    reduction,
    scanning,
    viewing,
)
from .spec import CASES, Case

__all__ = ["CASES", "Case"]

_FAMILIES = (
    arranging,
    counts,
    joining,
    linear,
    movement,
    neural,
    numeric,
    pointwise,
    products,
    randomness,
    reduction,
    scanning,
    viewing,
)
