"""Pooling in one and three dimensions and by norms, all by the two-dimensional operators.
`weft.nn.functional` shows it."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._dtype_checks import check_full, check_no_integers

_nn = _C._nn
_max_pool2d = _nn.max_pool2d_with_indices


def _times(function: str, what: str, value: Any, count: int) -> list[int]:
    """One number for all dimensions, or one each."""
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    values = values * count if len(values) == 1 else values
    if len(values) != count:
        raise RuntimeError(f"{function}: expected {what} as 1 or {count} numbers, got {value}")
    if any(isinstance(v, float) for v in values):
        raise TypeError(f"{function}: expected {what} as integers, got {value}")
    return [int(v) for v in values]


def _stride(function: str, stride: Any, kernel: list[int]) -> list[int]:
    if stride is None or (isinstance(stride, (tuple, list)) and not stride):
        return kernel
    return _times(function, "stride", stride, len(kernel))


def _check_dims(function: str, x: Tensor, spatial: int) -> None:
    if x.dim() not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"{function}: expected {spatial + 1} or {spatial + 2} dims, got shape {tuple(x.shape)}"
        )


def _check_entries(function: str, x: Tensor, spatial: int) -> None:
    """Also that there is something in each sample."""
    _check_dims(function, x, spatial)
    if 0 in x.shape[x.dim() - spatial - 1 :]:
        raise RuntimeError(f"{function}: expected a non-empty input, got shape {tuple(x.shape)}")


def _window(
    function: str, spatial: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, stride, padding and dilation of each dimension."""
    kernel = _times(function, "kernel_size", kernel_size, spatial)
    step = _stride(function, stride, kernel)
    pads = _times(function, "padding", padding, spatial)
    return kernel, step, pads, _times(function, "dilation", dilation, spatial)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of [n, c, l], and where it lies.

    Arguments and errors are those of max_pool1d; indices are int64. The maxima have the dtype of
    the input.

    >>> weft.nn.functional.max_pool1d_with_indices(weft.tensor([[1, 3, 2, 0]]), 2)
    (tensor([[3, 2]]), tensor([[1, 2]]))
    """
    _check_entries("max_pool1d", input, 1)
    kernel, step, pads, dilate = _window("max_pool1d", 1, kernel_size, stride, padding, dilation)
    values, indices = _max_pool2d(
        input.unsqueeze(-2), (1, kernel[0]), (1, step[0]), (0, pads[0]), (1, dilate[0]), ceil_mode
    )
    return values.squeeze(-2), indices.squeeze(-2)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of [n, c, l]; with return_indices also where it lies.

    A window begins every `stride` (None: kernel_size) entries, its own are `dilation` apart. [c, l]
    gives two dimensions. Raises RuntimeError for other numbers of them, and for a kernel larger
    than the padded input. The dtype is that of the input, floating;
    integers with return_indices only.

    >>> weft.nn.functional.max_pool1d(weft.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    _check_entries("max_pool1d", input, 1)
    check_no_integers("max_pool1d", input)
    kernel, step, pads, dilate = _window("max_pool1d", 1, kernel_size, stride, padding, dilation)
    return _C.max_pool2d(
        input.unsqueeze(-2), (1, kernel[0]), (1, step[0]), (0, pads[0]), (1, dilate[0]), ceil_mode
    ).squeeze(-2)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of [n, c, d, h, w], and where it lies in its volume.

    Arguments and errors are those of max_pool3d; indices are int64, (i * h + j) * w + k. The maxima
    have the dtype of the input.

    >>> weft.nn.functional.max_pool3d_with_indices(weft.arange(8.0).reshape(1, 2, 2, 2), 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    _check_entries("max_pool3d", input, 3)
    kernel, step, pads, dilate = _window("max_pool3d", 3, kernel_size, stride, padding, dilation)
    lead = list(input.shape[:-3])
    depth, height, width = input.size(-3), input.size(-2), input.size(-1)
    # Rows and columns of each slice first, then over the slices: the first of equals still wins.
    flat = input.reshape(-1, height, width)
    values, indices = _max_pool2d(flat, kernel[1:], step[1:], pads[1:], dilate[1:], ceil_mode)
    plane = values.shape[-2:]
    count = plane[0] * plane[1]
    values, rows = _max_pool2d(
        values.reshape(-1, depth, count), (kernel[0], 1), (step[0], 1), (pads[0], 0),
        (dilate[0], 1), ceil_mode,
    )  # fmt: skip
    inner = indices.reshape(-1, depth * count).gather(1, rows.flatten(1)).reshape(rows.shape)
    indices = rows // count * (height * width) + inner
    shape = [*lead, values.size(1), *plane]
    return values.reshape(shape), indices.reshape(shape)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of [n, c, d, h, w]; with return_indices also where it lies.

    Arguments are numbers, or one for each dimension, and mean what they do for max_pool1d; so do
    the errors. [c, d, h, w] gives four dimensions. The dtype is that of the input, real.

    >>> weft.nn.functional.max_pool3d(weft.arange(8.0).reshape(1, 2, 2, 2), (1, 2, 2))
    tensor([[[[3.]],
    <BLANKLINE>
             [[7.]]]])
    """
    values, indices = max_pool3d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return (values, indices) if return_indices else values


# ---- means ----


