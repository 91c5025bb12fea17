"""Functions over tensors that only arrange calls of operators, under PyTorch's module name."""

from __future__ import annotations

from weft._C import split
from weft._functions.elements import unique, unique_consecutive
from weft._functions.matrices import cdist, einsum, tensordot
from weft._functions.norms import chain_matmul, norm
from weft._functions.shapes import broadcast_shapes, broadcast_tensors, meshgrid, unravel_index
from weft._functions.spectra import istft, stft
from weft._functions.stacking import atleast_1d, atleast_2d, atleast_3d, block_diag, cartesian_prod

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "meshgrid",
    "norm",
    "split",
    "stft",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]
