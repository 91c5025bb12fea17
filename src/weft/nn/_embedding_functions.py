"""Rows of a table, and their reductions by bags; `weft.nn.functional` shows them."""

from __future__ import annotations

import warnings
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft._runtime.data_dependent import data_dependent
from weft._runtime.program_state import is_scripting
from weft._runtime.torch_function import declare as _declare
from weft.autograd.grad_mode import no_grad
from weft.nn._dtype_checks import check_one_dtype

_sparse_gradients = lazy.module("weft.sparse._gradients")
_bag_sum = _C._aten._bag_sum


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of weight [n, d] at the integers of input [*]: [*, d].

    - padding_idx: the row that gets no gradient.
    - max_norm: rows that are named are first scaled, in the table itself, to a norm_type-norm of at
      most max_norm.
    - scale_grad_by_freq: the gradient of a row is divided by how often it is named.

    - sparse: the gradient of the table is a sparse tensor of the rows that are named; compiled
      programs give a dense one.

    Raises IndexError for integers outside [0, n), RuntimeError for other dtypes of them.

    >>> table = weft.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> weft.nn.functional.embedding(weft.tensor([1, 1]), table, max_norm=5.0)
    tensor([[3., 4.],
            [3., 4.]])
    """
    padding = _padding("embedding", padding_idx, weight)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return _rows(weight, input, padding, scale_grad_by_freq, sparse)


def _rows(weight: Tensor, rows: Tensor, padding: int, by_freq: bool, sparse: bool) -> Tensor:
    if sparse and not is_scripting():  # programs give a dense gradient
        return _sparse_gradients.sparse_embedding(weight, rows, padding, by_freq)
    return _C.embedding(weight, rows, padding, by_freq)


def _padding(function: str, padding_idx: int | None, weight: Tensor) -> int:
    """The row of the padding; -1 where there is none."""
    bag = function == "embedding_bag"
    if weight.dim() != 2:
        raise (ValueError if bag else RuntimeError)(
            f"{function}: expected a 2-d weight, got shape {tuple(weight.shape)}"
        )
    if padding_idx is None:
        return -1
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise (RuntimeError if bag else AssertionError)(
            f"{function}: expected padding_idx in [-{rows}, {rows}), got {padding_idx}"
        )
    return padding_idx % rows


@data_dependent
def embedding_renorm_(
    input: Tensor, indices: Tensor, max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Scales those rows of input [n, d] that indices name to a norm of at most max_norm, in place.

    Gradients are not recorded. Raises IndexError for indices outside [0, n). Floating dtypes.

    >>> weft.embedding_renorm_(weft.tensor([[3.0, 4.0]]), weft.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000]])
    """
    with no_grad():
        index = indices.reshape(-1)
        rows = input.index_select(0, index)
        norms = rows.norm(norm_type, 1)
        longer = (norms > max_norm).nonzero().reshape(-1)
        if longer.numel() > 0:  # else nothing is written, which backward would notice
            scale = max_norm / (norms[longer].double() + 1e-7)
            scaled = rows[longer] * scale.to(rows.dtype).unsqueeze(1)
            input.index_copy_(0, index[longer].to(_C.int64), scaled)
    return input


def _offsets(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> Tensor:
    """Where in the flattened input each bag starts."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: expected offsets=None for an input of 2 dims, got some"
            )
        return _C.arange(input.size(0)) * input.size(1)
    if input.dim() != 1 or offsets is None or offsets.dim() != 1:
        raise ValueError(
            "embedding_bag: expected an input of 2 dims, or of 1 with offsets (n,), got shape "
            f"{tuple(input.shape)}"
        )
    if offsets.is_floating_point():
        raise RuntimeError(f"embedding_bag: expected offsets of integers, got {offsets.dtype}")
    starts = offsets.to(_C.int64)
    if include_last_offset:
        if not starts.numel():
            raise RuntimeError("embedding_bag: expected one offset or more, got none")
        starts = starts[:-1]
    inside = bool((starts.diff() >= 0).all()) and int(starts[-1:].sum()) <= input.numel()
    if not inside or (starts.numel() and int(starts[0]) != 0):
        raise RuntimeError(
            f"embedding_bag: expected offsets that rise from 0 to at most {input.numel()}, got "
            f"{[int(n) for n in offsets]}"
        )
    return starts


def _check_bags(
    input: Tensor,
    weight: Tensor,
    mode: str,
    sparse: bool,
    scale_grad_by_freq: bool,
    per_sample_weights: Tensor | None,
) -> None:
    """Checks the mode, and options and factors that not every mode has."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: expected mode 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and (sparse or scale_grad_by_freq):
        raise ValueError(
            "embedding_bag: expected neither sparse nor scale_grad_by_freq for mode 'max', got "
            f"sparse={sparse} and scale_grad_by_freq={scale_grad_by_freq}"
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            "embedding_bag: expected per_sample_weights of the input's shape "
            f"{tuple(input.shape)}, got {tuple(per_sample_weights.shape)}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: expected mode 'sum' with per_sample_weights, got {mode!r}"
        )
    if not weight.is_floating_point():
        raise RuntimeError(f"embedding_bag: expected a floating weight, got {weight.dtype}")
    if per_sample_weights is not None:
        check_one_dtype("embedding_bag", "per_sample_weights", per_sample_weights, weight)


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

    - input: [bags, k], or [entries] with offsets, the place where each bag starts. An empty bag
      gives 0.
    - padding_idx: entries that do not count.
    - per_sample_weights: factors of the rows, for mode "sum".
    - max_norm, norm_type, scale_grad_by_freq: as for embedding; the latter not for mode "max".

    - sparse: the gradient of the table is a sparse tensor of the rows that are named.

    Raises ValueError for another mode and for shapes that do not fit, RuntimeError for
    integers, offsets and a padding_idx that do not.

    >>> table = weft.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> weft.nn.functional.embedding_bag(weft.tensor([0, 1, 2]), table, weft.tensor([0, 2]))
    tensor([[2., 3.],
            [5., 6.]])
    """
    if weight.dtype == _C.int64 and input.is_floating_point():
        warnings.warn(
            "embedding_bag: expected the input before the weight, got the weight first, an order "
            "that is deprecated",
            stacklevel=2,
        )
        weight, input = input, weight
    _check_bags(input, weight, mode, sparse, scale_grad_by_freq, per_sample_weights)
    padding = _padding("embedding_bag", padding_idx, weight)
    starts = _offsets(input, offsets, include_last_offset)
    entries = input.reshape(-1)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if max_norm is not None:
        embedding_renorm_(weight, entries, max_norm, norm_type)
    if padding_idx is not None:
        kept = (entries != padding).nonzero().reshape(-1)
        starts, entries = _C.searchsorted(kept, starts), entries[kept]
        factors = None if factors is None else factors[kept]
    mean, by_freq = mode == "mean", scale_grad_by_freq
    if sparse and not is_scripting():  # programs give a dense gradient
        rows: Any = _rows(weight, entries, -1, by_freq, True)
        return _bag_sum(rows, _C.arange(entries.numel()), starts, factors, mean)
    if mode != "max":
        return _bag_sum(weight, entries, starts, factors, mean, by_freq)
    rows = _C.embedding(weight, entries)
    bag = _C.searchsorted(starts, _C.arange(entries.numel()), right=True) - 1
    result = rows.new_zeros((starts.numel(), weight.size(1)))
    index = bag.unsqueeze(1).expand(rows.shape)
    return result.scatter_reduce(0, index, rows, "amax", include_self=False)


__all__ = ["embedding", "embedding_bag"]

_declare(globals(), ("embedding_renorm_",))