def avg_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _OptionalInts = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of [n, c, l].

    Arguments and errors are those of avg_pool2d, for one dimension; [c, l] gives two dimensions.
    The dtype, floating or int64, is that of the input.

    >>> weft.nn.functional.avg_pool1d(weft.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    _check_entries("avg_pool1d", input, 1)
    (kernel,) = _times("avg_pool1d", "kernel_size", kernel_size, 1)
    (step,) = _stride("avg_pool1d", stride, [kernel])
    (pads,) = _times("avg_pool1d", "padding", padding, 1)
    pooled = _nn.avg_pool2d(
        input.unsqueeze(-2), (1, kernel), (1, step), (0, pads), ceil_mode, count_include_pad
    )
    return pooled.squeeze(-2)


@_full_precision
@takes_out
def avg_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _OptionalInts = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of [n, c, d, h, w], or its sum over divisor_override.

    Arguments and errors are those of avg_pool2d, for three dimensions; [c, d, h, w] gives four.
    float32, float64, and int64, rounded towards zero; NotImplementedError for others.

    >>> weft.nn.functional.avg_pool3d(weft.arange(8.0).reshape(1, 2, 2, 2), (1, 2, 2))
    tensor([[[[1.5000]],
    <BLANKLINE>
             [[5.5000]]]])
    """
    _check_entries("avg_pool3d", input, 3)
    whole = input.dtype == _C.int64
    if not whole:
        check_full("avg_pool3d", input)
    if divisor_override is not None and divisor_override == 0:
        raise RuntimeError("avg_pool3d: expected divisor_override other than 0, got 0")
    kernel = _times("avg_pool3d", "kernel_size", kernel_size, 3)
    step = _stride("avg_pool3d", stride, kernel)
    pads = _times("avg_pool3d", "padding", padding, 3)
    sums = whole or divisor_override is not None
    means = _mean_of_boxes(input, kernel, step, pads, ceil_mode, count_include_pad, sums)
    if divisor_override is not None:
        if whole:
            return _C.div(means, divisor_override, rounding_mode="trunc")
        return means / divisor_override
    if whole:  # the mean of means that are rounded is another one
        ones = _C.ones([1, *input.shape[-3:]], dtype=_C.float64, device=input.device)
        inside = _mean_of_boxes(ones, kernel, step, pads, ceil_mode, count_include_pad, True)
        share = _mean_of_boxes(ones, kernel, step, pads, ceil_mode, count_include_pad, False)
        return _C.div(means, (inside / share).round().long(), rounding_mode="trunc")
    return means


def _mean_of_boxes(
    x: Tensor,
    kernel: list[int],
    step: list[int],
    pads: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    sums: bool,
) -> Tensor:
    """A window's size is the product of its sizes along each dimension, and so is the mean."""
    own = 1 if sums else None
    lead = list(x.shape[:-3])
    depth, height, width = x.size(-3), x.size(-2), x.size(-1)
    flat = x.reshape(-1, height, width)
    means = _nn.avg_pool2d(flat, kernel[1:], step[1:], pads[1:], ceil_mode, count_include_pad, own)
    plane = means.shape[-2:]
    means = _nn.avg_pool2d(
        means.reshape(-1, depth, plane[0] * plane[1]), (kernel[0], 1), (step[0], 1), (pads[0], 0),
        ceil_mode, count_include_pad, own,
    )  # fmt: skip
    return means.reshape([*lead, means.size(1), *plane])


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of [n, c, l], p being norm_type.

    Floating dtypes. kernel_size, stride and ceil_mode are those of avg_pool1d, and so are the
    errors.

    >>> weft.nn.functional.lp_pool1d(weft.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    if math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        return sign * max_pool1d(sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    (kernel,) = _times("lp_pool1d", "kernel_size", kernel_size, 1)
    means = avg_pool1d(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return _root(means, kernel, norm_type)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of [n, c, h, w], p being norm_type.

    Floating dtypes. kernel_size, stride and ceil_mode are those of avg_pool2d, and so are the
    errors.

    >>> weft.nn.functional.lp_pool2d(weft.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    kernel = _times("lp_pool2d", "kernel_size", kernel_size, 2)
    step = _stride("lp_pool2d", stride, kernel)
    if math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        return sign * _C.max_pool2d(sign * input.abs(), kernel, step, 0, 1, ceil_mode)
    means = _nn.avg_pool2d(input.pow(norm_type), kernel, step, 0, ceil_mode)
    return _root(means, kernel[0] * kernel[1], norm_type)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of [n, c, d, h, w], p being norm_type.

    Floating dtypes. kernel_size, stride and ceil_mode are those of avg_pool3d, and so are the
    errors.

    >>> weft.nn.functional.lp_pool3d(weft.ones(1, 1, 2, 2), 2, (1, 2, 2))
    tensor([[[[2.]]]])
    """
    if math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        return sign * max_pool3d(sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    kernel = _times("lp_pool3d", "kernel_size", kernel_size, 3)
    means = avg_pool3d(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return _root(means, kernel[0] * kernel[1] * kernel[2], norm_type)


def _root(means: Tensor, count: int, p: float) -> Tensor:
    return (means.sign() * means.abs().relu() * count).pow(1.0 / p)


# ---- to given sizes ----


_declare(globals(), ("avg_pool1d", "avg_pool3d"))
_list_own(vars())
