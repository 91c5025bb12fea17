"""Losses by margins and distances; `weft.nn.functional` shows them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.matrices import einsum
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.precision import given_precision as _given_precision
from weft._runtime.program_state import is_scripting
from weft._runtime.torch_function import declare as _declare
from weft.nn._activation_functions import logsigmoid
from weft.nn._dtype_checks import (
    check_classes,
    check_floating,
    check_full,
    check_length,
    check_one_dtype,
    check_tensors,
)
from weft.nn._loss_functions import _reduced, _reduction
from weft.nn._reduction import legacy_get_string as _legacy

# size_average and reduce are PyTorch's deprecated arguments; they have no effect here.


@_full_precision
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)) for targets 1 and -1, reduced.

    Tensors of as many dimensions, which broadcast; reduction "none" keeps their shape, "mean" and
    "sum" give one number. Raises RuntimeError for other numbers of dimensions, ValueError for
    another reduction. Floating dtypes.

    >>> first, second = weft.tensor([1.0, 2.0]), weft.tensor([2.0, 1.0])
    >>> weft.nn.functional.margin_ranking_loss(first, second, weft.ones(2), reduction="none")
    tensor([1., 0.])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss: expected tensors of as many dims, got shapes "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        )
    loss = (-target * (input1 - input2) + float(margin)).clamp_min(0)
    return _reduced("margin_ranking_loss", loss, reduction)


@_full_precision
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1, reduced.

    Tensors that broadcast; reductions and their errors are those of margin_ranking_loss. Real
    dtypes; integers lose the margin's fraction.

    >>> x, target = weft.tensor([0.5, 0.25]), weft.tensor([1, -1])
    >>> weft.nn.functional.hinge_embedding_loss(x, target, reduction="none")
    tensor([0.5000, 0.7500])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    missing = _C.full_like(input, margin) - input
    far = _C.where(target != 1, missing.clamp_min(0), 0)
    near = _C.where(target != -1, input, 0)
    return _reduced("hinge_embedding_loss", far + near, reduction)


@_full_precision
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)) for targets 1 and -1, reduced.

    Tensors that broadcast; reductions and their errors are those of margin_ranking_loss. Floating
    dtypes.

    >>> weft.nn.functional.soft_margin_loss(weft.tensor([0.0, 9.0]), weft.ones(2), reduction="none")
    tensor([6.9315e-01, 1.2340e-04])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if not is_scripting():
        check_tensors("soft_margin_loss", input, target)
    if not input.is_complex():
        check_floating("soft_margin_loss", input)
    loss = (-target * input).exp().log1p().to(input.dtype)
    return _reduced("soft_margin_loss", loss, reduction)


@_full_precision
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, reduced.

    The cosine is of vectors along the last dimension.

    Inputs [n, d] and a target [n], or [d] and []. Raises RuntimeError for other shapes; reductions
    and their errors are those of margin_ranking_loss. Floating dtypes.

    >>> x, y = weft.tensor([[3.0, 4.0]]), weft.tensor([[4.0, 3.0]])
    >>> weft.nn.functional.cosine_embedding_loss(x, y, weft.tensor([1]))
    tensor(0.0400)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if target.dim() + 1 != input1.dim() or input1.dim() != input2.dim() or target.dim() > 1:
        raise RuntimeError(
            "cosine_embedding_loss: expected inputs (n, d) and a target (n,), or (d,) and (), got "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        )
    tiny = 1e-12
    product = (input1 * input2).sum(-1)
    sizes = ((input1 * input1).sum(-1) + tiny) * ((input2 * input2).sum(-1) + tiny)
    cosine = product / sizes.sqrt()
    near = _C.where(target == 1, 1 - cosine, 0.0)
    far = _C.where(target == -1, (cosine - margin).clamp_min(0), 0.0)
    return _reduced("cosine_embedding_loss", near + far, reduction)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    x1 [*, d] and x2 broadcast; the result is [*], or [*, 1] with keepdim. Raises RuntimeError for
    shapes that do not fit. Floating dtypes.

    >>> weft.nn.functional.pairwise_distance(weft.tensor([[3.0, 4.0]]), weft.zeros(1, 2))
    tensor([5.0000])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows (i < j) of a matrix, as one vector.

    A matrix [n, d] gives n * (n - 1) / 2 distances. Raises RuntimeError for other shapes. Floating
    dtypes.

    >>> weft.nn.functional.pdist(weft.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist: expected a matrix, got shape {tuple(input.shape)}")
    if input.size(0) > 1 or not input.is_floating_point():
        check_full("pdist", input)
    first, second = _C.triu_indices(input.size(0), input.size(0), 1).unbind(0)
    if p == 2 and input.size(0) > 1:
        return _C._aten.cdist(input, input, 2.0, None)[first, second]
    return _C._aten.linalg_vector_norm(input[first] - input[second], p, [1])


@_full_precision
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|) by the p-norm; with swap the
    negative may be measured from the positive instead.

    Tensors [*, d] of as many dimensions; reduction "none" gives [*]. Raises RuntimeError for other
    numbers of dimensions, ValueError for margin <= 0 and for another reduction. Floating dtypes.

    >>> anchor, near, far = weft.zeros(1, 2), weft.ones(1, 2), weft.full((1, 2), 1.5)
    >>> weft.nn.functional.triplet_margin_loss(anchor, near, far)
    tensor(0.2929)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet(
        "triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss by any distance (pairwise_distance unless given).

    distance_function takes two tensors. Errors are those of triplet_margin_loss. Floating dtypes.

    >>> anchor, near, far = weft.zeros(1, 2), weft.ones(1, 2), weft.full((1, 2), 1.5)
    >>> weft.nn.functional.triplet_margin_with_distance_loss(
    ...     anchor, near, far, distance_function=lambda x, y: (x - y).abs().amax(-1))
    tensor(0.5000)
    """
    return _triplet(
        "triplet_margin_with_distance_loss", anchor, positive, negative,
        pairwise_distance if distance_function is None else distance_function, margin, swap,
        reduction,
    )  # fmt: skip


