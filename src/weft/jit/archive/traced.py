"""Operators that PyTorch's traces name, and its functions of Python with it: parts of others,
older overloads."""

from __future__ import annotations

import weft.nn.functional as F
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit.archive.functions import COMPOSED, composed
from weft.nn._embedding_functions import embedding_renorm_
from weft.nn.utils import rnn

for _name, _method in {
    "linalg_lu": weft.linalg.lu,
    "linalg_lu_factor": weft.linalg.lu_factor,
    "linalg_lu_factor_ex": weft.linalg.lu_factor_ex,
    "linalg_ldl_factor": weft.linalg.ldl_factor,
    "linalg_householder_product": weft.linalg.householder_product,
    "orgqr": weft.orgqr,
    "pad_sequence": rnn.pad_sequence,
}.items():
    COMPOSED[f"aten::{_name}"] = [_method]


@composed("aten::stft")
def stft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Of a signal that has been padded."""
    return weft.stft(
        self, n_fft, hop_length, win_length, window, False, "constant", normalized, onesided,
        return_complex, align_to_window,
    )  # fmt: skip


composed("aten::stft")(weft.stft)


@composed("aten::nonzero_numpy")
def nonzero_numpy(self: Tensor) -> list[Tensor]:
    return list((self if self.dim() > 0 else self.unsqueeze(0)).nonzero().unbind(1))


@composed("aten::embedding_renorm_")
def renormed_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    return embedding_renorm_(self, indices, max_norm, norm_type)


@composed("aten::chain_matmul")
def chain_matmul(matrices: list[Tensor]) -> Tensor:
    return weft.linalg.multi_dot(matrices)


@composed("aten::_shape_as_tensor")
def shape_as_tensor(self: Tensor) -> Tensor:
    return weft.tensor(self.shape)


@composed("aten::_dim_arange")
def dim_arange(like: Tensor, dim: int) -> Tensor:
    return weft.arange(like.size(dim))


@composed("aten::_softmax")
def softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return (self.float() if half_to_float else self).softmax(dim)


@composed("aten::_log_softmax")
def log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return (self.float() if half_to_float else self).log_softmax(dim)


@composed("aten::thnn_conv2d")
def thnn_conv2d(
    self: Tensor, weight: Tensor, kernel_size: list[int], bias: Tensor | None = None,
    stride: list[int] = [1, 1], padding: list[int] = [0, 0],  # noqa: B006
) -> Tensor:  # fmt: skip
    return F.conv2d(self, weight, bias, stride, padding)


@composed("aten::nll_loss2d")
def nll_loss2d(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:  # fmt: skip
    """What nll_loss was up to PyTorch 1.9 for images."""
    return weft._C._nn.nll_loss_nd(self, target, weight, reduction, ignore_index)
