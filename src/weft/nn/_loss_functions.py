"""Losses by element and by class; `weft.nn.functional` shows them."""

from __future__ import annotations

import warnings
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import broadcast_shapes, broadcast_tensors
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.program_state import is_scripting, is_tracing
from weft._runtime.samples import whole
from weft._runtime.torch_function import declare as _declare
from weft._tensor.aliases import numpy_names
from weft.nn._dtype_checks import check_floating, check_one_dtype, check_tensors
from weft.nn._reduction import legacy_get_string as _legacy

_nn = _C._nn
_cross_entropy_of_chances = _C._aten._cross_entropy_of_chances
_smooth_distance = _C._aten._smooth_distance
_linear = _nn.linear
_mse_loss = _nn.mse_loss
_l1_loss = _nn.l1_loss
_nll_loss = _nn.nll_loss_nd
_cross_entropy_loss = _nn.cross_entropy_loss
_bce_with_logits = _C.binary_cross_entropy_with_logits


def _reduction(function: str, name: str) -> int:
    """PyTorch's number of a reduction name; ValueError for another name. No dict: comparisons of
    constants are folded in programs, and a loss of known reduction may join a fusion group."""
    if name == "none":
        return 0
    if name == "mean":
        return 1
    if name == "sum":
        return 2
    raise ValueError(f"{function}: expected reduction 'none', 'mean' or 'sum', got {name!r}")


