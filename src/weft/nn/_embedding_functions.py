"""Embeddings reduced by bags; `weft.nn.functional` shows them."""

from __future__ import annotations

from typing import Any

import weft
from weft import Tensor


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, int]:
    """The bag each entry of the flattened input belongs to, and how many bags there are."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: expected offsets=None for an input of 2 dims, got some"
            )
        count = input.size(0)
        return weft.arange(count).repeat_interleave(input.size(1)), count
    if input.dim() != 1 or offsets is None or offsets.dim() != 1 or offsets.numel() == 0:
        raise ValueError(
            "embedding_bag: expected an input of 2 dims, or of 1 with offsets (n,), got shape "
            f"{tuple(input.shape)}"
        )
    starts = offsets.to(weft.int64)
    if include_last_offset:
        starts = starts[:-1]
    inside = bool((starts.diff() >= 0).all()) and int(starts[-1:].sum()) <= input.numel()
    if not inside or (starts.numel() and int(starts[0]) != 0):
        raise ValueError(
            f"embedding_bag: expected offsets that rise from 0 to at most {input.numel()}, got "
            f"{[int(n) for n in offsets]}"
        )
    places = weft.arange(input.numel())
    return weft.searchsorted(starts, places, right=True) - 1, starts.numel()


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or max of the rows of weight [n, d] that each bag of integers names: [bags, d].

    input [bags, k], or [entries] with offsets, the place where each bag starts. Entries equal to
    padding_idx do not count; an empty bag gives 0. per_sample_weights (mode "sum") scales the rows.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError(
            "embedding_bag: expected max_norm=None, scale_grad_by_freq=False and sparse=False, "
            f"got {max_norm}, {scale_grad_by_freq} and {sparse}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: expected mode 'sum', 'mean' or 'max', got {mode!r}")
    if per_sample_weights is not None and (
        mode != "sum" or per_sample_weights.shape != input.shape
    ):
        raise ValueError(
            "embedding_bag: expected per_sample_weights of the input's shape and mode 'sum', got "
            f"{tuple(per_sample_weights.shape)} and {mode!r}"
        )
    bag, count = _bags(input, offsets, include_last_offset)
    entries = input.reshape(-1)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if padding_idx is not None:
        kept = (entries != padding_idx % weight.size(0)).nonzero().reshape(-1)
        entries, bag = entries[kept], bag[kept]
        factors = None if factors is None else factors[kept]
    rows: Any = weight.index_select(0, entries)
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    result = weight.new_zeros((count, weight.size(1)))
    if mode == "max":
        index = bag.unsqueeze(1).expand(rows.shape)
        return result.scatter_reduce(0, index, rows, "amax", include_self=False)
    result = result.index_add(0, bag, rows)
    if mode == "sum":
        return result
    sizes = weight.new_zeros(count).index_add(0, bag, weight.new_ones(bag.numel()))
    return result / sizes.clamp_min(1).unsqueeze(1)


__all__ = ["embedding_bag"]
