"""Functions that join tensors: stacks by dimension, products of vectors, block diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import listed, meshgrid
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten


def _each(function: Any, tensors: Sequence[Any]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    return tuple([function(t) for t in listed(tensors)])


def atleast_1d(*tensors: Any) -> Any:
    """The tensors with at least one dimension.

    One tensor gives one, several (or a list) a tuple. Views where they can be. Any dtype.

    >>> weft.atleast_1d(weft.tensor(1))
    tensor([1])
    """
    return _each(lambda t: t.reshape(1) if t.dim() == 0 else t, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensors with at least two dimensions; vectors become rows.

    One tensor gives one, several (or a list) a tuple. Any dtype.

    >>> weft.atleast_2d(weft.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _each(lambda t: t.reshape(1, -1) if t.dim() < 2 else t, tensors)


def _at_least_3d(t: Tensor) -> Tensor:
    if t.dim() < 2:
        return t.reshape(1, -1, 1)
    return t.unsqueeze(-1) if t.dim() == 2 else t


def atleast_3d(*tensors: Any) -> Any:
    """The tensors with at least three dimensions.

    One tensor gives one, several (or a list) a tuple; [n] becomes [1, n, 1], [n, m] becomes [n, m,
    1]. Any dtype.

    >>> weft.atleast_3d(weft.tensor([1, 2])).shape
    torch.Size([1, 2, 1])
    """
    return _each(_at_least_3d, tensors)


def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined side by side: along dimension 1, vectors along 0.

    dtypes are promoted. Raises RuntimeError for sizes that differ elsewhere.

    >>> weft.hstack([weft.tensor([1, 2]), weft.tensor([3])])
    tensor([1, 2, 3])
    """
    parts = [atleast_1d(t) for t in _several("hstack", tensors)]
    return _cat(parts, 0 if parts and parts[0].dim() == 1 else 1, out)


def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined one below the other.

    Vectors are rows; dtypes are promoted. Raises RuntimeError for sizes that differ elsewhere.

    >>> weft.vstack([weft.tensor([1, 2]), weft.tensor([[3, 4]])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _cat([atleast_2d(t) for t in _several("vstack", tensors)], 0, out)


def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the third dimension.

    Each has at least three dimensions first, as by atleast_3d. Raises RuntimeError for sizes that
    differ elsewhere.

    >>> weft.dstack([weft.tensor([1, 2]), weft.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _cat([atleast_3d(t) for t in _several("dstack", tensors)], 2, out)


def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined as columns; vectors are columns themselves.

    dtypes are promoted. Raises RuntimeError for numbers of rows that differ.

    >>> weft.column_stack([weft.tensor([1, 2]), weft.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = _several("column_stack", tensors)
    return _cat([t.reshape(-1, 1) if t.dim() < 2 else t for t in columns], 1, out)


def _several(function: str, tensors: Any) -> Sequence[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{function}: expected a list of tensors, got {type(tensors).__name__}")
    return tensors


def _cat(parts: list[Tensor], dim: int, out: Tensor | None) -> Tensor:
    if not parts:
        raise RuntimeError("cat: expected at least one tensor, got none")
    return _C.cat(parts, dim) if out is None else _C.cat(parts, dim, out=out)


row_stack = vstack


concat = concatenate = _C.cat


def block_diag(*tensors: Any) -> Tensor:
    """The matrices along one diagonal, zeros else: block_diag(a, b) or block_diag([a, b]).

    Vectors are rows, numbers 1 x 1; dtypes are promoted. Raises RuntimeError for more than two
    dimensions.

    >>> weft.block_diag(weft.tensor([[1, 2]]), weft.tensor([[3], [4]]))
    tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
    return _aten.block_diag(listed(tensors))


def _check_vector(function: str, x: Tensor) -> None:
    if x.dim() != 1:
        raise RuntimeError(f"{function}: expected a vector, got shape {tuple(x.shape)}")


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of the entries of vectors, one a row.

    n vectors give [product of their sizes, n]; one vector gives itself. Raises RuntimeError for
    other numbers of dimensions. They are of one dtype.

    >>> weft.cartesian_prod(weft.tensor([1, 2]), weft.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    parts = listed(tensors)
    for part in parts:
        _check_vector("cartesian_prod", part)
    if len(parts) == 1:
        return parts[0]
    return _C.stack([grid.reshape(-1) for grid in meshgrid(parts, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r entries of a vector, one a row.

    Raises RuntimeError for other numbers of dimensions, and for a negative r.

    >>> weft.combinations(weft.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector("combinations", input)
    if r < 0:
        raise RuntimeError(f"combinations: expected r >= 0, got {r}")
    if r == 0:
        return input.new_empty(0)
    positions = _C.arange(input.numel(), device=input.device)
    grids = meshgrid([positions] * r, indexing="ij")
    kept = _C.ones_like(grids[0], dtype=_C.bool)
    for i in range(r - 1):
        kept = kept & (grids[i] <= grids[i + 1] if with_replacement else grids[i] < grids[i + 1])
    return _C.stack([input.index_select(0, grid.masked_select(kept)) for grid in grids], 1)


_declare(globals(), ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod"))
