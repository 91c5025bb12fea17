"""The operator test table: one case per row of ``weft._ops``, same keys.

Families mirror those of the operator table. To add an operator: its row there, its case here.
"""

from . import joining, linear, movement, neural, pointwise, randomness, reduction, viewing
from .spec import CASES, Case

__all__ = ["CASES", "Case"]

_FAMILIES = (joining, linear, movement, neural, pointwise, randomness, reduction, viewing)
