"""Normalisations over groups and by root mean square; `weft.nn.functional` shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft import _C
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft._runtime.torch_function import declare as _declare
from weft._tensor.limits import finfo

_group_norm = _C.group_norm


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each group of channels of input [n, c, *] over the group and all positions.

    weight and bias are [c]; the result has the shape of `input`, in channels_last where that is.
    Raises RuntimeError for a number of groups that does not divide c, and for vectors of another
    dtype than that of input, float32 beside 16 bits excepted. Floating dtypes.

    >>> x = weft.tensor([[[1.0, 3.0], [5.0, 9.0]]])
    >>> weft.nn.functional.group_norm(x, 2, eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    return _group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample of input [n, c, *] by its own statistics.

    With use_input_stats the running statistics move towards the mean of those over the samples;
    without, they are what is normalised by.

    Floating dtypes. The other tensors are [c]; the result has the shape of `input`. Raises
    RuntimeError without both running statistics where these are used, ValueError for one value a
    channel where they are not.

    >>> x = weft.tensor([[[1.0, 3.0], [5.0, 9.0]]])
    >>> weft.nn.functional.instance_norm(x, eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "instance_norm: expected running_mean and running_var without use_input_stats, "
                "got none"
            )
        return _C.batch_norm(
            input, weight, bias, running_mean, running_var, False, momentum, eps, True
        )
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"instance_norm: expected more than 1 value per channel, got shape {tuple(input.shape)}"
        )
    if running_mean is not None or running_var is not None:
        _move_running(input.detach(), running_mean, running_var, momentum)
    return _group_norm(input.contiguous(), input.size(1), weight, bias, eps)


def _move_running(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> None:
    """Moves the statistics of instance_norm, one number a channel, as batch_norm would."""
    positions = list(range(2, input.dim()))
    if running_mean is not None:
        running_mean.lerp_(input.mean(positions).mean(0).to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_(input.var(positions).mean(0).to(running_var.dtype), momentum)


_EPSILONS: tuple[tuple[_C.dtype, float], ...] = tuple(
    (dtype, float(finfo(computing).eps))
    for dtype, computing in (
        (_C.float32, _C.float32), (_C.float64, _C.float64), (_C.float16, _C.float32),
        (_C.bfloat16, _C.float32), (_C.complex64, _C.complex64), (_C.complex128, _C.complex128),
    )
)  # fmt: skip


def _epsilon(dtype: _C.dtype) -> float:
    """finfo().eps of the dtype that rms_norm computes in, in words that weft.jit compiles."""
    for known, eps in _EPSILONS:
        if dtype == known:
            return eps
    raise NotImplementedError(f"rms_norm: expected a floating dtype, got {dtype}")


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """input / sqrt(mean(input^2) + eps) over the last dimensions, times weight.

    eps is the machine epsilon unless given: the dtype's, of float16 and bfloat16 float32's.

    weight has the shape normalized_shape, the result that of `input`. Raises RuntimeError where
    `input` ends otherwise, NotImplementedError for integers.

    >>> weft.nn.functional.rms_norm(weft.tensor([3.0, 4.0, 0.0, 0.0]), [4])
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """
    if len(normalized_shape) == 0:
        raise RuntimeError("rms_norm: expected normalized_shape of at least 1 size, got none")
    dims = list(range(-len(normalized_shape), 0))
    if tuple(input.shape[input.dim() - len(dims) :]) != tuple(normalized_shape):
        raise RuntimeError(
            f"rms_norm: expected input whose last sizes are {tuple(normalized_shape)}, "
            f"got shape {tuple(input.shape)}"
        )
    if eps is None:
        eps = _epsilon(input.dtype)
    if input.dim() < 4:  # the result of images keeps their layout
        input = input.contiguous()
    # Squares of float16 overflow, so halves compute in float32.
    wide = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    result = wide * ((wide * wide).mean(dims, keepdim=True) + eps).rsqrt()
    return (result if weight is None else result * weight).to(input.dtype)


_declare(globals())
_list_own(vars())
