"""Operators of TorchScript that weft composes in Python: functions of the operators' signatures,
compiled where an archive calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
import weft.nn.functional as F
from weft import Tensor
from weft.nn.modules.rnn import _gru_step, _loop, _lstm_step, _relu_step, _tanh_step

# Numbers of dtypes -------------------------------------------------------------------------------

# TorchScript's numbers of dtypes, those first that are met most.
_NUMBERS = (
    (6, weft.float32), (4, weft.int64), (11, weft.bool), (7, weft.float64), (5, weft.float16),
    (15, weft.bfloat16), (3, weft.int32), (0, weft.uint8), (1, weft.int8), (2, weft.int16),
    (9, weft.complex64), (10, weft.complex128), (27, weft.uint16), (28, weft.uint32),
    (29, weft.uint64),
)  # fmt: skip
NUMBERED_DTYPES: dict[int, Any] = dict(_NUMBERS)


def dtype_of(number: int) -> weft.dtype:
    """The dtype of TorchScript's number."""
    for known, dtype in _NUMBERS:
        if number == known:
            return dtype
    raise RuntimeError(f"dtype: expected the number of a dtype, got {number}")


def optional_dtype_of(number: int | None) -> weft.dtype | None:
    """The dtype of TorchScript's number, if there is one."""
    return None if number is None else dtype_of(number)


def number_of(dtype: weft.dtype) -> int:
    """TorchScript's number of a dtype."""
    for number, known in _NUMBERS:
        if dtype == known:
            return number
    raise RuntimeError("dtype: expected one of TorchScript")


# Operators ---------------------------------------------------------------------------------------

COMPOSED: dict[str, Callable[..., Any]] = {}


def _composed(function: Callable[..., Any]) -> Callable[..., Any]:
    COMPOSED[f"aten::{function.__name__}"] = function
    return function


@_composed
def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
    benchmark: bool = False, deterministic: bool = False, cudnn_enabled: bool = True,
    allow_tf32: bool = True,
) -> Tensor:  # fmt: skip
    dims = len(stride)
    if transposed and dims == 1:
        return F.conv_transpose1d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    if transposed and dims == 2:
        return F.conv_transpose2d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    if transposed:
        return F.conv_transpose3d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    if dims == 1:
        return F.conv1d(input, weight, bias, stride, padding, dilation, groups)
    if dims == 2:
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.conv3d(input, weight, bias, stride, padding, dilation, groups)


