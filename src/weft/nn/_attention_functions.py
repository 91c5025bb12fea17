"""Attention: of one head or many, with its scores or without."""

from __future__ import annotations

from weft import _C
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare
from weft.nn._dropout_functions import dropout

_linear = _C._nn.linear
_attention = _C._aten._attention

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_FORWARD = "multi_head_attention_forward"


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value over the last two dimensions.

    query [*, t, e], key [*, s, e], value [*, s, v] give [*, t, v]; scale is 1 / sqrt(e) by default.
    A boolean mask allows where it is true, is_causal what is no later; with both, what both allow.
    A row that allows nothing gives 0. enable_gqa lets several heads (dimension -3) of the query
    share one of key and value. Without dropout, and with a mask that needs no gradient, scores
    exist for a block of queries at a time.

    Raises RuntimeError for shapes that do not fit.

    >>> query, key = weft.zeros(1, 1, 4), weft.ones(1, 2, 4)
    >>> value = weft.tensor([[[1.0], [3.0]]])
    >>> weft.nn.functional.scaled_dot_product_attention(query, key, value)
    tensor([[[2.]]])
    """
    if enable_gqa:
        repeats = query.size(-3) // key.size(-3)
        key, value = (_repeat_heads(t, repeats) for t in (key, value))
    factor = query.size(-1) ** -0.5 if scale is None else scale
    if dropout_p == 0.0 and (attn_mask is None or not attn_mask.requires_grad):
        return _attention(query, key, value, attn_mask, is_causal, factor)
    if query.dtype in (_C.float16, _C.bfloat16):  # scores need float32's digits
        if attn_mask is not None and attn_mask.dtype != _C.bool:
            attn_mask = attn_mask.float()
        result = scaled_dot_product_attention(
            query.float(), key.float(), value.float(), attn_mask, dropout_p, is_causal, scale
        )
        return result.to(query.dtype)
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        earlier = _C.ones(scores.shape[-2:], dtype=_C.bool, device=query.device).tril()
        scores = scores.masked_fill(earlier.logical_not(), float("-inf"))
    if attn_mask is not None and attn_mask.dtype == _C.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    if attn_mask is not None:
        weights = weights.masked_fill((scores == float("-inf")).all(-1, keepdim=True), 0)
    return dropout(weights, dropout_p) @ value


def _repeat_heads(x: Tensor, repeats: int) -> Tensor:
    return x.unsqueeze(-3).expand(*x.shape[:-2], repeats, *x.shape[-2:]).flatten(-4, -3)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of num_heads heads; query [t, n, e] or [t, e], key and value [s, n, e] alike.

    in_proj_weight [3e, e], or with use_separate_proj_weight one for each of query, key and value,
    project the inputs; bias_k, bias_v [1, 1, e] and, with add_zero_attn, zeros are more keys and
    values; static_k, static_v [n * heads, s, e / heads] stand for projected ones. Boolean masks
    forbid where they are true, floating ones are added to the scores: attn_mask [t, s] or [n *
    heads, t, s], key_padding_mask [n, s]. Gives [t, n, e] and, with need_weights, the weights [n,
    t, s] (or of each head [n, heads, t, s]). Raises AssertionError for shapes of query, key, value
    and key_padding_mask that do not fit, RuntimeError for others.

    >>> x, w = weft.ones(2, 1, 4), weft.eye(4)
    >>> output, weights = weft.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, w.repeat(3, 1), None, None, None, False, 0.0, w, None
    ... )
    >>> output.shape, weights
    (torch.Size([2, 1, 4]), tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]]))
    """
    _check_inputs(query, key, value, embed_dim_to_check, num_heads)
    if (bias_k is None) != (bias_v is None):
        raise AssertionError(f"{_FORWARD}: expected both bias_k and bias_v or none, got one")
    if bias_k is not None and (static_k is not None or static_v is not None):
        raise AssertionError(f"{_FORWARD}: expected no bias_k and bias_v with static_k, got both")
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{_FORWARD}: expected attn_mask with is_causal, got None")
    one_input = query is key and key is value
    single = query.dim() == 2
    if single:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    if one_input and not use_separate_proj_weight:
        q, k, v = _linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)  # type: ignore[arg-type]
    else:
        separate = (q_proj_weight, k_proj_weight, v_proj_weight)
        weights = separate if use_separate_proj_weight else in_proj_weight.chunk(3, 0)  # type: ignore[union-attr]
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3, 0)
        q, k, v = (_linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    batch = query.size(1)
    if bias_k is not None and bias_v is not None:
        k, v = (_C.cat([x, y.expand(1, batch, -1)]) for x, y in ((k, bias_k), (v, bias_v)))
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    k = k if static_k is None else static_k.unflatten(0, (batch, num_heads))
    v = v if static_v is None else static_v.unflatten(0, (batch, num_heads))
    if add_zero_attn:
        k, v = (_C.cat([x, x.new_zeros(batch, num_heads, 1, x.size(-1))], 2) for x in (k, v))
    extra = int(bias_k is not None) + int(add_zero_attn)
    mask = _mask(attn_mask, key_padding_mask, q, k.size(2), extra)
    attended, shares = _attended(q, k, v, mask, dropout_p if training else 0.0, need_weights)
    output = _linear(attended.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    if shares is not None and average_attn_weights:
        shares = shares.mean(1)
    if single:
        return output.squeeze(1), None if shares is None else shares.squeeze(0)
    return output, shares


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, size: int, heads: int) -> None:
    if query.dim() not in (2, 3) or query.size(-1) != size:
        raise AssertionError(
            f"{_FORWARD}: expected a query of 2 or 3 dimensions, the last {size}, "
            f"got shape {tuple(query.shape)}"
        )
    if not query.dim() == key.dim() == value.dim():
        raise AssertionError(
            f"{_FORWARD}: expected a key and a value of {query.dim()} dimensions as the query, got "
            f"{key.dim()} and {value.dim()}"
        )
    if key.shape[:-1] != value.shape[:-1]:
        raise AssertionError(
            f"{_FORWARD}: expected a key and a value of as many vectors, got {tuple(key.shape)} "
            f"and {tuple(value.shape)}"
        )
    if size % heads:
        raise AssertionError(f"{_FORWARD}: expected num_heads that divides {size}, got {heads}")


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, chance: float, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Sums of the values [n, heads, t, e / heads], and their weights where asked for."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, chance), None
    scores = (q * q.size(-1) ** -0.5) @ k.transpose(-2, -1)
    shares = (scores if mask is None else scores + mask).softmax(-1)
    if chance > 0:
        shares = dropout(shares, chance)
    return shares @ v, shares


def _heads(x: Tensor, heads: int) -> Tensor:
    """[t, n, e] as [n, heads, t, e / heads]."""
    return x.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


def _mask(
    attn_mask: Tensor | None, padding: Tensor | None, q: Tensor, keys: int, extra: int
) -> Tensor | None:
    """Both masks as one that is added to the scores [n, heads, t, keys]; `extra` keys are free."""
    batch, heads, steps, _ = q.shape
    mask = None if attn_mask is None else _additive(attn_mask, q)
    if mask is not None:
        shape = (batch * heads, steps, keys - extra)
        if mask.shape not in (shape, shape[1:]):
            raise RuntimeError(
                f"{_FORWARD}: expected attn_mask of shape {shape[1:]} or {shape}, got "
                f"{tuple(mask.shape)}"
            )
        if mask.dim() == 3:
            mask = mask.reshape(batch, heads, steps, keys - extra)
    if padding is not None:
        if padding.shape != (batch, keys - extra):
            shapes = f"shape {(batch, keys - extra)}, got {tuple(padding.shape)}"
            raise AssertionError(f"{_FORWARD}: expected a key_padding_mask of {shapes}")
        of_keys = _additive(padding, q).reshape(batch, 1, 1, keys - extra)
        mask = of_keys if mask is None else mask + of_keys
    if mask is not None and extra:
        mask = _C.cat([mask, mask.new_zeros(*mask.shape[:-1], extra)], -1)
    return mask


def _additive(mask: Tensor, q: Tensor) -> Tensor:
    if mask.is_floating_point():
        return mask
    if mask.dtype != _C.bool:
        raise AssertionError(f"{_FORWARD}: expected masks of bool or floats, got {mask.dtype}")
    return _C.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(mask, float("-inf"))


_declare(globals(), ("scaled_dot_product_attention",))
