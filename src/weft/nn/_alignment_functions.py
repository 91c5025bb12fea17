"""The loss of sequences without an alignment; `weft.nn.functional` shows it."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.data_dependent import data_dependent
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._dtype_checks import check_full
from weft.nn._loss_functions import _reduced


@_full_precision
@data_dependent
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves 2006): minus the log-probability that
    log_probs [t, n, c] (or [t, c]) spell the targets [n, s] (or all of them in one vector).

    'mean' divides each loss by its target's length first.

    input_lengths and target_lengths are lists or tensors of n integers (a number for a single
    sample); label `blank` is none. Raises RuntimeError for shapes, labels and lengths that do not
    fit, ValueError for another reduction.

    >>> log_probs = weft.full((2, 1, 2), 0.5).log()
    >>> loss = weft.nn.functional.ctc_loss(log_probs, weft.tensor([[1]]), [2], [1])
    >>> loss.exp().round(decimals=4)
    tensor(1.3333)
    """
    single = log_probs.dim() == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    if x.dim() != 3 or not 0 <= blank < x.size(2):
        raise RuntimeError(
            "ctc_loss: expected log_probs (t, n, c) or (t, c) and blank in [0, c), got "
            f"{tuple(log_probs.shape)} and {blank}"
        )
    check_full("ctc_loss", x)
    kind = x.dtype
    steps, batch, _ = x.shape
    lengths = _lengths("input_lengths", input_lengths, batch, steps)
    counts = _lengths("target_lengths", target_lengths, batch, targets.numel())
    labels = _label_rows(targets, counts, batch)
    # Blanks between the labels and around them: b l b l b.
    states = 2 * labels.size(1) + 1
    path = _C.full((batch, states), blank, dtype=_C.int64, device=x.device)
    path[:, 1::2] = labels
    emitted = x.gather(2, path.unsqueeze(0).expand(steps, -1, -1))
    barred = _C.ones((batch, states), dtype=_C.bool, device=x.device)
    if states > 3:
        barred[:, 2:] = (path[:, 2:] == blank).logical_or(path[:, 2:] == path[:, :-2])
    # Long sums of exponentials: float32 would lose digits.
    loss = -_spelled(emitted.double(), barred, lengths, counts)
    if x.requires_grad:
        loss = loss + _normality(x.double(), lengths)
    if zero_infinity:
        loss = _C.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        label_counts = _C.tensor(counts, device=x.device).clamp_min(1)
        return (loss / label_counts.to(loss.dtype)).mean().to(kind)
    loss = _reduced("ctc_loss", loss, reduction).to(kind)
    return loss.squeeze(0) if single and reduction == "none" else loss


def _normality(x: Tensor, lengths: list[int]) -> Tensor:
    """0, with the gradient exp(log_probs): what PyTorch adds, so that the gradient of each step
    sums to 0. log_softmax before it takes this away again."""
    times = _C.arange(x.size(0), device=x.device)
    used = times.unsqueeze(1) < _C.tensor(lengths, device=x.device)
    total = x.exp().masked_fill(used.logical_not().unsqueeze(2), 0).sum([0, 2])
    return total - total.detach()


def _lengths(what: str, given: Any, batch: int, limit: int) -> list[int]:
    if isinstance(given, Tensor):
        if given.is_floating_point() or given.dtype == _C.bool:
            raise RuntimeError(f"ctc_loss: expected {what} of integers, got {given.dtype}")
        listed = [int(v) for v in given.reshape(-1)]
    elif isinstance(given, (list, tuple)):
        listed = [int(v) for v in given]
    else:
        listed = [int(given)]
    if len(listed) != batch or any(not 0 <= v <= limit for v in listed):
        raise RuntimeError(f"ctc_loss: expected {batch} {what} in [0, {limit}], got {listed}")
    return listed


def _label_rows(targets: Tensor, counts: list[int], batch: int) -> Tensor:
    """[n, longest] labels, 0 behind the shorter ones."""
    longest = max([0, *counts])
    if targets.dim() == 2:
        return targets[:, :longest].to(_C.int64)
    if sum(counts) > targets.numel():
        raise RuntimeError(f"ctc_loss: expected {sum(counts)} targets, got {targets.numel()}")
    rows, start = _C.zeros((batch, longest), dtype=_C.int64, device=targets.device), 0
    for row, count in enumerate(counts):
        rows[row, :count] = targets.reshape(-1)[start : start + count].to(_C.int64)
        start += count
    return rows


_NEVER = -1e300  # the logarithm of what is impossible: finite, so that slopes there are 0, not NaN


def _spelled(emitted: Tensor, barred: Tensor, lengths: list[int], counts: list[int]) -> Tensor:
    """The forward algorithm in logarithms: [t, n, states] to [n]. Each step goes on by no state, by
    one, or by two where that is not barred."""
    batch, states = barred.shape
    never = emitted.new_full((batch, 2), _NEVER)
    start = _C.cat(
        [never, emitted.new_zeros((batch, 1)), emitted.new_full((batch, states - 1), _NEVER)], 1
    )
    shut = _C.zeros((batch, 3, states), dtype=emitted.dtype, device=emitted.device)
    shut[:, 0] = barred.to(emitted.dtype) * _NEVER
    history = [start]  # two states in front that no path is in, then before each step all others
    for step in emitted.clamp_min(_NEVER).unbind(0):
        now = (history[-1].unfold(1, states, 1) + shut).logsumexp(1) + step
        history.append(_C.cat([never, now], 1))
    rows = _C.arange(batch, device=emitted.device)
    last = _C.stack(history)[_C.tensor(lengths, device=emitted.device), rows]
    # The last label, and the blank behind it.
    label = _C.tensor(counts, device=emitted.device) * 2 + 1
    found = last.gather(1, _C.stack([label, label + 1], 1)).logsumexp(1)
    return _C.where(found < _NEVER / 2, -math.inf, found)


__all__ = ["ctc_loss"]

_declare(globals())
