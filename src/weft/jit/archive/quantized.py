"""Quantised networks of archives: a quantised tensor is the tensor of the numbers
(q - zero_point) * scale that its integers q stand for, and an operator rounds its result to such
numbers of the scale that it is told. So it is saved and exported. When it is optimised, the
integers themselves go from operator to operator (weft.jit.passes.quantized).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.serialization.errors import LoadError
from weft.serialization.globals import StorageType, find_global

#: global names in pickles: types of storages, and how numbers follow from integers
STORAGES = {
    "torch.QInt8Storage": StorageType(_C.int8),
    "torch.QUInt8Storage": StorageType(_C.uint8),
    "torch.QInt32Storage": StorageType(_C.int32),
}
SCHEMES = {f"torch.{name}": name for name in ("per_tensor_affine", "per_channel_affine")}


def rebuilt(storage: Any, offset: Any, size: Any, stride: Any, scheme: Any, *_: Any) -> Tensor:
    """The numbers of a quantised tensor, float32."""
    integers = find_global("torch._utils", "_rebuild_tensor_v2").value(
        storage, offset, size, stride, False, OrderedDict()
    )
    kind, *parts = scheme if type(scheme) is tuple and scheme else (None,)
    if integers.nbytes > integers.untyped_storage().nbytes():  # repeated elements may be any number
        raise LoadError(f"load: expected a dense quantised tensor, got strides {integers.stride()}")
    try:
        axis = 0
        if kind == "per_tensor_affine":
            scale, zero_point = map(float, parts)
            parts = [_C.tensor([scale]), _C.tensor([zero_point])]
        elif kind == "per_channel_affine":
            scales, zero_points, axis = parts
            parts = [scales.float(), zero_points.float()]
        if kind in SCHEMES.values():
            shape = [-1 if dim == axis else 1 for dim in range(integers.dim())]
            numbers = (integers.float() - parts[1].view(shape)) * parts[0].view(shape)
            if axis == 0 and integers.dtype == _C.int8:
                numbers._weft_integers = integers.clone(), *parts  # kept packed if its own
            return numbers
    except (AttributeError, RuntimeError, TypeError, ValueError):
        pass
    raise LoadError("load: expected a quantised tensor with its scale, got another")


class LinearPackedParams:
    """A weight of shape (out, in) and its bias. The weight is int8 with its scales and zero points,
    one or one for each row; or, where a program packed it, float32 with the scale 1."""

    __weft_script__ = True

    def __init__(
        self, integers: Tensor, scales: Tensor, zero_points: Tensor, bias: Tensor | None
    ) -> None:
        self.integers = integers
        self.scales = scales
        self.zero_points = zero_points
        self.bias = bias

    def weight(self) -> Tensor:
        return (self.integers.float() - self.zero_points.view(-1, 1)) * self.scales.view(-1, 1)

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        return self.weight(), self.bias


class ConvPackedParams:
    """Such a weight and a bias of a convolution, with its other arguments."""

    __weft_script__ = True

    def __init__(
        self, integers: Tensor, scales: Tensor, zero_points: Tensor, bias: Tensor | None,
        stride: list[int], padding: list[int], output_padding: list[int], dilation: list[int],
        groups: int,
    ) -> None:  # fmt: skip
        self.integers = integers
        self.scales = scales
        self.zero_points = zero_points
        self.bias = bias
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation
        self.groups = groups

    def weight(self) -> Tensor:
        shape = [-1] + [1] * (self.integers.dim() - 1)
        return (self.integers.float() - self.zero_points.view(shape)) * self.scales.view(shape)

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        return self.weight(), self.bias


class CellParams:
    """The weights of a recurrent layer for its input and its state, biases with them."""

    __weft_script__ = True

    def __init__(self, w_ih: LinearPackedParams, w_hh: LinearPackedParams, reduce: bool) -> None:
        self.w_ih = w_ih
        self.w_hh = w_hh
        self.reduce = reduce


#: PyTorch's classes, which archives name without their code
CLASSES: dict[str, type] = {
    "__torch__.torch.classes.quantized.LinearPackedParamsBase": LinearPackedParams,
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase": ConvPackedParams,
    "__torch__.torch.classes.quantized.Conv3dPackedParamsBase": ConvPackedParams,
    "__torch__.torch.classes.rnn.CellParamsBase": CellParams,
}


def is_packed(value: Any) -> bool:
    """Whether a value is an object of such a class."""
    return type(value) in CLASSES.values()


def restore(target: Any, state: Any) -> None:
    """Gives an object of such a class the state that PyTorch saved."""
    try:
        if type(target) is LinearPackedParams:
            weight, bias = state
            bias = bias if bias is None else _tensor(bias).detach()
            target.__init__(*_parts(_tensor(weight)), bias)  # type: ignore[misc]
        elif type(target) is CellParams:
            _, _, _, reduce, (w_ih, w_hh) = state
            if not (type(w_ih) is type(w_hh) is LinearPackedParams):
                raise TypeError
            target.__init__(w_ih, w_hh, bool(reduce[0]))  # type: ignore[misc]
        else:
            _, (config, weight), (bias,) = state
            numbers = [int(each) for each in _tensor(config).tolist()]
            dims, parts = numbers[0], numbers[1:]
            lists = [parts[i * dims : (i + 1) * dims] for i in range(4)]  # output_padding is last
            target.__init__(
                *_parts(_tensor(weight)), bias if bias is None else _tensor(bias).detach(),
                lists[0], lists[1], lists[3], lists[2], parts[4 * dims],
            )  # fmt: skip
    except (TypeError, ValueError, IndexError):
        raise LoadError(
            f"load: expected the state of {type(target).__name__}, got another"
        ) from None


def _parts(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The integers of a weight, its scales and its zero points."""
    found = getattr(weight, "_weft_integers", None)
    return (weight.detach(), _C.ones(1), _C.zeros(1)) if found is None else found


def keep_integers(given: Any, state: Any) -> None:
    """Gives packed weights in the state that a program made the integers that it was given."""
    packed = [each for each in state.values() if is_packed(each)] if type(state) is dict else []
    known = {tensor.data_ptr(): tensor for tensor in _tensors(given)} if packed else {}
    for each in packed:
        if type(each) is not CellParams and each.integers.data_ptr() in known:
            each.integers, each.scales, each.zero_points = _parts(known[each.integers.data_ptr()])


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, tuple | list):
        return [tensor for each in value for tensor in _tensors(each)]
    return [value] if hasattr(value, "_weft_integers") else []


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError
    return value
