"""Layers and dropout as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._runtime.torch_function import declare as _declare

# Normalisation ------------------------------------------------------------------------------------


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """nn.functional.instance_norm; cudnn_enabled has no effect.

    >>> x = weft.tensor([[[1.0, 3.0]]])
    >>> weft.instance_norm(x, None, None, None, None, True, 0.1, 0.0, True)
    tensor([[[-1.,  1.]]])
    """
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def _moments(input: Tensor, dims: list[int], correction: int, eps: float) -> tuple[Tensor, Tensor]:
    """The means over `dims`, which stay as 1, and 1 / sqrt(variance + eps)."""
    mean = input.mean(dims, keepdim=True)
    variance = input.var(dims, correction=correction, keepdim=True)
    return mean, (variance + eps).rsqrt()


def native_layer_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """nn.functional.layer_norm, the means, and 1 / sqrt(variance + eps).

    The statistics have the dimensions of `input`, with size 1 where they were taken, and no
    gradient.

    >>> weft.native_layer_norm(weft.tensor([[1.0, 3.0]]), [2], None, None, 0.0)[1:]
    (tensor([[2.]]), tensor([[1.]]))
    """
    result = F.layer_norm(input, normalized_shape, weight, bias, eps)
    dims = [-1 - d for d in range(len(normalized_shape))]
    mean, scale = _moments(input.detach(), dims, 0, eps)
    return result, mean, scale


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int,
    group: int, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """nn.functional.group_norm of N samples with C channels of HxW entries, the means [N, group]
    and 1 / sqrt(variance + eps).

    >>> x = weft.tensor([[[1.0, 3.0]]])
    >>> weft.native_group_norm(x, None, None, 1, 1, 2, 1, 0.0)[1:]
    (tensor([[2.]]), tensor([[1.]]))
    """
    result = F.group_norm(input, group, weight, bias, eps)
    mean, scale = _moments(input.reshape(N, group, C // group * HxW), [2], 0, eps)
    return result, mean.squeeze(2), scale.squeeze(2)


@takes_out
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """nn.functional.batch_norm; in training also the means and 1 / sqrt(variance + eps) of the
    channels, without gradient; otherwise two tensors without elements.

    >>> x = weft.tensor([[1.0], [3.0]])
    >>> weft.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([2.]), tensor([1.]))
    """
    result = _C.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )
    if not training:
        return result, input.new_empty([0]), input.new_empty([0])
    mean, scale = batch_norm_stats(input.detach(), eps)
    return result, mean, scale


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The means of the channels (dimension 1) and 1 / sqrt(variance + eps), each [c].

    >>> weft.batch_norm_stats(weft.tensor([[1.0], [3.0]]), 0.0)
    (tensor([2.]), tensor([1.]))
    """
    dims = [d for d in range(input.dim()) if d != 1]
    mean, scale = _moments(input, dims, 0, eps)
    return mean.reshape(-1), scale.reshape(-1)


