"""The builtins: operators on numbers, strings, lists, dicts, tuples, and small ones on tensors."""

from __future__ import annotations

import importlib

from weft._ops.builtins.rows import NAMES, TABLE, Builtin, builtin

# In this order the rows are listed and tried.
FAMILIES = (
    "arithmetic",
    "comparison",
    "mathematics",
    "conversion",
    "lists",
    "dicts",
    "strings",
    "tensors",
    "environment",
    "gradients",
)


def load() -> dict[str, Builtin]:
    """Imports every family and returns all rows by kind, in order."""
    for family in FAMILIES:
        load_family(family)
    return TABLE


def load_family(family: str) -> dict[str, Builtin]:
    """Imports a family; gives the rows of all that have been imported, by kind."""
    importlib.import_module(f"weft._ops.builtins.{family}")
    return TABLE


__all__ = ["FAMILIES", "NAMES", "TABLE", "Builtin", "builtin", "load", "load_family"]
