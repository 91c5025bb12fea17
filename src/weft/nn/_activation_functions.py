"""Activation functions beyond the common ones; `weft.nn.functional` shows them."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import lower_precision as _lower_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._dtype_checks import check_floating

_nn = _C._nn

# The fixed point of self-normalising networks (Klambauer et al., 2017).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _placed(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """A result of operators whose gradients do not read `input`, which is written over."""
    return input.copy_(result) if inplace else result


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, otherwise alpha * (exp(input) - 1).

    Any shape; floating dtypes, RuntimeError for others. inplace writes into `input`.

    >>> weft.nn.functional.elu(weft.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _elu(input, alpha, 1.0, 1.0, inplace)


def _elu(input: Tensor, alpha: float, scale: float, input_scale: float, inplace: bool) -> Tensor:
    if inplace:
        return _nn.elu_(input, alpha, scale, input_scale)
    return _nn.elu(input, alpha, scale, input_scale)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled elu with the two constants that keep mean 0 and variance 1.

    Any shape; floating dtypes, RuntimeError for others (Klambauer et al., 2017).

    >>> weft.nn.functional.selu(weft.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _elu(input, _SELU_ALPHA, _SELU_SCALE, 1.0, inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, otherwise alpha * (exp(input / alpha) - 1).

    Any shape; floating dtypes. Raises RuntimeError for others, and for alpha = 0.

    >>> weft.nn.functional.celu(weft.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("celu: expected alpha other than 0, got 0")
    return _elu(input, alpha, 1.0, 1.0 / alpha, inplace)


def selu_(input: Tensor) -> Tensor:
    """selu in place.

    Dtypes and errors are those of selu.

    >>> weft.nn.functional.selu_(weft.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return selu(input, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu in place.

    Dtypes and errors are those of celu.

    >>> weft.nn.functional.celu_(weft.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return celu(input, alpha, True)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """input cut to [min_val, max_val].

    Any shape; for integers the bounds lose their fraction. Raises ValueError where min_val is above
    max_val.

    >>> weft.nn.functional.hardtanh(weft.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}")
    if input.is_floating_point():
        if inplace:
            return _nn.hardtanh_(input, min_val, max_val)
        return _nn.hardtanh(input, min_val, max_val)
    low, high = int(min_val), int(max_val)
    return _nn.hardtanh_(input, low, high) if inplace else _nn.hardtanh(input, low, high)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """input cut to [0, 6].

    Any shape and real dtype. RuntimeError for bools and complex numbers.

    >>> weft.nn.functional.relu6(weft.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """input / 6 + 1 / 2, cut to [0, 1].

    Any shape; floating dtypes, RuntimeError for others.

    >>> weft.nn.functional.hardsigmoid(weft.tensor([0.0, 1.5, 9.0]))
    tensor([0.5000, 0.7500, 1.0000])
    """
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * hardsigmoid(input).

    Any shape; floating dtypes, RuntimeError for others.

    >>> weft.nn.functional.hardswish(weft.tensor([0.0, 1.0, 9.0]))
    tensor([0.0000, 0.6667, 9.0000])
    """
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


@takes_out
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)), without overflow.

    Any shape; floating dtypes, RuntimeError for others.

    >>> weft.nn.functional.logsigmoid(weft.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    return _nn.log_sigmoid(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input)).

    Any shape; floating dtypes, RuntimeError for others.

    >>> weft.nn.functional.mish(weft.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    value = input.clone() if inplace else input  # gradients read it
    return _placed(input, value * _nn.softplus(value).tanh(), inplace)


def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|).

    Any shape; integers become the default dtype. RuntimeError for bools.

    >>> weft.nn.functional.softsign(weft.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input).

    Any shape; integers become the default dtype. RuntimeError for bools.

    >>> weft.nn.functional.tanhshrink(weft.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return input - input.tanh()


@takes_out
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input where |input| > lambd, otherwise 0.

    Any shape; floating dtypes. Raises NotImplementedError for others.

    >>> weft.nn.functional.hardshrink(weft.tensor([-0.25, 2.0]))
    tensor([0., 2.])
    """
    check_floating("hardshrink", input)
    return _C._aten._shrink(input, lambd, 0)


@takes_out
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved by lambd towards 0, which it does not cross.

    Any shape; floating dtypes. Raises RuntimeError for others, and for a negative lambd.

    >>> weft.nn.functional.softshrink(weft.tensor([-0.25, 2.0]))
    tensor([0.0000, 1.5000])
    """
    if lambd < 0:
        raise RuntimeError(f"softshrink: expected lambd >= 0, got {lambd}")
    check_floating("softshrink", input)
    return _C._aten._shrink(input, lambd, lambd)


def _above(input: Tensor, threshold: float, value: float) -> Tensor:
    if input.is_floating_point():
        return input.masked_fill(input <= threshold, value)
    if input.dtype == _C.bool:
        raise NotImplementedError("threshold: expected a numeric dtype, got bool")
    limit = _C.full((), threshold, dtype=input.dtype, device=input.device)
    return input.masked_fill(input <= limit, value)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where above the threshold, otherwise value.

    Any shape and real dtype but bool, which the result keeps: for integers both numbers lose their
    fraction. inplace writes into `input`. RuntimeError for others, and for numbers that do not fit.

    >>> weft.nn.functional.threshold(weft.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return _placed(input, _above(input, threshold, value), inplace)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold in place.

    Dtypes and errors are those of threshold.

    >>> weft.nn.functional.threshold_(weft.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return input.copy_(_above(input, threshold, value))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second.

    The result has half as many entries along `dim`. Raises RuntimeError where the size is odd.
    Floating dtypes.

    >>> weft.nn.functional.glu(weft.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    if input.dim() == 0:
        raise RuntimeError("glu: expected at least 1 dim, got a 0-d tensor")
    check_floating("glu", input)
    if input.size(dim) % 2:
        raise RuntimeError(f"glu: expected an even size of dimension {dim}, got {input.size(dim)}")
    value, gate = input.chunk(2, dim)
    return value * gate.sigmoid()


@_lower_precision
@data_dependent
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where positive, otherwise weight * input; one weight, or one a channel.

    Channels are dimension 1; one floating dtype for both. Raises RuntimeError for another number of
    weights and for other dtypes.

    >>> weft.nn.functional.prelu(weft.tensor([[-2.0, -2.0]]), weft.tensor([0.5, 0.25]))
    tensor([[-1.0000, -0.5000]])
    """
    check_floating("prelu", input)
    if weight.dtype != input.dtype:
        raise RuntimeError(f"prelu: expected one dtype, got {input.dtype} and {weight.dtype}")
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: expected a weight of 0 or 1 dims, got {tuple(weight.shape)}")
    channels = input.size(1) if input.dim() > 1 else 1
    if weight.numel() not in (1, channels):
        raise RuntimeError(
            f"prelu: expected 1 or {channels} weights for input of shape {tuple(input.shape)}, "
            f"got {weight.numel()}"
        )
    if weight.numel() > 1:
        weight = weight.reshape(-1, *(1,) * (input.dim() - 2))
    elif input.dim() == 0:
        weight = weight.reshape(())
    return _C._aten._prelu_kernel(input, weight)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """input where positive, otherwise input times a slope: drawn from [lower, upper] for each
    element in training, their mean else.

    Any shape; floating dtypes. Raises RuntimeError for others, and where lower is above upper.

    >>> weft.nn.functional.rrelu(weft.tensor([-4.0, 2.0]), 0.25, 0.75)
    tensor([-2.,  2.])
    """
    if not lower <= upper:
        raise RuntimeError(f"rrelu: expected lower <= upper, got {lower} and {upper}")
    check_floating("rrelu", input)
    below = input.detach() <= 0
    if not training:
        slope = _C.full((), (lower + upper) / 2, dtype=input.dtype, device=input.device)
        return _placed(input, _C.where(below, input * slope, input), inplace)
    if input.dtype == _C.float16:
        raise NotImplementedError(
            "rrelu: expected a dtype other than float16 in training, got float16"
        )
    count = int(below.sum())
    drawn = _C.empty(count, dtype=_C.float64).uniform_(lower, upper, generator=generator)
    slopes = _C.ones(input.shape, dtype=input.dtype).masked_scatter(below, drawn.to(input.dtype))
    return _placed(input, input * slopes, inplace)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    *, generator: Any = None,
) -> Tensor:  # fmt: skip
    """rrelu in place.

    Dtypes and errors are those of rrelu.

    >>> weft.nn.functional.rrelu_(weft.tensor([-4.0, 2.0]), 0.25, 0.75)
    tensor([-2.,  2.])
    """
    return rrelu(input, lower, upper, training, True, generator=generator)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """softmax((logits + Gumbel noise) / tau) along `dim`: a differentiable draw.

    hard gives one-hot vectors whose gradient is that of the soft ones. eps has no effect, as in
    PyTorch.

    The result has the shape of the logits. Raises RuntimeError for integers, IndexError for a
    dimension that is not there.

    >>> weft.nn.functional.gumbel_softmax(weft.tensor([0.0, 99.0]), hard=True)
    tensor([0., 1.])
    """
    noise = -_C.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.detach().argmax(dim, keepdim=True)
    one_hot = _C.zeros_like(logits).scatter(dim, best, 1.0)
    return one_hot - soft.detach() + soft


_declare(
    globals(),
    ("celu_", "hardshrink", "logsigmoid", "prelu", "rrelu_", "selu_", "softshrink", "threshold_"),
)
_list_own(vars())
