"""Attention whose scores and masks a program writes as functions of places.

They are called once, with places that broadcast to [batch, heads, queries, keys]. All scores are
made, as of a plain composition: blocks that a mask leaves out save nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Size, Tensor

Modification = Callable[..., Tensor]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


def _indices(sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The batch, head, query and key of each score, each with one dimension of its own."""
    count = len(sizes)
    return tuple(
        _C.arange(size).reshape([-1 if i == at else 1 for i in range(count)])
        for at, size in enumerate(sizes)
    )


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that leaves every score."""
    return _C.ones((), dtype=_C.bool)


def _callables(name: str, mask_mods: tuple[Modification, ...]) -> None:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"{name}: expected functions, got {mask_mods!r}")


def and_masks(*mask_mods: Modification) -> Modification:
    """The mask of what all of these leave. RuntimeError for others than functions."""
    _callables("and_masks", mask_mods)

    def mask(*indices: Tensor) -> Tensor:
        result = noop_mask(*indices)
        for each in mask_mods:
            result = result & each(*indices)
        return result

    return mask


def or_masks(*mask_mods: Modification) -> Modification:
    """The mask of what any of these leaves. RuntimeError for others than functions."""
    _callables("or_masks", mask_mods)

    def mask(*indices: Tensor) -> Tensor:
        result = ~noop_mask(*indices)
        for each in mask_mods:
            result = result | each(*indices)
        return result

    return mask


def create_mask(
    mod_fn: Modification, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """The mask [B, H, Q_LEN, KV_LEN] of a function of places; None for B or H is 1.

    >>> from weft.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2)[0, 0]
    tensor([[ True, False],
            [ True,  True]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_indices(sizes)).expand(sizes).contiguous()


class BlockMask:
    """A mask for flex_attention; see create_block_mask. The lists of blocks are not there.

    - mask_mod: its function. BLOCK_SIZE: queries and keys of a block.
    - seq_lengths: queries and keys. shape: (B, H, queries, keys).
    """

    def __init__(self, mask_mod: Modification, shape: tuple[int, ...], block: tuple[int, int]):
        self.mask_mod, self.BLOCK_SIZE = mask_mod, block
        self.shape, self.seq_lengths = shape, shape[2:]

    def to_dense(self) -> Tensor:
        """1 for each block [B, H, ...] of which anything is left, else 0; of int32."""
        mask = create_mask(self.mask_mod, *self.shape)
        for dim, block in ((2, self.BLOCK_SIZE[0]), (3, self.BLOCK_SIZE[1])):
            mask = _C.stack([part.any(dim) for part in mask.split(block, dim)], dim)
        return mask.to(_C.int32)

    def sparsity(self) -> float:
        """The share of blocks that are left out, in percent."""
        return 100.0 * (1.0 - self.to_dense().float().mean().item())

    def numel(self) -> int:
        """The number of scores."""
        return Size(self.shape).numel()

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Modification,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    **options: Any,
) -> BlockMask:
    """A mask of a function of places, for flex_attention. None for B or H: the same for all.

    The device and the options of how PyTorch compiles it change nothing.
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), block)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Modification | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
) -> Any:
    """softmax(score_mod(query @ key.mT * scale)) @ value, of [B, H, L, E], [B, H, S, E] and
    [B, H, S, Ev]; with return_lse the logarithms of the sums [B, H, L] too.

    score_mod(score, batch, head, query, key): another score. Rows of which block_mask leaves
    nothing are zeros. enable_gqa: heads of key and value serve several of query. ValueError for
    other dimensions than four, and for heads that differ without it.

    >>> from weft.nn.attention.flex_attention import flex_attention
    >>> x = weft.ones(1, 1, 2, 2)
    >>> flex_attention(x, x, x, score_mod=lambda s, b, h, q, k: s - (q - k).abs()).shape
    torch.Size([1, 1, 2, 2])
    """
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError(
            f"flex_attention: expected tensors of 4 dimensions, got {query.dim()}, {key.dim()} "
            f"and {value.dim()}"
        )
    groups, rest = divmod(query.size(1), key.size(1))
    if rest or (groups != 1 and not enable_gqa):
        raise ValueError(
            f"flex_attention: expected as many heads of keys as of queries, got {key.size(1)} and "
            f"{query.size(1)}; enable_gqa=True lets several share one"
        )
    if groups > 1:
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    scores = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    indices = _indices(tuple(scores.shape))
    if score_mod is not None:
        scores = score_mod(scores, *indices)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*indices), -math.inf)
    sums = scores.logsumexp(-1)
    empty = (sums == -math.inf).unsqueeze(-1)
    result = scores.softmax(-1).masked_fill(empty, 0.0) @ value
    return (result, sums) if return_lse else result
