"""Windows of images as columns and back, and the convolutions that are built on two dimensions;
`weft.nn.functional` shows them."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.argument_types import IntsOrText as _IntsOrText
from weft._runtime.data_dependent import data_dependent
from weft._runtime.precision import lower_precision as _lower_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._dtype_checks import check_length, check_no_integers, check_one_dtype
from weft.nn._pooling_functions import _check_dims, _times

_conv2d = _C._aten.conv2d
_conv_transpose2d = _C._aten.conv_transpose2d


def _positions(size: int, kernel: int, dilation: int, padding: int, stride: int) -> Tensor:
    """[kernel, windows]: the padded entries that the windows show."""
    count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return (_C.arange(kernel) * dilation).unsqueeze(1) + _C.arange(max(count, 0)) * stride


def _geometry(
    function: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> list[tuple[int, int, int, int]]:
    """(kernel, dilation, padding, stride) of both dimensions."""
    kernel = _times(function, "kernel_size", kernel_size, 2)
    dilate = _times(function, "dilation", dilation, 2)
    pads = _times(function, "padding", padding, 2)
    step = _times(function, "stride", stride, 2)
    if min([*kernel, *dilate, *step]) < 1 or min(pads) < 0:
        raise RuntimeError(
            f"{function}: expected kernel_size, dilation and stride > 0 and padding >= 0, got "
            f"{kernel_size}, {dilation}, {stride} and {padding}"
        )
    return [(kernel[i], dilate[i], pads[i], step[i]) for i in range(2)]


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows of [n, c, h, w] as columns: [n, c * kernel, windows].

    [c, h, w] gives two dimensions. kernel_size, dilation, padding and stride are numbers, or one
    each for rows and columns. Raises RuntimeError for windows that do not fit, NotImplementedError
    for integers.

    >>> weft.nn.functional.unfold(weft.arange(4.0).reshape(1, 2, 2), (1, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """
    _check_dims("unfold", input, 2)
    check_no_integers("unfold", input)
    rows, columns = _geometry("unfold", kernel_size, dilation, padding, stride)
    down = _positions(input.size(-2), *rows)
    across = _positions(input.size(-1), *columns)
    if down.size(1) == 0 or across.size(1) == 0:
        raise RuntimeError(
            f"unfold: expected windows that fit the input, got shape {tuple(input.shape)} and "
            f"kernel_size {kernel_size}"
        )
    lead, c = list(input.shape[:-3]), input.size(-3)
    x = _C.constant_pad_nd(input, [columns[2], columns[2], rows[2], rows[2]])
    x = x.index_select(-2, down.reshape(-1)).index_select(-1, across.reshape(-1))
    x = x.unflatten(-1, tuple(across.shape)).unflatten(-3, tuple(down.shape))
    # [*, c, kh, lh, kw, lw] to [*, c kh kw, lh lw]
    x = x.transpose(-3, -2)
    return x.reshape([*lead, c * rows[0] * columns[0], down.size(1) * across.size(1)])


@data_dependent
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Columns [n, c * kernel, windows] added up where unfold took them from.

    The result is [n, c, *output_size].

    Without n there are two dimensions, and three in the result. Raises RuntimeError for sizes that
    do not fit, NotImplementedError for integers.

    >>> columns = weft.tensor([[0.0, 2.0], [1.0, 3.0]])
    >>> weft.nn.functional.fold(columns, (2, 2), (1, 2))
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    if input.dim() not in (2, 3):
        raise RuntimeError(f"fold: expected 2 or 3 dims, got shape {tuple(input.shape)}")
    check_no_integers("fold", input)
    height, width = _times("fold", "output_size", output_size, 2)
    rows, columns = _geometry("fold", kernel_size, dilation, padding, stride)
    down, across = _positions(height, *rows), _positions(width, *columns)
    taps, windows = rows[0] * columns[0], down.size(1) * across.size(1)
    lead, channels, count = list(input.shape[:-2]), input.size(-2), input.size(-1)
    if channels % taps or count != windows:
        raise RuntimeError(
            f"fold: expected channels divisible by {taps} and {windows} windows, got shape "
            f"{tuple(input.shape)}"
        )
    c = channels // taps
    x = input.reshape([*lead, c, rows[0], columns[0], down.size(1), across.size(1)])
    x = x.transpose(-3, -2).reshape([*lead, c, down.numel(), across.numel()])
    high, wide = height + 2 * rows[2], width + 2 * columns[2]
    x = x.new_zeros([*lead, c, high, across.numel()]).index_add(-2, down.reshape(-1), x)
    x = x.new_zeros([*lead, c, high, wide]).index_add(-1, across.reshape(-1), x)
    return x.narrow(-2, rows[2], height).narrow(-1, columns[2], width)


