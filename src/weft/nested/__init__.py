"""Nested tensors: batches of tensors of different sizes, without padding.

`nested_tensor` copies tensors, `as_nested_tensor` keeps their history, `nested_tensor_from_jagged`
takes what is packed already. Layout `weft.jagged` has one ragged dimension, `weft.strided` any.
What has no rule here raises NotImplementedError.
"""

from __future__ import annotations

from weft.nested._construct import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
