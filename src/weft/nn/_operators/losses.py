"""Loss operators, which take the reduction as a number: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare


def _name(reduction: int) -> str:
    if reduction == 0:
        return "none"
    return "mean" if reduction == 1 else "sum"


def binary_cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """nn.functional.binary_cross_entropy, the reduction by its number."""
    return F.binary_cross_entropy(self, target, weight, reduction=_name(reduction))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """nn.functional.cosine_embedding_loss, the reduction by its number.

    >>> x = weft.tensor([[1.0, 0.0]])
    >>> weft.cosine_embedding_loss(x, x, weft.tensor([1]), reduction=0)
    tensor([0.])
    """
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_name(reduction))


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """nn.functional.hinge_embedding_loss, the reduction by its number.

    >>> weft.hinge_embedding_loss(weft.tensor([2.0, 0.5]), weft.tensor([1, -1]), 1.0, 2)
    tensor(2.5000)
    """
    return F.hinge_embedding_loss(input, target, margin, reduction=_name(reduction))


def huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """nn.functional.huber_loss, the reduction by its number."""
    return F.huber_loss(self, target, _name(reduction), delta)


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """nn.functional.kl_div, the reduction by its number.

    >>> weft.kl_div(weft.zeros(2), weft.ones(2), 2)
    tensor(0.)
    """
    return F.kl_div(input, target, reduction=_name(reduction), log_target=log_target)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """nn.functional.margin_ranking_loss, the reduction by its number.

    >>> x = weft.tensor([1.0, 2.0])
    >>> weft.margin_ranking_loss(x, x.flip(0), weft.tensor([1, 1]), reduction=0)
    tensor([1., 0.])
    """
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_name(reduction))


def multi_margin_loss(
    self: Tensor, target: Tensor, p: float = 1, margin: float = 1, weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:  # fmt: skip
    """nn.functional.multi_margin_loss, the reduction by its number."""
    power = 1 if p == 1 else 2
    return F.multi_margin_loss(self, target, power, margin, weight, reduction=_name(reduction))


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """nn.functional.multilabel_margin_loss, the reduction by its number."""
    return F.multilabel_margin_loss(self, target, reduction=_name(reduction))


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """nn.functional.poisson_nll_loss, the reduction by its number.

    >>> weft.poisson_nll_loss(weft.zeros(2), weft.ones(2), True, False, 1e-8, 2)
    tensor(2.)
    """
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_name(reduction))


def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    """nn.functional.smooth_l1_loss, the reduction by its number."""
    return F.smooth_l1_loss(self, target, reduction=_name(reduction), beta=beta)


def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """nn.functional.soft_margin_loss, the reduction by its number."""
    return F.soft_margin_loss(self, target, reduction=_name(reduction))


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-06, swap: bool = False, reduction: int = 1,
) -> Tensor:  # fmt: skip
    """nn.functional.triplet_margin_loss, the reduction by its number.

    >>> x = weft.zeros(1, 2)
    >>> weft.triplet_margin_loss(x, x, x + 3, 9.0, eps=0.0)
    tensor(4.7574)
    """
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_name(reduction)
    )


def ctc_loss_of_lists(
    log_probs: Tensor, targets: Tensor, input_lengths: list[int], target_lengths: list[int],
    blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.ctc_loss, the reduction by its number."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _name(reduction), zero_infinity
    )


def ctc_loss_of_tensors(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
    blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.ctc_loss, the reduction by its number."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _name(reduction), zero_infinity
    )


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.ctc_loss, the reduction by its number.

    >>> weft.ctc_loss(weft.zeros(1, 1, 2), weft.tensor([[1]]), [1], [1])
    tensor(0.)
    """
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _name(reduction), zero_infinity
    )


OVERLOADS: dict[str, tuple[Callable[..., Any], ...]] = {
    "ctc_loss": (ctc_loss_of_lists, ctc_loss_of_tensors)
}
__all__ = [
    "binary_cross_entropy", "cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss",
    "huber_loss", "kl_div", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip

_declare(globals(), __all__)