def _of_one_size(function: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both as they broadcast, with a warning if they have to: 0-d ones count for the dtype, too."""
    if is_scripting() or is_tracing():  # sizes that programs compare would end a fusion group
        return input, target
    if target.shape == input.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}): {function} broadcasts them, which is rarely meant",
        stacklevel=3,
    )
    input, target = broadcast_tensors(input, target)
    return input, target


def _refuse_whole(function: str, input: Tensor, target: Tensor) -> None:
    """NotImplementedError for integers and complex numbers, TypeError for no tensors."""
    if is_scripting():
        return
    check_tensors(function, input, target)
    if (input.is_floating_point() and target.is_floating_point()) or is_tracing():
        return
    found = _C.promote_types(input.dtype, target.dtype)
    if not found.is_floating_point:
        raise NotImplementedError(f"{function}: expected floating dtypes, got {found}")


def _reduced(function: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    _reduction(function, reduction)
    return loss


def _weighted(function: str, loss: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Losses by element times their weights; the mean is over the weights."""
    if weight.shape != input.shape:
        raise ValueError(
            f"{function}: expected weight of the input's shape {input.shape}, got {weight.shape}"
        )
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return _reduced(function, weighted, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """nll_loss(log_softmax(input, 1), target): input [n, c] (or [c]), target [n] of classes.

    A floating target of the input's shape holds probabilities of classes. [n, c, *] takes a target
    [n, *]. weight [c] scales each class; "mean" divides by the weights of the targets; targets of
    ignore_index do not count. Raises IndexError for a target outside the classes, RuntimeError for
    shapes that do not fit and for probabilities with an ignore_index of 0 or more, ValueError for
    another reduction.

    >>> weft.nn.functional.cross_entropy(weft.tensor([[0.0, 0.0], [9.0, 0.0]]), weft.tensor([0, 0]))
    tensor(0.3466)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    number = _reduction("cross_entropy", reduction)
    if ignore_index >= 0 and target.is_floating_point():
        raise RuntimeError(
            f"cross_entropy: expected classes as target with ignore_index, got {target.dtype}"
        )
    if label_smoothing:
        return _cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)
    return _cross_entropy_loss(input, target, weight, number, ignore_index)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target), and its arguments.

    input is [n, k] or [k], linear_weight [c, *, k], linear_bias [c, *], target [n, *] of classes or
    [n, c, *] of their probabilities. options have no effect. Raises RuntimeError for shapes that do
    not fit and for an ignore_index with probabilities, else what cross_entropy raises. Floating
    dtypes.

    >>> x, w = weft.eye(2), weft.tensor([[0.0, 0.0], [0.0, 9.0]])
    >>> weft.nn.functional.linear_cross_entropy(x, w, weft.tensor([0, 1]))
    tensor(0.3466)
    """
    shape = linear_weight.shape[:-1]
    if input.dim() not in (1, 2) or len(shape) < 1 or (input.dim() == 1 and len(shape) > 1):
        raise RuntimeError(
            "linear_cross_entropy: expected input [n, k] for linear_weight [c, *, k], or both "
            f"without n and *, got {tuple(input.shape)} and {tuple(linear_weight.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != shape:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_bias of shape {tuple(shape)}, "
            f"got {tuple(linear_bias.shape)}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError(
            "linear_cross_entropy: expected classes as target with ignore_index, "
            f"got {target.dtype}"
        )
    bias = None if linear_bias is None else linear_bias.flatten()
    logits = _linear(input, linear_weight.flatten(0, -2), bias)
    return cross_entropy(
        logits.reshape([*input.shape[:-1], *shape]),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """-input[i, target[i]] of log-probabilities [n, c], weighted by class, then reduced.

    Shapes, weights, ignore_index and errors are those of cross_entropy. Floating dtypes; targets
    are int64.

    >>> chances = weft.tensor([[0.5, 0.5], [0.25, 0.75]])
    >>> weft.nn.functional.nll_loss(chances.log(), weft.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.2877])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if input.dim() == 0:
        raise ValueError("nll_loss: expected an input of at least 1 dim, got a 0-d tensor")
    return _nll_loss(input, target, weight, _reduction("nll_loss", reduction), ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) ** 2, weighted and reduced; a weighted mean is divided by the weights.

    Floating or complex tensors that broadcast, with a warning if they have to; reduction "none"
    keeps their shape, "mean" and "sum" give one number. Raises ValueError for another reduction and
    for a weight of another shape.

    >>> weft.nn.functional.mse_loss(weft.tensor([1.0, 5.0]), weft.tensor([1.0, 3.0]))
    tensor(2.)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    input, target = _of_one_size("mse_loss", input, target)
    _refuse_whole("mse_loss", input, target)
    if weight is not None:
        loss = (input - target) ** 2
        return _weighted("mse_loss", loss, input, weight, reduction)
    return _mse_loss(input, target, _reduction("mse_loss", reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, weighted and reduced; a weighted mean is divided by the weights.

    Shapes, dtypes, reductions and errors are those of mse_loss.

    >>> weft.nn.functional.l1_loss(weft.tensor([1.0, 5.0]), weft.tensor([1.0, 3.0]))
    tensor(1.)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    input, target = _of_one_size("l1_loss", input, target)
    if weight is not None:
        loss = (input - target).abs()
        return _weighted("l1_loss", loss, input, weight, reduction)
    return _l1_loss(input, target, _reduction("l1_loss", reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of sigmoid(input) against targets in [0, 1] of the same shape.

    weight scales elements, pos_weight those with target 1. Raises ValueError for a target of
    another shape and for another reduction. Floating dtypes.

    >>> logits, target = weft.tensor([0.0, 9.0]), weft.tensor([1.0, 1.0])
    >>> weft.nn.functional.binary_cross_entropy_with_logits(logits, target)
    tensor(0.3466)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy_with_logits: expected a target of shape {input.shape}, "
            f"got {target.shape}"
        )
    number = _reduction("binary_cross_entropy_with_logits", reduction)
    loss = _bce_with_logits(input, target, weight, pos_weight, number)
    return loss if weight is None and pos_weight is None else loss.to(target.dtype)


def _refuse_outside(name: str, values: Tensor) -> None:
    inside = (values >= 0).logical_and(values <= 1)
    if not inside.is_meta and not whole(inside).all():
        raise RuntimeError(f"binary_cross_entropy: expected {name} in [0, 1], got values outside")


@_full_precision
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of probabilities in [0, 1] against targets in [0, 1] of the same shape.

    weight scales elements; reduction "none" keeps the shape, "mean" and "sum" give one number.
    Raises ValueError for a target of another shape and for another reduction, RuntimeError for
    inputs outside [0, 1]. Floating dtypes.

    >>> chances, target = weft.tensor([0.5, 0.25]), weft.tensor([1.0, 1.0])
    >>> weft.nn.functional.binary_cross_entropy(chances, target, reduction="none")
    tensor([0.6931, 1.3863])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy: expected a target of shape {input.shape}, got {target.shape}"
        )
    _refuse_whole("binary_cross_entropy", input, target)
    check_one_dtype("binary_cross_entropy", "target", target, input)
    _refuse_outside("input", input.detach())
    _refuse_outside("target", target.detach())
    loss = _cross_entropy_of_chances(input, target)
    loss = loss if weight is None else (loss * weight).to(input.dtype)
    return _reduced("binary_cross_entropy", loss, reduction)


@_full_precision
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where |d| < beta, otherwise |d| - beta / 2; d = input - target.

    Tensors that broadcast; reduction "none" keeps their shape, "mean" and "sum" give one number.
    Raises ValueError for a negative beta and for another reduction. Floating dtypes, others only
    with beta 0.

    >>> weft.nn.functional.smooth_l1_loss(weft.tensor([0.5, 3.0]), weft.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    input, target = _of_one_size("smooth_l1_loss", input, target)
    if beta == 0:
        return _reduced("smooth_l1_loss", (input - target).abs(), reduction)
    _refuse_whole("smooth_l1_loss", input, target)
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: expected beta >= 0, got {beta}")
    loss = _smooth_distance(input, target, beta, beta, 1.0)
    return _reduced("smooth_l1_loss", loss, reduction)


@_full_precision
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d^2 / 2 where |d| <= delta, otherwise delta (|d| - delta / 2); d = input - target.

    Reductions are those of smooth_l1_loss. Raises RuntimeError for delta <= 0, ValueError for
    another reduction and for a weight of another shape. Floating dtypes.

    >>> weft.nn.functional.huber_loss(weft.tensor([0.5, 3.0]), weft.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    _refuse_whole("huber_loss", input, target)
    own, other = _of_one_size("huber_loss", input, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss: expected delta > 0, got {delta}")
    loss = _smooth_distance(own, other, delta, 1.0, delta)
    if weight is not None and weight.shape != input.shape:
        raise ValueError(
            f"huber_loss: expected weight of the input's shape {input.shape}, got {weight.shape}"
        )
    loss = loss.to(input.dtype)
    return _reduced("huber_loss", loss if weight is None else loss * weight, reduction)


@_full_precision
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input) for log-probabilities `input`; 'batchmean' divides by n.

    `target` holds probabilities, or their logarithms with log_target; where it is 0 the loss is.
    The other reductions are those of smooth_l1_loss. Floating dtypes. Raises ValueError for another
    reduction, RuntimeError for shapes that do not broadcast.

    >>> chances = weft.tensor([0.5, 0.5])
    >>> weft.nn.functional.kl_div(weft.tensor([0.25, 0.75]).log(), chances, reduction="sum")
    tensor(0.1438)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    elif reduction == "mean":
        text = "kl_div: expected 'batchmean', which gives the divergence, got 'mean', of elements"
        warnings.warn(text, stacklevel=2)
    _refuse_whole("kl_div", input, target)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        zero = target == 0
        logarithm = _C.where(zero, 1, target).log()
        loss = _C.where(zero, 0, target * logarithm) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss
    return _reduced("kl_div", loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log var + (input - target)^2 / var) / 2; var at least eps.

    `var` is a number or a tensor of the input's shape, or without its last size, or with a size of
    1 instead of one. Reductions are those of smooth_l1_loss. Raises ValueError for negative
    variances and other shapes of them. Floating dtypes.

    >>> x, target = weft.tensor([1.0, 3.0]), weft.tensor([1.0, 1.0])
    >>> weft.nn.functional.gaussian_nll_loss(x, target, weft.ones(2), reduction="none")
    tensor([0., 2.])
    """
    if isinstance(var, (float, int)):
        var = _C.full_like(input, float(var))
    if (var.detach() < 0).any():
        raise ValueError("gaussian_nll_loss: expected var >= 0, got negative values")
    if input.dim() and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    elif var.dim() != input.dim() or [v for n, v in zip(input.shape, var.shape) if n != v] not in (
        [],
        [1],
    ):
        raise ValueError(
            f"gaussian_nll_loss: expected a var of shape {tuple(input.shape)}, without its last "
            f"size, or with one size of 1, got {tuple(var.shape)}"
        )
    check_floating("gaussian_nll_loss", input)
    var = var + (var.detach().clamp_min(eps) - var.detach())  # the floor passes gradients through
    loss = (var.log() + (input - target) ** 2 / var) * 0.5
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return _reduced("gaussian_nll_loss", loss, reduction)


@numpy_names
@data_dependent
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms count as at least eps.

    x1 and x2 are broadcast against each other; the result lacks `dim`. Raises RuntimeError for
    shapes that do not broadcast and a negative eps. Floating dtypes.

    >>> weft.nn.functional.cosine_similarity(weft.tensor([[3.0, 4.0]]), weft.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    if x1.shape != x2.shape:  # sizes of 1 along dim count as often as they are repeated
        shape = broadcast_shapes(x1.shape, x2.shape)
        x1, x2 = x1.expand(shape), x2.expand(shape)
    if x1.is_complex() or x2.is_complex():
        raise RuntimeError(f"cosine_similarity: expected real dtypes, got {x1.dtype}, {x2.dtype}")
    if eps < 0:
        raise RuntimeError(f"cosine_similarity: expected eps >= 0, got {eps}")
    if x1.dtype != x2.dtype:
        common = _C.promote_types(x1.dtype, x2.dtype)
        x1, x2 = x1.to(common), x2.to(common)
    first = x1 / x1.norm(2, dim, keepdim=True).clamp_min(eps)
    return (first * (x2 / x2.norm(2, dim, keepdim=True).clamp_min(eps))).sum(dim)


_declare(globals(), ("cosine_similarity",))
_list_own(vars())
