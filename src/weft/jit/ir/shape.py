"""What the shape pass knows of a tensor: its dtype and its sizes, some of them symbols."""

from __future__ import annotations

from typing import Any

from weft.jit.ir.record import record

# A size: a number, a symbol ("n": every dimension so named has the same size), or unknown.
Dim = int | str | None


@record(frozen=True)
class ShapeInfo:
    """`dtype` is a weft.dtype or None (unknown); `sizes` None where the rank is unknown.

    >>> str(ShapeInfo(None, (2, "n", None)))
    'Tensor(*, [2, n, *])'
    """

    dtype: Any = None
    sizes: tuple[Dim, ...] | None = None

    @property
    def rank(self) -> int | None:
        """Number of dimensions."""
        return None if self.sizes is None else len(self.sizes)

    @property
    def is_static(self) -> bool:
        """Whether every size is a number."""
        return self.sizes is not None and all(isinstance(size, int) for size in self.sizes)

    def __str__(self) -> str:
        dtype = "*" if self.dtype is None else str(self.dtype).rpartition(".")[2]
        if self.sizes is None:
            return f"Tensor({dtype})"
        sizes = ", ".join("*" if size is None else str(size) for size in self.sizes)
        return f"Tensor({dtype}, [{sizes}])"
