"""Padding; `weft.nn.functional` shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare

_MODES = ("reflect", "replicate", "circular")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """input with pad[0] entries before and pad[1] after the last dimension, pad[2] and pad[3]
    around the one before it, and so on.

    mode says what they are: "constant" (`value`, 0 by default), "reflect", "replicate" or
    "circular"; the last three take inputs of 2 to 5 dimensions and pad at most all but the first
    two (or all but the first, without a batch). Negative numbers cut off.

    Raises RuntimeError for widths that do not fit, ValueError for a value beside another mode, and
    NotImplementedError for other modes and numbers of dimensions, and for bools by "reflect" and
    "replicate". Any dtype, which the result keeps.

    >>> weft.nn.functional.pad(weft.tensor([[1, 2, 3]]), (2, 1), mode="reflect")
    tensor([[3, 2, 1, 2, 3, 2]])
    """
    widths = [n if isinstance(n, int) else int(n) for n in pad]
    if len(widths) % 2 or len(widths) > 2 * input.dim():
        raise RuntimeError(
            f"pad: expected two numbers for each of at most {input.dim()} dims, got {tuple(pad)}"
        )
    if mode == "constant":
        return _C.constant_pad_nd(input, widths, 0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f"pad: expected no value for mode {mode!r}, got {value}")
    if mode not in _MODES:
        raise NotImplementedError(
            f"pad: expected mode constant, reflect, replicate or circular, got {mode!r}"
        )
    pairs = len(widths) // 2
    if pairs > 3 or input.dim() not in (pairs + 1, pairs + 2):
        raise NotImplementedError(
            f"pad: expected {pairs + 1} or {pairs + 2} dims for mode {mode!r} with {2 * pairs} "
            f"numbers, got shape {tuple(input.shape)}"
        )
    if mode != "circular" and input.dtype == _C.bool:
        raise NotImplementedError(f"pad: expected a numeric dtype for mode {mode!r}, got bool")
    if not any(widths):
        return input.clone()  # never the input itself: writing the result changes nothing else
    if mode == "replicate" or (mode == "reflect" and pairs < 3):
        return _padded_in_full(input, widths, mode)
    return _padded_in_all(input, widths, mode)


def _padded_in_all(input: Tensor, widths: list[int], mode: str) -> Tensor:
    """The last dimensions padded, one after the other."""
    for i in range(len(widths) // 2):
        input = _padded(input, -1 - i, widths[2 * i], widths[2 * i + 1], mode)
    return input


# The pads that autocast takes to float32: those of PyTorch's lists.
_padded_in_full = _full_precision(_padded_in_all)


def _padded(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """One dimension padded."""
    size = x.size(dim)
    most = max(before, after)
    limit = size - 1 if mode == "reflect" else size
    too_far = mode != "replicate" and most > limit
    if size + before + after < 0 or too_far or size == 0:
        raise RuntimeError(
            f"pad: expected widths of at most {limit} for mode {mode!r}, got {before} and "
            f"{after} for a dimension of size {size}"
        )
    if before == 0 and after == 0:
        return x
    if mode == "circular" and min(before, after) < 0:  # goes round what is left after cutting
        x = _C.constant_pad_nd(x, [0] * (2 * (-dim - 1)) + [min(before, 0), min(after, 0)])
        before, after, size = max(before, 0), max(after, 0), x.size(dim)
    return x.index_select(dim, _sources(_C.arange(-before, size + after), size, mode))


def _sources(i: Tensor, n: int, mode: str) -> Tensor:
    """The entries of n, counted from the first, that places show."""
    if mode == "reflect":
        return n - 1 - (n - 1 - i.abs()).abs()
    return i.clamp(0, n - 1) if mode == "replicate" else i % n


__all__ = ["pad"]

_declare(globals(), ("pad",))
