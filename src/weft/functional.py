"""Functions over tensors that only arrange calls of operators, under PyTorch's module name."""

from __future__ import annotations

from weft._C import split as split
from weft._functions.elements import unique as unique
from weft._functions.elements import unique_consecutive as unique_consecutive
from weft._functions.matrices import cdist as cdist
from weft._functions.matrices import einsum as einsum
from weft._functions.matrices import tensordot as tensordot
from weft._functions.norms import chain_matmul as chain_matmul
from weft._functions.norms import norm as norm
from weft._functions.shapes import broadcast_shapes as broadcast_shapes
from weft._functions.shapes import broadcast_tensors as broadcast_tensors
from weft._functions.shapes import meshgrid as meshgrid
from weft._functions.shapes import unravel_index as unravel_index
from weft._functions.spectra import istft as istft
from weft._functions.spectra import stft as stft
from weft._functions.stacking import atleast_1d as atleast_1d
from weft._functions.stacking import atleast_2d as atleast_2d
from weft._functions.stacking import atleast_3d as atleast_3d
from weft._functions.stacking import block_diag as block_diag
from weft._functions.stacking import cartesian_prod as cartesian_prod
from weft._runtime.exports import list_exports as _list_exports

_list_exports(vars())
