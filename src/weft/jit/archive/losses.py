"""Loss operators, which take the reduction as a number: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

import weft.nn.functional as F
from weft._C import Tensor
from weft.jit.archive.functions import composed


def _name(reduction: int) -> str:
    if reduction == 0:
        return "none"
    return "mean" if reduction == 1 else "sum"


@composed("aten::binary_cross_entropy")
def binary_cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    return F.binary_cross_entropy(self, target, weight, reduction=_name(reduction))


@composed("aten::cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_name(reduction))


@composed("aten::hinge_embedding_loss")
def hinge_embedding_loss(
    self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    return F.hinge_embedding_loss(self, target, margin, reduction=_name(reduction))


@composed("aten::huber_loss")
def huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    return F.huber_loss(self, target, _name(reduction), delta)


@composed("aten::kl_div")
def kl_div(self: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    return F.kl_div(self, target, reduction=_name(reduction), log_target=log_target)


@composed("aten::margin_ranking_loss")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_name(reduction))


@composed("aten::multi_margin_loss")
def multi_margin_loss(
    self: Tensor, target: Tensor, p: float = 1, margin: float = 1, weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:  # fmt: skip
    power = 1 if p == 1 else 2
    return F.multi_margin_loss(self, target, power, margin, weight, reduction=_name(reduction))


@composed("aten::multilabel_margin_loss")
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return F.multilabel_margin_loss(self, target, reduction=_name(reduction))


@composed("aten::poisson_nll_loss")
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_name(reduction))


@composed("aten::smooth_l1_loss")
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    return F.smooth_l1_loss(self, target, reduction=_name(reduction), beta=beta)


@composed("aten::soft_margin_loss")
def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return F.soft_margin_loss(self, target, reduction=_name(reduction))


@composed("aten::triplet_margin_loss")
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-06, swap: bool = False, reduction: int = 1,
) -> Tensor:  # fmt: skip
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_name(reduction)
    )


@composed("aten::ctc_loss")
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: list[int], target_lengths: list[int],
    blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _name(reduction), zero_infinity
    )


@composed("aten::ctc_loss")
def ctc_loss_of_tensors(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
    blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _name(reduction), zero_infinity
    )
