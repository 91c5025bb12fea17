"""Operators that exported programs call beside those of archives: sizes of tensors as numbers, what
a program asserts, and parts of layers."""

from __future__ import annotations

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit.archive.functions import composed
from weft.nn import functional as F


@composed("aten::sym_size")
def sym_size(self: Tensor, dim: int) -> int:
    return self.size(dim)


@composed("aten::sym_stride")
def sym_stride(self: Tensor, dim: int) -> int:
    return self.stride(dim)


@composed("aten::sym_numel")
def sym_numel(self: Tensor) -> int:
    return self.numel()


@composed("aten::sym_storage_offset")
def sym_storage_offset(self: Tensor) -> int:
    return self.storage_offset()


# Whether a number is in a range that PyTorch's compiler was told of holds or was asserted before.


@composed("aten::sym_constrain_range", "aten::sym_constrain_range_for_size")
def sym_constrain_range(size: int, *, min: int | None = None, max: int | None = None) -> None:
    return


@composed("aten::_assert_scalar")
def assert_scalar(self: bool, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


@composed("aten::_assert_async")
def assert_async(self: Tensor) -> None:
    if not bool(self):
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero")


@composed("aten::_assert_async")
def assert_async_with_text(self: Tensor, assert_msg: str) -> None:
    if not bool(self):
        raise RuntimeError(assert_msg)


@composed("aten::_assert_tensor_metadata")
def assert_tensor_metadata(
    a: Tensor, size: list[int] | None = None, stride: list[int] | None = None,
    dtype: _C.dtype | None = None, *, device: _C.device | None = None, layout: int | None = None,
) -> None:  # fmt: skip
    if size is not None and list(a.shape) != size:
        raise RuntimeError("Tensor sizes mismatch!")
    if dtype is not None and a.dtype != dtype:
        raise RuntimeError("Tensor dtype mismatch!")


@composed("aten::lift_fresh_copy")
def lift_fresh_copy(self: Tensor) -> Tensor:
    return self.clone()


@composed("aten::lift_fresh")
def lift_fresh(self: Tensor) -> Tensor:
    return self


@composed("aten::detach_")
def detach_(self: Tensor) -> Tensor:
    """Of what has no history, as constants of programs: others would be seen to change."""
    if self.requires_grad:
        raise RuntimeError("detach_: expected a tensor without gradients, got one that has them")
    return self


@composed("aten::numpy_T")
def numpy_t(self: Tensor) -> Tensor:
    return self.permute(list(range(self.dim() - 1, -1, -1)))


@composed("aten::mT")
def matrix_t(self: Tensor) -> Tensor:
    return self.transpose(-2, -1)


@composed("aten::mH")
def matrix_h(self: Tensor) -> Tensor:
    return self.transpose(-2, -1).conj()


@composed("aten::_safe_softmax")
def safe_softmax(self: Tensor, dim: int, dtype: _C.dtype | None = None) -> Tensor:
    """0 where all of a row is -inf, and its gradient too."""
    hidden = (self == float("-inf")).all(dim, True)
    return self.masked_fill(hidden, 0).softmax(dim, dtype).masked_fill(hidden, 0)


@composed("aten::new_empty_strided")
def new_empty_strided(
    self: Tensor, size: list[int], stride: list[int], *, dtype: _C.dtype | None = None,
    layout: int | None = None, device: _C.device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    kind = self.dtype if dtype is None else dtype
    return _C.empty_strided(size, stride, dtype=kind, device=device)


@composed("aten::empty_permuted")
def empty_permuted(
    size: list[int], physical_layout: list[int], *, dtype: _C.dtype | None = None,
    layout: int | None = None, device: _C.device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    return weft.empty_permuted(size, physical_layout, dtype=dtype, device=device)


@composed("aten::ormqr")
def ormqr(
    self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    return weft.ormqr(self, input2, input3, left, transpose)


@composed("aten::_native_batch_norm_legit")
def batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    result, mean, inverse = weft.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return result, mean, inverse


@composed("aten::_native_batch_norm_legit_no_training")
def batch_norm_no_training(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    result = F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    return result, input.new_empty(0), input.new_empty(0)


# Parts of functions, which programs of PyTorch's smallest set of operators call.


@composed("aten::copy")
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return src.to(self.dtype).expand(self.shape).clone()


@composed("aten::_adaptive_avg_pool2d")
def adaptive_avg_pool2d(self: Tensor, output_size: list[int]) -> Tensor:
    return F.adaptive_avg_pool2d(self, output_size)


@composed("aten::_adaptive_avg_pool3d")
def adaptive_avg_pool3d(self: Tensor, output_size: list[int]) -> Tensor:
    return F.adaptive_avg_pool3d(self, output_size)


@composed("aten::_pdist_forward")
def pdist_forward(self: Tensor, p: float = 2.0) -> Tensor:
    return F.pdist(self, p)


@composed("aten::_cdist_forward")
def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    return weft.cdist(x1, x2, p)


@composed("aten::_fft_r2c")
def fft_r2c(self: Tensor, dim: list[int], normalization: int, onesided: bool) -> Tensor:
    norm = ["backward", "ortho", "forward"][normalization]
    if onesided:
        return weft.fft.rfftn(self, dim=dim, norm=norm)
    return weft.fft.fftn(self, dim=dim, norm=norm)


@composed("aten::_fft_c2r")
def fft_c2r(self: Tensor, dim: list[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = [self.size(each) for each in dim[:-1]] + [last_dim_size]
    return weft.fft.irfftn(self, sizes, dim, ["forward", "ortho", "backward"][normalization])
