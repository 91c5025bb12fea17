"""Operators of TorchScript that weft composes in Python: functions of the operators' signatures,
compiled where an archive calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
import weft.nn.functional as F
from weft import Tensor
from weft.jit.archive.numbers import dtype_of

# By operator the functions that stand for its overloads: the first whose parameters take the
# arguments is called.
COMPOSED: dict[str, list[Callable[..., Any]]] = {}


def composed(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for an operator, or for one of its overloads."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED.setdefault(kind, []).append(function)
        return function

    return register


@composed("aten::_convolution")
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


@composed("aten::instance_norm")
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@composed("aten::adaptive_max_pool1d")
def adaptive_max_pool1d(input: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d(input, output_size[0], True)


@composed("aten::adaptive_max_pool2d")
def adaptive_max_pool2d(input: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool2d(input, (output_size[0], output_size[1]), True)


@composed("aten::pad")
def pad(
    input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    return F.pad(input, pad, mode, 0.0 if value is None else value)


@composed("aten::group_norm")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    return F.group_norm(input, num_groups, weight, bias, eps)


@composed("aten::to")
def to_device(
    self: Tensor, device: weft.device | None, dtype: int | None = None, non_blocking: bool = False,
    copy: bool = False, memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    moved = self.to(device, copy=copy) if device is not None else self
    return moved if dtype is None else moved.to(dtype_of(dtype))


@composed("aten::to")
def to_dtype(
    self: Tensor, dtype: int | None = None, non_blocking: bool = False, copy: bool = False,
    memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    return self if dtype is None else self.to(dtype_of(dtype), copy=copy)


@composed("aten::to_mkldnn")
def to_mkldnn(self: Tensor, dtype: int | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype_of(dtype))


@composed("aten::to_dense")
def to_dense(self: Tensor, dtype: int | None = None, masked_grad: bool | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype_of(dtype))


@composed("aten::dropout_")
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return input.copy_(F.dropout(input, p, train))


_BITWISE = {
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}


# Modules of functions whose operators begin with a word: torch.fft.rfft is aten::fft_rfft.
_MODULES = {"fft_": weft.fft, "linalg_": weft.linalg, "special_": weft.special}


def find(kind: str) -> Callable[..., Any] | None:
    """weft's function of an operator's name, if there is one."""
    space, _, name = kind.partition("::")
    if space != "aten":
        return None
    places: list[tuple[Any, str]] = [(module, _BITWISE.get(name, name)) for module in (F, weft)]
    for prefix, module in _MODULES.items():
        if name.startswith(prefix):
            places.append((module, name.removeprefix(prefix)))
    for module, name in places:
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None