# ---- convolutions ----


_SHORT = (_C.uint8, _C.int8, _C.int16, _C.int32)


@_lower_precision
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Ints = 1,
    padding: _IntsOrText = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of volumes [n, c, d, h, w] with filters [o, c / groups, kd, kh, kw].

    The windows along the depth become channels, so that one convolution in two dimensions is left.

    [c, d, h, w] gives four dimensions; bias is [o]. Other arguments are numbers, or one for each
    dimension; padding may be "valid", or "same" with stride 1. Raises RuntimeError for shapes that
    do not fit. All are of one dtype, not bool.

    >>> volume, mean = weft.arange(8.0).reshape(1, 2, 2, 2), weft.full((1, 1, 2, 2, 2), 0.125)
    >>> weft.nn.functional.conv3d(volume, mean)
    tensor([[[[3.5000]]]])
    """
    _check_volume("conv3d", input, weight)
    strides = _times("conv3d", "stride", stride, 3)
    dilate = _times("conv3d", "dilation", dilation, 3)
    _check_steps("conv3d", strides, dilate)
    if isinstance(padding, str):
        input, pads = _same_padding(input, weight, padding, strides, dilate)
    else:
        pads = _times("conv3d", "padding", padding, 3)
    if max(dilate) > 1 and input.dtype in _SHORT:
        raise NotImplementedError(
            f"conv3d: expected int64 or no integers for a dilation, got {input.dtype}"
        )
    x = input if input.dim() == 5 else input.unsqueeze(0)
    if x.size(1) != weight.size(1) * groups:
        raise RuntimeError(
            "conv3d: expected a weight of shape (O, C / groups, kD, kH, kW) for input "
            f"{tuple(input.shape)} and groups {groups}, got {tuple(weight.shape)}"
        )
    kd = weight.size(2)
    positions = _positions(x.size(2), kd, dilate[0], pads[0], strides[0])
    if positions.size(1) == 0:
        raise RuntimeError(
            f"conv3d: expected a kernel no larger than the padded input, got {tuple(weight.shape)} "
            f"and {tuple(input.shape)}"
        )
    n, c, _, h, w = x.shape
    x = _C.constant_pad_nd(x, [0, 0, 0, 0, pads[0], pads[0]])
    depth = positions.size(1)
    x = x.index_select(2, positions.reshape(-1)).reshape(n, c, kd, depth, h, w)
    x = x.permute(0, 3, 1, 2, 4, 5).reshape(n * depth, c * kd, h, w)
    y = _conv2d(x, weight.flatten(1, 2), bias, strides[1:], pads[1:], dilate[1:], groups)
    y = y.reshape(n, depth, *y.shape[1:]).transpose(1, 2).contiguous()  # programs take views
    return y if input.dim() == 5 else y.squeeze(0)


def _check_steps(function: str, strides: list[int], dilate: list[int]) -> None:
    if min([*strides, *dilate]) < 1:
        raise RuntimeError(
            f"{function}: expected stride and dilation of at least 1, got {strides} and {dilate}"
        )


def _check_volume(function: str, input: Tensor, weight: Tensor) -> None:
    _check_dims(function, input, 3)
    if weight.dim() != 5:
        raise RuntimeError(f"{function}: expected a weight of 5 dims, got {tuple(weight.shape)}")


def _same_padding(
    x: Tensor, weight: Tensor, padding: str, strides: list[int], dilate: list[int]
) -> tuple[Tensor, list[int]]:
    """Padding "valid" (none) or "same": what does not halve evenly is added behind."""
    if padding == "valid":
        return x, [0, 0, 0]
    if padding != "same" or strides != [1, 1, 1]:
        raise RuntimeError(
            f"conv3d: expected padding 'valid', or 'same' with stride 1, got {padding!r} and "
            f"stride {strides}"
        )
    total = [d * (k - 1) for d, k in zip(dilate, weight.shape[2:])]
    extra = [n for t in reversed(total) for n in (0, t % 2)]
    return _C.constant_pad_nd(x, extra), [t // 2 for t in total]


@_lower_precision
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d with time first: input [t, b, c], weight [k, c, o] and bias [o] give [t', b, o].

    Raises RuntimeError for other numbers of dimensions. All are of one dtype, not bool.

    >>> weft.nn.functional.conv_tbc(weft.ones(3, 1, 1), weft.ones(2, 1, 1), weft.zeros(1)).flatten()
    tensor([2., 2.])
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: expected input [t, b, c], weight [k, c, o] and bias [o], got shapes "
            f"{tuple(input.shape)}, {tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    result = _C.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return result.permute(2, 0, 1)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Ints = 1,
    padding: _Ints = 0,
    output_padding: _Ints = 0,
    groups: int = 1,
    dilation: _Ints = 1,
) -> Tensor:
    """The transpose of conv1d: [n, c, l] with a weight [c, o / groups, k].

    The result is [n, o, (l - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1];
    [c, l] gives two dimensions. Raises RuntimeError for shapes that do not fit. All are of one
    dtype, not bool.

    >>> weft.nn.functional.conv_transpose1d(weft.tensor([[1.0, 2.0]]), weft.ones(1, 1, 2), stride=2)
    tensor([[1., 1., 2., 2.]])
    """
    _check_dims("conv_transpose1d", input, 1)
    function = "conv_transpose1d"
    step, pads = _times(function, "stride", stride, 1), _times(function, "padding", padding, 1)
    extra = _times(function, "output_padding", output_padding, 1)
    dilate = _times(function, "dilation", dilation, 1)
    y = _conv_transpose2d(
        input.unsqueeze(-2), weight.unsqueeze(-2), bias, [1, *step], [0, *pads], [0, *extra],
        groups, [1, *dilate],
    )  # fmt: skip
    return y.squeeze(-2)


@_lower_precision
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Ints = 1,
    padding: _Ints = 0,
    output_padding: _Ints = 0,
    groups: int = 1,
    dilation: _Ints = 1,
) -> Tensor:
    """The transpose of conv3d: [n, c, d, h, w] with a weight [c, o / groups, kd, kh, kw].

    Each size of the result is that of conv_transpose1d; [c, d, h, w] gives four dimensions. Raises
    RuntimeError for shapes that do not fit, and for an output_padding that neither stride nor
    dilation exceeds. All are of one dtype, not bool.

    >>> one, ones = weft.ones(1, 1, 1, 1), weft.ones(1, 1, 1, 2, 2)
    >>> weft.nn.functional.conv_transpose3d(one, ones)
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    function = "conv_transpose3d"
    _check_volume(function, input, weight)
    strides = _times(function, "stride", stride, 3)
    pads = _times(function, "padding", padding, 3)
    extra = _times(function, "output_padding", output_padding, 3)
    dilate = _times(function, "dilation", dilation, 3)
    _check_steps(function, strides, dilate)
    channels = weight.size(1) * groups
    if bias is not None:
        check_length(function, "bias", bias, channels)
        check_one_dtype(function, "bias", bias, input)
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilate)):
        raise RuntimeError(
            f"{function}: expected output_padding less than stride or dilation, got "
            f"{output_padding}, {stride} and {dilation}"
        )
    x = input if input.dim() == 5 else input.unsqueeze(0)
    n, _, depth = x.shape[:3]
    kd = weight.size(2)
    planes = x.transpose(1, 2).flatten(0, 1)
    y = _conv_transpose2d(
        planes, weight.flatten(1, 2), None, strides[1:], pads[1:], extra[1:], groups, dilate[1:]
    )
    # [n d, o kd, h, w]: each slice adds to kd slices of the result.
    y = y.reshape(n, depth, channels, kd, *y.shape[-2:]).permute(0, 2, 3, 1, 4, 5).flatten(2, 3)
    size = (depth - 1) * strides[0] - 2 * pads[0] + dilate[0] * (kd - 1) + extra[0] + 1
    positions = (_C.arange(kd) * dilate[0]).unsqueeze(1) + _C.arange(depth) * strides[0]
    whole = y.new_zeros([n, y.size(1), size + 2 * pads[0], *y.shape[-2:]])
    y = whole.index_add(2, positions.reshape(-1), y).narrow(2, pads[0], size)
    if bias is not None:
        y = y + bias.reshape(-1, 1, 1, 1)
    y = y.contiguous()
    return y if input.dim() == 5 else y.squeeze(0)


__all__ = ["conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose3d", "fold", "unfold"]

_declare(globals(), ("conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose3d"))
