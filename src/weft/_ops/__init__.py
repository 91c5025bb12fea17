"""The operator table. Imports the standard library and the kernel language only."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft._ops.table import Row

# In this order the rows are listed and generated.
FAMILIES = (
    "arithmetic",
    "clamp_where",
    "unary",
    "compare",
    "activations",
    "reductions",
    "statistics",
    "rows",
    "views",
    "linalg",
    "convolution",
    "recurrent",
    "losses",
    "indexing",
    "copying",
    "factories",
    "randoms",
    "scans",
    "counting",
    "layout",
    "products",
    "solvers",
    "decompositions",
    "factorizations",
    "spectra",
    "special",
    "math",
    "copies",
    "in_place",
    "padding",
    "quantized",
)


def load() -> list[Row]:
    """Imports every family and returns all rows in order."""
    # Schemas are split without the table, which takes long to import.
    from weft._ops.table import TABLE, complete

    for family in FAMILIES:
        importlib.import_module(f"weft._ops.{family}")
    complete()
    # Somebody may have imported single families before.
    TABLE.sort(key=lambda row: FAMILIES.index(row.family) if row.family in FAMILIES else -1)
    return TABLE


__all__ = ["FAMILIES", "load"]
