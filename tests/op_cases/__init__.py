"""The operator test table: one case per row of ``weft._ops``, same keys.

Families mirror those of the operator table. To add an operator: its row there, its case here.
"""

from . import (
    copies,
    counts,
    factorizations,
    in_place,
    joining,
    layout,
    linear,
    math,
    movement,
    neural,
    padded,
    pointwise,
    products,
    quantized,
    randomness,
    reduction,
    scanning,
    special,
    spectra,
    viewing,
)
from .spec import CASES, Case

__all__ = ["CASES", "Case"]

_FAMILIES = (
    copies,
    counts,
    factorizations,
    in_place,
    joining,
    layout,
    linear,
    math,
    movement,
    neural,
    padded,
    pointwise,
    products,
    quantized,
    randomness,
    reduction,
    scanning,
    special,
    spectra,
    viewing,
)
