"""Operators of TorchScript that weft composes in Python: functions of the operators' signatures,
compiled where an archive calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
import weft.nn.functional as F
from weft._C import Tensor
from weft._functions.norms import _weight_norm, norm_except_dim
from weft.jit.archive.numbers import dtype_of

# By operator the functions that stand for its overloads: the first whose parameters take the
# arguments is called.
COMPOSED: dict[str, list[Callable[..., Any]]] = {}


def composed(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for an operator, or for one of its overloads."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED.setdefault(kind, []).append(function)
        return function

    return register


@composed("aten::_convolution")
def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
    benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool,
) -> Tensor:  # fmt: skip
    dims = len(stride)
    if transposed and dims == 1:
        return F.conv_transpose1d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    if transposed and dims == 2:
        return F.conv_transpose2d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    if transposed:
        return F.conv_transpose3d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    if dims == 1:
        return F.conv1d(input, weight, bias, stride, padding, dilation, groups)
    if dims == 2:
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.conv3d(input, weight, bias, stride, padding, dilation, groups)


@composed("aten::_convolution")
def _convolution_before_tf32(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
    benchmark: bool, deterministic: bool, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    return _convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
        benchmark, deterministic, cudnn_enabled, True,
    )  # fmt: skip


@composed("aten::_convolution_mode")
def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str,
    dilation: list[int], groups: int,
) -> Tensor:  # fmt: skip
    dims = len(stride)
    if dims == 1:
        return F.conv1d(input, weight, bias, stride, padding, dilation, groups)
    if dims == 2:
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.conv3d(input, weight, bias, stride, padding, dilation, groups)


composed("aten::_weight_norm")(_weight_norm)
composed("aten::norm_except_dim")(norm_except_dim)


@composed("aten::instance_norm")
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@composed("aten::pad")
def pad(
    input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    return F.pad(input, pad, mode, 0.0 if value is None else value)


@composed("aten::group_norm")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    return F.group_norm(input, num_groups, weight, bias, eps)


@composed("aten::to")
def to_device(
    self: Tensor, device: weft.device | None, dtype: int | None = None, non_blocking: bool = False,
    copy: bool = False, memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    moved = self.to(device, copy=copy) if device is not None else self
    return moved if dtype is None else moved.to(dtype_of(dtype))


@composed("aten::to")
def to_dtype(
    self: Tensor, dtype: int | None = None, non_blocking: bool = False, copy: bool = False,
    memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    return self if dtype is None else self.to(dtype_of(dtype), copy=copy)


@composed("aten::to_mkldnn")
def to_mkldnn(self: Tensor, dtype: int | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype_of(dtype))


@composed("aten::to_dense")
def to_dense(self: Tensor, dtype: int | None = None, *, masked_grad: bool | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype_of(dtype))


@composed("aten::sum_to_size")
def sum_to_size(self: Tensor, size: list[int]) -> Tensor:
    leading = self.dim() - len(size)
    dims = [i for i in range(self.dim()) if i < leading or size[i - leading] == 1]
    return self.sum(dims, keepdim=True).reshape(size) if len(dims) > 0 else self.reshape(size)


# Parts that may be written to: each has a history of its own --------------------------------------


@composed("aten::unsafe_chunk")
def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in self.chunk(chunks, dim)]


@composed("aten::unsafe_split")
def unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in self.split(split_size, dim)]


@composed("aten::unsafe_split_with_sizes")
def unsafe_split_with_sizes(self: Tensor, split_sizes: list[int], dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in self.split(split_sizes, dim)]


# In place -----------------------------------------------------------------------------------------


@composed("aten::dropout_")
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return input.copy_(F.dropout(input, p, train))


@composed("aten::hardsigmoid_")
def hardsigmoid_(self: Tensor) -> Tensor:
    return self.copy_(F.hardsigmoid(self.clone()))


@composed("aten::hardswish_")
def hardswish_(self: Tensor) -> Tensor:
    return self.copy_(F.hardswish(self.clone()))


@composed("aten::mish_")
def mish_(self: Tensor) -> Tensor:
    return self.copy_(F.mish(self.clone()))


@composed("aten::relu6_")
def relu6_(self: Tensor) -> Tensor:
    return self.copy_(F.relu6(self.clone()))


@composed("aten::selu_")
def selu_(self: Tensor) -> Tensor:
    return self.copy_(F.selu(self.clone()))


@composed("aten::celu_")
def celu_(self: Tensor, alpha: float = 1.0) -> Tensor:
    return self.copy_(F.celu(self.clone(), alpha))


@composed("aten::threshold_")
def threshold_(self: Tensor, threshold: float, value: float) -> Tensor:
    return self.copy_(F.threshold(self.clone(), threshold, value))


# Sums of embeddings -------------------------------------------------------------------------------


@composed("aten::embedding_bag")
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
    mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return padded_embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, None,
    )  # fmt: skip


@composed("aten::embedding_bag")
def padded_embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int,
    sparse: bool, per_sample_weights: Tensor | None, include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The sums, means or maxima; what backward of PyTorch needs besides is empty."""
    name = ["sum", "mean", "max"][mode]
    found = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, name, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    nothing = weft.empty([0], dtype=weft.int64)
    return found, nothing, nothing, nothing


# What a program asks ------------------------------------------------------------------------------


@composed("aten::is_autocast_enabled")
def is_autocast_enabled() -> bool:
    return weft.is_autocast_enabled("cuda")