# Dropout ------------------------------------------------------------------------------------------


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.dropout in place.

    >>> weft.dropout_(weft.ones(2), 1.0, True)
    tensor([0., 0.])
    """
    return input.copy_(F.dropout(input, p, train))


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """nn.functional.dropout, and a mask of the elements that it kept.

    >>> weft.native_dropout(weft.ones(2), 1.0, True)
    (tensor([0., 0.]), tensor([False, False]))
    """
    kept = F.dropout(_C.ones_like(input), p, train is None or train)
    return input * kept, kept != 0


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.dropout2d for any number of dimensions above 1.

    >>> weft.feature_dropout(weft.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    whole = [size if dim < 2 else 1 for dim, size in enumerate(input.size())]
    kept = F.dropout(_C.ones(whole, dtype=input.dtype, device=input.device), p, train)
    return input * kept if train else input


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """feature_dropout in place.

    >>> weft.feature_dropout_(weft.ones(1, 2), 1.0, True)
    tensor([[0., 0.]])
    """
    return input.copy_(feature_dropout(input, p, train))


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.alpha_dropout.

    >>> weft.alpha_dropout(weft.ones(2), 0.5, train=False)
    tensor([1., 1.])
    """
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.alpha_dropout in place.

    >>> weft.alpha_dropout_(weft.ones(2), 0.5, train=False)
    tensor([1., 1.])
    """
    return input.copy_(F.alpha_dropout(input, p, train))


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.feature_alpha_dropout.

    >>> weft.feature_alpha_dropout(weft.ones(1, 2), 0.5, train=False)
    tensor([[1., 1.]])
    """
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.feature_alpha_dropout in place.

    >>> weft.feature_alpha_dropout_(weft.ones(1, 2), 0.5, train=False)
    tensor([[1., 1.]])
    """
    return input.copy_(F.feature_alpha_dropout(input, p, train))


# Convolutions -------------------------------------------------------------------------------------


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
) -> Tensor:  # fmt: skip
    """nn.functional.conv1d to conv3d, or conv_transpose1d to conv_transpose3d; the number of
    dimensions is that of the kernel.

    Raises RuntimeError for kernels with other numbers of dimensions.

    >>> x, kernel = weft.ones(1, 1, 3), weft.ones(1, 1, 2)
    >>> weft.convolution(x, kernel, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    dims = weight.dim() - 2
    if dims < 1 or dims > 3:
        raise RuntimeError(
            f"convolution: expected a kernel of 3 to 5 dimensions, got {weight.dim()}"
        )
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


def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
    benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool,
) -> Tensor:  # fmt: skip
    """convolution; the settings of other devices have no effect."""
    return convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str,
    dilation: list[int], groups: int,
) -> Tensor:  # fmt: skip
    """nn.functional.conv1d to conv3d with a padding by name."""
    dims = weight.dim() - 2
    if dims == 1:
        return F.conv1d(input, weight, bias, stride, padding, dilation, groups)
    if dims == 2:
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.conv3d(input, weight, bias, stride, padding, dilation, groups)


# Grids --------------------------------------------------------------------------------------------


def affine_grid_generator(theta: Tensor, size: list[int], align_corners: bool) -> Tensor:
    """nn.functional.affine_grid.

    >>> weft.affine_grid_generator(weft.eye(2, 3).unsqueeze(0), [1, 1, 1, 2], True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    return F.affine_grid(theta, size, align_corners)


# Embeddings ---------------------------------------------------------------------------------------


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
    mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """nn.functional.embedding_bag; mode 0 is the sum, 1 the mean, 2 the maximum. What PyTorch
    returns besides for its own backward is without elements.

    >>> table = weft.tensor([[1.0], [3.0]])
    >>> weft.embedding_bag(table, weft.tensor([0, 1]), weft.tensor([0]))[0]
    tensor([[4.]])
    """
    name = ["sum", "mean", "max"][mode]
    found = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, name, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    nothing = _C.empty([0], dtype=_C.int64)
    return found, nothing, nothing, nothing


def _unpadded_embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
    mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset,
    )  # fmt: skip


def _padded_embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int,
    sparse: bool, per_sample_weights: Tensor | None, include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip


def _convolution_before_tf32(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
    benchmark: bool, deterministic: bool, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    return convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


OVERLOADS: dict[str, tuple[Callable[..., Any], ...]] = {
    "_convolution": (_convolution, _convolution_before_tf32),
    "embedding_bag": (_unpadded_embedding_bag, _padded_embedding_bag),
}
__all__ = [
    "_convolution", "_convolution_mode", "affine_grid_generator", "alpha_dropout",
    "alpha_dropout_", "batch_norm_stats", "convolution", "dropout_", "embedding_bag",
    "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_",
    "instance_norm",
    "native_batch_norm", "native_dropout", "native_group_norm", "native_layer_norm",
]  # fmt: skip

_declare(globals(), __all__)
