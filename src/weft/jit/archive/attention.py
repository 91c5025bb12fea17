"""Operators to which PyTorch's transformer layers go in evaluation: attention in one call."""

from __future__ import annotations

import weft.nn.functional as F
from weft._C import Tensor
from weft.jit.archive.functions import composed


@composed("aten::_native_multi_head_attention")
def native_multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor,
    qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None,
    need_weights: bool = True, average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    if query.shape != key.shape or query.shape != value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    weights = qkv_weight.chunk(3)
    biases = qkv_bias.chunk(3)
    parts = [
        F.linear(each, weights[i], biases[i]).unflatten(-1, [num_head, -1]).transpose(1, 2)
        for i, each in enumerate([query, key, value])
    ]
    scores = parts[0] / (embed_dim // num_head) ** 0.5 @ parts[1].transpose(-2, -1)
    if mask is not None:
        hidden = mask != 0
        if mask_type == 1:  # of keys
            hidden = hidden[:, None, None]
        scores = scores.masked_fill(hidden, float("-inf"))
    attention = scores.softmax(-1)
    joined = (attention @ parts[2]).transpose(1, 2).flatten(2)
    result = F.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, attention.mean(1) if average_attn_weights else attention


@composed("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
    norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
    ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
    mask: Tensor | None = None, mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    x = F.layer_norm(src, [embed_dim], norm_weight_1, norm_bias_1, eps) if norm_first else src
    x = src + native_multi_head_attention(
        x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False,
        True, mask_type,
    )[0]  # fmt: skip
    if not norm_first:
        x = F.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    y = F.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps) if norm_first else x
    y = F.linear(y, ffn_weight_1, ffn_bias_1)
    y = x + F.linear(F.gelu(y) if use_gelu else F.relu(y), ffn_weight_2, ffn_bias_2)
    return y if norm_first else F.layer_norm(y, [embed_dim], norm_weight_2, norm_bias_2, eps)


@composed("aten::_nested_tensor_from_mask_left_aligned")
def nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """False: weft has no nested tensors. Layers then compute what is padding, too."""
    return False
