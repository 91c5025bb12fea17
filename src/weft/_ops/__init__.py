"""The operator table. Imports the standard library and the kernel language only."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft._ops.table import TABLE, Row, op  # noqa: F401

# In this order the rows are listed and generated.
FAMILIES = (
    "arithmetic",
    "choices",
    "unary",
    "compare",
    "activations",
    "reductions",
    "moments",
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
    "factorizations",
    "spectra",
    "special",
    "numeric",
    "copies",
    "padding",
)


def load() -> list[Row]:
    """Imports every family and returns all rows in order."""
    from weft._ops.table import TABLE, complete

    for family in FAMILIES:
        importlib.import_module(f"weft._ops.{family}")
    complete()
    # Somebody may have imported single families before.
    TABLE.sort(key=lambda row: FAMILIES.index(row.family) if row.family in FAMILIES else -1)
    return TABLE


def __getattr__(name: str) -> Any:
    # Schemas are split without the table, which takes long to import.
    if name in ("TABLE", "Row", "op"):
        return getattr(importlib.import_module("weft._ops.table"), name)
    raise AttributeError(f"module 'weft._ops' has no attribute {name!r}")


__all__ = ["FAMILIES", "Row", "load", "op"]
