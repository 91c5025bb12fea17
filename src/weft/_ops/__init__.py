"""The operator table. Imports the standard library and the kernel language only."""

from __future__ import annotations

import importlib

from weft._ops.table import TABLE, Row, op

# In this order the rows are listed and generated.
FAMILIES = (
    "arithmetic",
    "unary",
    "compare",
    "activations",
    "reductions",
    "rows",
    "views",
    "linalg",
    "convolution",
    "losses",
    "indexing",
    "copying",
    "factories",
    "randoms",
    "scans",
    "counting",
    "arrange",
    "products",
    "special",
    "numeric",
    "copies",
    "padding",
)


def load() -> list[Row]:
    """Imports every family and returns all rows in order."""
    for family in FAMILIES:
        importlib.import_module(f"weft._ops.{family}")
    return TABLE


__all__ = ["FAMILIES", "Row", "load", "op"]
