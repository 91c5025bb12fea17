"""Patterns: where the values of a sparse tensor stand."""

from __future__ import annotations

import math
from typing import Any, Protocol

from weft import _C
from weft._C import Tensor
from weft._functions.elements import unique


class Pattern(Protocol):
    """The places of `count` values in a tensor of sizes `size`."""

    size: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many values there are."""

    @property
    def layout(self) -> Any:
        """weft.sparse_coo, weft.sparse_csr or weft.sparse_csc."""

    def parts(self) -> list[tuple[str, Tensor]]:
        """The tensors of the places, by their names."""

    def coo(self) -> Coo:
        """The same places in the same order, as indices."""


class Coo:
    """sparse_coo: indices [k, n] into the first k dimensions; the values are [n, *others].

    coalesced: the indices are in order, each once."""

    def __init__(self, indices: Tensor, size: tuple[int, ...], coalesced: bool) -> None:
        self.indices, self.size = indices, size
        self.coalesced = coalesced or indices.size(1) < 2

    @property
    def count(self) -> int:
        return self.indices.size(1)

    @property
    def layout(self) -> Any:
        return _C.sparse_coo

    @property
    def sparse_dim(self) -> int:
        """How many dimensions the indices span."""
        return self.indices.size(0)

    def parts(self) -> list[tuple[str, Tensor]]:
        return [("indices", self.indices)]

    def coo(self) -> Coo:
        return self

    def keys(self) -> Tensor:
        """Each place as one number, in row-major order: [n]."""
        return flat_keys(self.indices, self.size)

    def merged(self) -> tuple[Coo, Tensor]:
        """The coalesced pattern, and where in it each place is."""
        sizes = self.size[: self.sparse_dim]
        keys, inverse = unique(self.keys(), return_inverse=True)
        return Coo(unflat_keys(keys, sizes), self.size, True), inverse

    def same_places(self, other: Coo) -> bool:
        """Whether values of both stand at the same places in the same order."""
        if self is other or self.indices is other.indices:
            return True
        return self.coalesced and other.coalesced and bool(self.indices.equal(other.indices))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coo) and self.size == other.size and self.same_places(other)

    __hash__ = None  # type: ignore[assignment]


class Compressed:
    """sparse_csr or sparse_csc: of each row, where its values begin (`outer` [rows + 1]), and the
    columns of the values (`inner` [n]). by_columns: rows and columns change places."""

    coalesced = True

    def __init__(
        self, outer: Tensor, inner: Tensor, size: tuple[int, ...], by_columns: bool = False
    ) -> None:
        self.outer, self.inner, self.size, self.by_columns = outer, inner, size, by_columns

    @property
    def count(self) -> int:
        return self.inner.size(0)

    @property
    def layout(self) -> Any:
        return _C.sparse_csc if self.by_columns else _C.sparse_csr

    def parts(self) -> list[tuple[str, Tensor]]:
        names = ("ccol", "row") if self.by_columns else ("crow", "col")
        return [(f"{names[0]}_indices", self.outer), (f"{names[1]}_indices", self.inner)]

    def coo(self) -> Coo:
        spans = _C.arange(self.outer.size(0) - 1).repeat_interleave(self.outer.diff().long())
        pair = [spans, self.inner.long()]
        indices = _C.stack(pair[::-1] if self.by_columns else pair)
        keys = flat_keys(indices, self.size)
        return Coo(indices, self.size, bool((keys.diff() > 0).all()))

    def turned(self) -> Compressed:
        """The places of the transposed matrix."""
        return Compressed(self.outer, self.inner, self.size[::-1], not self.by_columns)

    def same_places(self, other: Compressed) -> bool:
        """Whether values of both stand at the same places in the same order."""
        return self.by_columns == other.by_columns and bool(
            self.outer.equal(other.outer) and self.inner.equal(other.inner)
        )


def flat_keys(indices: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Indices [k, n] as one number each, of a row-major tensor: [n]."""
    keys = _C.zeros(indices.size(1), dtype=_C.int64)
    for row, size in zip(indices, sizes):
        keys = keys * size + row
    return keys


def unflat_keys(keys: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The inverse of flat_keys: [k, n]."""
    rows: list[Tensor] = []
    for size in reversed(sizes):
        rows.insert(0, keys % max(size, 1))
        keys = keys.div(max(size, 1), rounding_mode="floor")
    return _C.stack(rows) if rows else keys.new_empty((0, keys.size(0)))


def compressed(pattern: Coo, by_columns: bool = False) -> Compressed:
    """A coalesced pattern of a matrix in compressed form; for columns, its places must be in the
    order of columns."""
    rows, columns = pattern.indices.flip(0) if by_columns else pattern.indices
    count = pattern.size[1 if by_columns else 0]
    outer = _C.bincount(rows, minlength=count).cumsum(0)
    outer = _C.cat([outer.new_zeros(1), outer])
    return Compressed(outer, columns.clone(), pattern.size, by_columns)


def element_count(sizes: tuple[int, ...]) -> int:
    """The number of places that sizes span. RuntimeError where no int64 holds it."""
    count = math.prod(sizes)
    if count >= 1 << 63:
        raise RuntimeError(f"sparse: expected sizes of fewer than 2^63 places, got {sizes}")
    return count