def _triplet(
    function: str, anchor: Tensor, positive: Tensor, negative: Tensor, distance: Any,
    margin: float, swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            f"{function}: expected tensors of as many dims, got shapes {tuple(anchor.shape)}, "
            f"{tuple(positive.shape)} and {tuple(negative.shape)}"
        )
    if margin <= 0:
        raise ValueError(f"{function}: expected margin > 0, got {margin}")
    far = distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return _reduced(function, (distance(anchor, positive) - far + margin).clamp_min(0), reduction)


# ---- classes ----


@_full_precision
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes i != target of max(0, margin - input[target] + input[i]) ** p.

    `input` [n, c] and classes [n], or [c] and []; weight [c] scales each class. Raises ValueError
    for p other than 1 and 2, a weight of other dimensions and another reduction, RuntimeError for
    other shapes. Floating dtypes.

    >>> scores = weft.tensor([[0.5, 0.75, 0.0]])
    >>> weft.nn.functional.multi_margin_loss(scores, weft.tensor([0]))
    tensor(0.5833)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: expected p 1 or 2, got {p}")
    _reduction("multi_margin_loss", reduction)
    if weight is not None and weight.dim() != 1:
        raise ValueError(
            f"multi_margin_loss: expected a weight of 1 dim, got shape {tuple(weight.shape)}"
        )
    x = input.reshape(1, -1) if input.dim() < 2 else input
    labels = target.reshape(-1)
    if x.dim() != 2 or target.dim() > 1 or labels.numel() != x.size(0) or x.size(1) == 0:
        raise RuntimeError(
            "multi_margin_loss: expected an input (n, c) or (c,) and a target (n,) or (), got "
            f"{tuple(input.shape)} and {tuple(target.shape)}"
        )
    check_full("multi_margin_loss", input)
    check_classes("multi_margin_loss", target)
    if weight is not None:
        check_one_dtype("multi_margin_loss", "weight", weight, input)
        check_length("multi_margin_loss", "weight", weight, x.size(1))
    index = labels.unsqueeze(1)
    loss = (margin - x.gather(1, index) + x).clamp_min(0)
    loss = loss * loss if p == 2 else loss
    if weight is not None:
        loss = loss * weight[labels].unsqueeze(1)
    own = _C.arange(x.size(1), device=x.device) == index
    loss = loss.masked_fill(own, 0).sum(1) / x.size(1)
    return _reduced("multi_margin_loss", loss.reshape(target.shape), reduction)


