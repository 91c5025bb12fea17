"""Batch normalisation in eval mode folded into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft.nn.parameter import Parameter


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what a convolution and a batch normalisation in eval mode do.

    transpose: it is a transposed one. The weight keeps its dtype and shape. ValueError for modules
    that train.

    >>> conv, bn = weft.nn.Conv2d(1, 2, 3).eval(), weft.nn.BatchNorm2d(2).eval()
    >>> x = weft.ones(1, 1, 4, 4)
    >>> weft.allclose(weft.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
    True
    """
    made = _copied("fuse_conv_bn_eval", conv, bn)
    made.weight, made.bias = fuse_conv_bn_weights(*_weights(made, bn), transpose)
    return made


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that normalises, too: the convolution's, the running mean
    and variance, eps, and the normalisation's weight and bias (None: 1 and 0).

    >>> one, zero = weft.ones(1), weft.zeros(1)
    >>> fused = weft.nn.utils.fuse_conv_bn_weights(one[None, None], None, one, one, 0.0, None, one)
    >>> [each.tolist() for each in fused]
    [[[[1.0]]], [0.0]]
    """
    shape = [1, -1, *([1] * (conv_w.dim() - 2))] if transpose else [-1, *([1] * (conv_w.dim() - 1))]
    scale, shift = _scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _parameters(conv_w * scale.reshape(shape), shift, conv_w, conv_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what a linear layer and a batch normalisation in eval mode do.

    AssertionError where their numbers of features differ; ValueError for modules that train.

    >>> linear, bn = weft.nn.Linear(2, 3).eval(), weft.nn.BatchNorm1d(3).eval()
    >>> x = weft.ones(1, 2)
    >>> weft.allclose(weft.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
    True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            f"fuse_linear_bn_eval: expected a normalisation of {linear.out_features} features, "
            f"got {bn.num_features}"
        )
    made = _copied("fuse_linear_bn_eval", linear, bn)
    made.weight, made.bias = fuse_linear_bn_weights(*_weights(made, bn))
    return made


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """As fuse_conv_bn_weights, of a linear layer.

    >>> one = weft.ones(1)
    >>> w, b = weft.nn.utils.fuse_linear_bn_weights(one[None], one, one, one, 0.0, one * 2, one)
    >>> w.tolist(), b.tolist()
    ([[2.0]], [1.0])
    """
    scale, shift = _scale_and_shift(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _parameters(linear_w * scale.unsqueeze(-1), shift, linear_w, linear_b)


def _copied(name: str, layer: Any, bn: Any) -> Any:
    if layer.training or bn.training:
        raise ValueError(f"{name}: expected modules in eval mode, got one that trains")
    return copy.deepcopy(layer)


def _weights(
    layer: Any, bn: Any
) -> tuple[Tensor, Tensor | None, Tensor, Tensor, float, Tensor | None, Tensor | None]:
    norm = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("fuse: expected a normalisation with running statistics, got none")
    return layer.weight, layer.bias, *norm


def _scale_and_shift(
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    weight: Tensor | None,
    offset: Tensor | None,
) -> tuple[Tensor, Tensor]:
    scale = _C.rsqrt(var + eps)
    if weight is not None:
        scale = weight * scale
    shift = (-mean if bias is None else bias - mean) * scale
    return scale, shift if offset is None else shift + offset


def _parameters(
    weight: Tensor, bias: Tensor, old_weight: Tensor, old_bias: Tensor | None
) -> tuple[Parameter, Parameter]:
    asks = old_weight.requires_grad if old_bias is None else old_bias.requires_grad
    made = Parameter(weight.detach().to(old_weight.dtype), old_weight.requires_grad)
    return made, Parameter(bias.detach().to(old_weight.dtype), asks)


_list_own(vars())
