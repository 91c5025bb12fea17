"""Masks of causal attention between sequences of two lengths."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from weft import _C
from weft._C import Tensor


class CausalVariant(IntEnum):
    """Which corner of the matrix of scores the diagonal begins in, or ends in.

    >>> CausalVariant.LOWER_RIGHT.name
    'LOWER_RIGHT'
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask [seq_len_q, seq_len_kv] for the `attn_mask` of scaled_dot_product_attention: True
    where a query reads a key. ValueError for more queries than keys at LOWER_RIGHT, whose first
    rows would read nothing."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: expected a CausalVariant, got {variant!r}")
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            raise ValueError(
                f"CausalBias: expected at least as many keys as queries, got {seq_len_kv} and "
                f"{seq_len_q}"
            )
        shift = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        mask = _C.ones((seq_len_q, seq_len_kv), dtype=_C.bool).tril(shift)
        made = Tensor._make_subclass(cls, mask)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __repr__(self, **options: Any) -> str:
        return self.data.as_subclass(Tensor).__repr__(**options)


def causal_upper_left(*size: int) -> CausalBias:
    """Query i reads the keys up to i, as with `is_causal=True`.

    >>> weft.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    queries, keys = size
    return CausalBias(CausalVariant.UPPER_LEFT, queries, keys)


def causal_lower_right(*size: int) -> CausalBias:
    """The last query reads all keys, the one before all but one: for keys that a cache holds.

    >>> weft.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    queries, keys = size
    return CausalBias(CausalVariant.LOWER_RIGHT, queries, keys)