@_full_precision
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes j in and i not in the target of max(0, 1 - input[j] + input[i]).

    target has the input's shape (n, c) or (c,): the classes, then -1.

    Raises RuntimeError for other shapes, ValueError for another reduction. Floating dtypes.

    >>> scores, classes = weft.tensor([0.5, 0.75, 0.0]), weft.tensor([1, -1, 0])
    >>> weft.nn.functional.multilabel_margin_loss(scores, classes)
    tensor(0.3333)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    _reduction("multilabel_margin_loss", reduction)
    if target.shape != input.shape or input.dim() > 2 or (input.dim() > 0 and input.size(-1) == 0):
        raise RuntimeError(
            "multilabel_margin_loss: expected scores (c,) or (n, c) and a target of the same "
            f"shape, got {tuple(input.shape)} and {tuple(target.shape)}"
        )
    check_full("multilabel_margin_loss", input)
    check_classes("multilabel_margin_loss", target)
    if input.dim() == 0:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    single = input.dim() == 1
    x, labels = (t.unsqueeze(0) if single else t for t in (input, target))
    count = x.size(-1)
    counted = (labels < 0).to(_C.int64).cumsum(1) == 0
    index = labels.masked_fill(counted.logical_not(), 0)
    inside = _C.zeros(x.shape, dtype=_C.int64, device=x.device)
    inside = inside.scatter_add(1, index, counted.to(_C.int64)) > 0
    gaps = (1 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    used = counted.unsqueeze(2).logical_and(inside.logical_not().unsqueeze(1))
    loss = gaps.masked_fill(used.logical_not(), 0).sum([1, 2]) / count
    return _reduced("multilabel_margin_loss", loss.squeeze(0) if single else loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of sigmoid(input), the mean over the classes (the last dimension).

    `input` and `target` are [n, c]; weight [c] scales each class; reduction "none" gives [n].
    Raises ValueError for another reduction. Floating dtypes.

    >>> logits, target = weft.zeros(1, 2), weft.tensor([[1.0, 0.0]])
    >>> weft.nn.functional.multilabel_soft_margin_loss(logits, target)
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    size = logsigmoid(input)
    loss = -(target * size + (1 - target) * logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return _reduced("multilabel_soft_margin_loss", loss.mean(-1), reduction)


@_full_precision
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts: exp(input) - target * input, or of the rate itself
    input - target * log(input + eps); full adds Stirling's term for targets above 1.

    Tensors that broadcast; reductions and their errors are those of margin_ranking_loss. Floating
    dtypes.

    >>> rates, counts = weft.tensor([1.0, 2.0]), weft.tensor([1.0, 3.0])
    >>> weft.nn.functional.poisson_nll_loss(rates, counts, log_input=False, reduction="none")
    tensor([ 1.0000, -0.0794])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if not is_scripting():
        check_tensors("poisson_nll_loss", input, target)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        many = target > 1
        safe = _C.where(many, target, 1.0)
        term = safe * safe.log() - safe + 0.5 * (2 * math.pi * safe).log()
        loss = loss + term.masked_fill(many.logical_not(), 0)
    return _reduced("poisson_nll_loss", loss, reduction)


@_given_precision
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 [*, i] and input2 [*, j] with weight [o, i, j]: sum of their products, [*, o].

    bias [o] is added. Raises RuntimeError for sizes that do not fit. All are of one dtype.

    >>> x, y = weft.tensor([[1.0, 2.0]]), weft.tensor([[3.0]])
    >>> weft.nn.functional.bilinear(x, y, weft.ones(1, 2, 1))
    tensor([[9.]])
    """
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear: expected inputs of as many dims, got {input1.dim()} and {input2.dim()}"
        )
    if bias is not None:
        check_one_dtype("bilinear", "bias", bias, input1)
        check_length("bilinear", "bias", bias, weight.size(0))
    result = einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """input / (k + alpha * m)**beta, m the mean of squares over `size` neighbouring channels.

    `input` is [n, c, ...], and so is the result. Raises ValueError for fewer than three dimensions.
    Floating dtypes.

    >>> x = weft.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1)
    >>> weft.nn.functional.local_response_norm(x, 3, alpha=3.0, beta=1.0).flatten()
    tensor([0.1667, 0.1333, 0.2143])
    """
    if input.dim() < 3:
        raise ValueError(
            f"local_response_norm: expected at least 3 dims, got shape {tuple(input.shape)}"
        )
    if input.dtype != _C.int64:
        check_floating("local_response_norm", input)
    if input.numel() == 0:
        return input
    n, c = input.shape[:2]
    squares = (input * input).reshape(n, c, -1)
    padded = _C.constant_pad_nd(squares, [0, 0, size // 2, (size - 1) // 2])
    windows = padded.unfold(1, size, 1)
    means = windows.mean(-1) if input.is_floating_point() else windows.sum(-1) // size
    means = means.reshape(input.shape)
    return input / (means * alpha + k).pow(beta)


_declare(globals(), ("bilinear", "pairwise_distance", "pdist"))
_list_own(vars())
