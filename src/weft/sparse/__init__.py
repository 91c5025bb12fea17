"""Sparse tensors: their products, sums and softmax.

A tensor of layout sparse_coo, sparse_csr or sparse_csc is a `SparseTensor`. It is made by
`weft.sparse_coo_tensor`, `weft.sparse_csr_tensor` and `Tensor.to_sparse`; gradients flow to the
values that are kept. What has no rule here raises NotImplementedError.
"""

from __future__ import annotations

from weft.sparse._construct import spdiags
from weft.sparse._gradients import sparse_embedding as sparse_embedding
from weft.sparse._products import addmm, mm, sampled_addmm
from weft.sparse._reductions import log_softmax, softmax, sum
from weft.sparse._tensor import SparseTensor as SparseTensor
from weft.sparse._typed import BFloat16Tensor as BFloat16Tensor
from weft.sparse._typed import ByteTensor as ByteTensor
from weft.sparse._typed import CharTensor as CharTensor
from weft.sparse._typed import DoubleTensor as DoubleTensor
from weft.sparse._typed import FloatTensor as FloatTensor
from weft.sparse._typed import HalfTensor as HalfTensor
from weft.sparse._typed import IntTensor as IntTensor
from weft.sparse._typed import LongTensor as LongTensor
from weft.sparse._typed import ShortTensor as ShortTensor

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]
