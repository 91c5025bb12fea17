"""Numbers of PyTorch's compilers that are not known yet. Those of weft's programs always are: no
object is of these classes."""

from __future__ import annotations

from typing import Any


class _Symbolic:
    """RuntimeError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{cls.__name__}: expected a plain number, which weft's compilers work with, got a "
            "symbolic one"
        )


class SymInt(_Symbolic):
    """An int that is not known: asked for in isinstance, which says False."""


class SymFloat(_Symbolic):
    """A float that is not known: asked for in isinstance, which says False."""


class SymBool(_Symbolic):
    """A bool that is not known: asked for in isinstance, which says False."""
