"""Parts of `multi_head_attention_forward` that programs with attention of their own take from
`nn.functional`, where PyTorch has them under private names."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor

_linear: Any = _C._nn.linear


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    b_q: Tensor | None = None, b_k: Tensor | None = None, b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """query, key and value, each through its own weight."""
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """The same with the three weights in one [3e, e]; inputs that are one tensor meet it once."""
    if q is k and k is v:
        return [part.contiguous() for part in _linear(q, w, b).chunk(3, -1)]
    biases = (None, None, None) if b is None else b.chunk(3)
    return [_linear(*each) for each in zip((q, k, v), w.chunk(3), biases)]


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
    attn_mask: Tensor | None, num_heads: int,
) -> bool:  # fmt: skip
    """Whether the inputs are batches. AssertionError where they do not agree about it."""
    batched = query.dim() == 3
    ranks = [query.dim(), key.dim(), value.dim()]
    assert ranks in ([2] * 3, [3] * 3), f"expected inputs of 2 or of 3 dimensions, got {ranks}"
    padding = None if key_padding_mask is None else key_padding_mask.dim()
    assert padding in (None, 1 + batched), f"expected key_padding_mask of {1 + batched} dimensions"
    assert attn_mask is None or attn_mask.dim() in (2, 3), "expected attn_mask of 2 or 3 dimensions"
    if not batched and attn_mask is not None and attn_mask.dim() == 3:
        wanted = (num_heads, query.size(0), key.size(0))
        assert attn_mask.shape == wanted, f"expected attn_mask of {wanted}, got {attn_mask.shape}"
    return batched


def _none_or_dtype(input: Tensor | None) -> Any:
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any,
    check_other: bool = True,
) -> Tensor | None:  # fmt: skip
    """A mask that is added: of bools, -inf where true. AssertionError for integers."""
    if mask is not None and mask.dtype == _C.bool:
        zeros = _C.zeros(mask.shape, dtype=target_type, device=mask.device)
        return zeros.masked_fill(mask, float("-inf"))
    what = f"expected {mask_name} of bool or a floating dtype, got {_none_or_dtype(mask)}"
    assert mask is None or mask.is_floating_point(), what
    return mask
