"""Names that a package imports when they are first used.

`import weft` takes 20 ms because most of it waits for a use. All packages that wait do so by a
`__getattr__` that knows the module of each name and calls `find`.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def find(package: str, name: str, module: str | None) -> Any:
    """The value of `name` in a package: the module itself, or what it defines under that name, kept
    in the package from now on. AttributeError where no module has it.

    >>> find("weft", "fft", "weft.fft").__name__, find("weft", "vstack", "weft._functions.stacking")
    ('weft.fft', <function vstack>)
    """
    if module is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if module == f"{package}.{name}":
        return importlib.import_module(module)
    found = value(module, name)
    setattr(sys.modules[package], name, found)
    return found


def value(module: str, name: str) -> Any:
    """What a module defines under a name."""
    return getattr(importlib.import_module(module), name)