@_composed
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@_composed
def adaptive_max_pool1d(input: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d(input, output_size[0], True)


@_composed
def adaptive_max_pool2d(input: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool2d(input, (output_size[0], output_size[1]), True)


@_composed
def pad(
    input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    return F.pad(input, pad, mode, 0.0 if value is None else value)


@_composed
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    return F.group_norm(input, num_groups, weight, bias, eps)


@_composed
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return input.copy_(F.dropout(input, p, train))


_BITWISE = {
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}


def find(kind: str) -> Callable[..., Any] | None:
    """The function for an operator: one of those here, or weft's function of that name."""
    space, _, name = kind.partition("::")
    if kind in COMPOSED or space != "aten":
        return COMPOSED.get(kind)
    name = _BITWISE.get(name, name)
    for module in (F, weft, weft.linalg, weft.special):
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


# Operators as they were ---------------------------------------------------------------------------


def _div(self: Any, other: Any, rounding_mode: str | None = None) -> Any:
    """Division of tensors of integers was integral up to version 3."""
    if not isinstance(self, Tensor):
        return weft.div(self, other)
    result = weft.div(self, other, rounding_mode=rounding_mode)
    is_whole = isinstance(other, int) or (
        isinstance(other, Tensor) and not other.is_floating_point() and not other.is_complex()
    )
    if rounding_mode is None and is_whole and not self.is_floating_point():
        result = weft.div(self, other, rounding_mode="trunc")
    return result


def _div_(self: Any, other: Any) -> Any:
    return self.copy_(_div(self, other))


def _full(
    size: list[int], fill_value: Any, *, dtype: int | None = None, layout: int | None = None,
    device: weft.device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Without a dtype the result was of floats up to version 4."""
    made = weft.get_default_dtype() if dtype is None else dtype_of(dtype)
    return weft.full(size, fill_value, dtype=made, device=device)


def _linspace(
    start: Any, end: Any, steps: int | None = None, *, dtype: int | None = None,
    layout: int | None = None, device: weft.device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """`steps` might be left out up to version 7."""
    count = 100 if steps is None else steps
    return weft.linspace(start, end, count, dtype=optional_dtype_of(dtype), device=device)


def _logspace(
    start: Any, end: Any, steps: int | None = None, base: float = 10.0, *, dtype: int | None = None,
    layout: int | None = None, device: weft.device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """`steps` might be left out up to version 8."""
    count = 100 if steps is None else steps
    return weft.logspace(start, end, count, base, dtype=optional_dtype_of(dtype), device=device)


# By operator: the last version of archives that means it so.
FORMER: dict[str, tuple[int, Callable[..., Any]]] = {
    "aten::div": (3, _div),
    "aten::div_": (3, _div_),
    "aten::full": (4, _full),
    "aten::linspace": (7, _linspace),
    "aten::logspace": (8, _logspace),
}

# Recurrent layers --------------------------------------------------------------------------------


def _run_layers(
    step: Callable[..., Any], input: Tensor, starts: tuple[Tensor, ...], params: list[Tensor],
    has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The outputs of all steps, and the first and the last part of the states behind them. Of each
    layer and direction `params` has the weights, then the biases."""
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if batch_first:
        input = input.transpose(0, 1)
    before = input
    firsts: list[Tensor] = []
    lasts: list[Tensor] = []
    for place in range(num_layers * directions):
        at = place * each
        bias_input = params[at + 2] if has_biases else None
        bias_hidden = params[at + 3] if has_biases else None
        steps = F.linear(input, params[at], bias_input)
        state = tuple(part[place] for part in starts)
        backwards = place % directions == 1
        output, state = _loop(step, steps, state, params[at + 1], bias_hidden, None, backwards)
        firsts.append(state[0])
        lasts.append(state[-1])
        if place % directions + 1 < directions:
            before = output
        else:
            input = output if directions == 1 else weft.cat((before, output), -1)
            if dropout > 0 and train and place + 1 < num_layers * directions:
                input = F.dropout(input, dropout, True)
    if batch_first:
        input = input.transpose(0, 1)
    return input, weft.stack(firsts, 0), weft.stack(lasts, 0)


@_composed
def lstm(
    input: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _run_layers(_lstm_step, input, (hx[0], hx[1]), params, has_biases, num_layers, dropout,
                       train, bidirectional, batch_first)  # fmt: skip


@_composed
def gru(
    input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_layers(_gru_step, input, (hx,), params, has_biases, num_layers, dropout, train,
                       bidirectional, batch_first)[:2]  # fmt: skip


@_composed
def rnn_tanh(
    input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_layers(_tanh_step, input, (hx,), params, has_biases, num_layers, dropout, train,
                       bidirectional, batch_first)[:2]  # fmt: skip


@_composed
def rnn_relu(
    input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_layers(_relu_step, input, (hx,), params, has_biases, num_layers, dropout, train,
                       bidirectional, batch_first)[:2]  # fmt: skip


def _run_cell(
    step: Callable[..., Any], input: Tensor, state: tuple[Tensor, ...],
    weights: tuple[Tensor, Tensor], biases: tuple[Tensor | None, Tensor | None],
) -> Any:  # fmt: skip
    inputs = F.linear(input, weights[0], biases[0])
    return step(inputs, state, F.linear(state[0], weights[1], biases[1]))


@_composed
def lstm_cell(
    input: Tensor, hx: list[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_cell(_lstm_step, input, (hx[0], hx[1]), (w_ih, w_hh), (b_ih, b_hh))


@_composed
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _run_cell(_gru_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


@_composed
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _run_cell(_tanh_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


@_composed
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _run_cell(_relu_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]
