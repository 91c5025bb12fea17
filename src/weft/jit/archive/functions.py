"""Operators of TorchScript that weft composes in Python: functions of the operators' signatures,
compiled where an archive calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft import _C, amp, linalg, special
from weft._C import Tensor
from weft._functions.norms import _weight_norm, norm_except_dim
from weft._runtime.public import weft
from weft._tensor.promotion import result_type
from weft.jit.archive.numbers import dtype_of
from weft.nn import _operators

# By operator the functions that stand for its overloads: the first whose parameters take the
# arguments is called.
COMPOSED: dict[str, list[Callable[..., Any]]] = {}


def composed(*kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for operators, or for one of the overloads of each."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            COMPOSED.setdefault(kind, []).append(function)
        return function

    return register


for _kind, _functions in _operators.FUNCTIONS.items():
    for _function in _functions:
        composed(f"aten::{_kind}")(_function)

composed("aten::_weight_norm")(_weight_norm)
composed("aten::norm_except_dim")(norm_except_dim)


@composed("aten::pad")
def pad(
    input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    return F.pad(input, pad, mode, 0.0 if value is None else value)


# Parameters that are called dtype are dtypes, whatever they say.


@composed("aten::to")
def to_device(
    self: Tensor, device: _C.device | None, number: int | None = None, non_blocking: bool = False,
    copy: bool = False, memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    moved = self.to(device, copy=copy) if device is not None else self
    return moved if number is None else moved.to(dtype_of(number))


@composed("aten::to")
def to_dtype(
    self: Tensor, number: int | None = None, non_blocking: bool = False, copy: bool = False,
    memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    return self if number is None else self.to(dtype_of(number), copy=copy)


@composed("aten::to")
def to_itself(self: Tensor, non_blocking: bool = False, copy: bool = False) -> Tensor:
    return self.clone() if copy else self


@composed("aten::to_mkldnn")
def to_mkldnn(self: Tensor, dtype: int | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype_of(dtype))


@composed("aten::to_dense")
def to_dense(self: Tensor, dtype: int | None = None, *, masked_grad: bool | None = None) -> Tensor:
    return self if dtype is None else self.to(dtype_of(dtype))


@composed("aten::sum_to_size")
def sum_to_size(self: Tensor, size: list[int]) -> Tensor:
    leading = self.dim() - len(size)
    dims = [i for i in range(self.dim()) if i < leading or size[i - leading] == 1]
    return self.sum(dims, keepdim=True).reshape(size) if len(dims) > 0 else self.reshape(size)


@composed("aten::special_softmax")
def special_softmax(self: Tensor, dim: int, number: int | None = None) -> Tensor:
    return self.softmax(dim) if number is None else self.softmax(dim, dtype_of(number))


@composed("aten::rrelu")
def rrelu(
    self: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    generator: Any = None,
) -> Tensor:  # fmt: skip
    assert generator is None, "rrelu: expected no generator"
    return F.rrelu(self, lower, upper, training)


@composed("aten::rrelu_")
def rrelu_(
    self: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    generator: Any = None,
) -> Tensor:  # fmt: skip
    return self.copy_(rrelu(self, lower, upper, training, generator))


@composed("aten::index_reduce_")
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    made = weft.index_reduce(self, dim, index, source, reduce, include_self=include_self)
    return self.copy_(made)


@composed("aten::is_pinned")
def is_pinned(self: Tensor, device: _C.device | None = None) -> bool:
    return False


@composed("aten::histogram")
def histogram_of_edges(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    hist, edges = weft.histogram(self, bins, weight=weight, density=density)
    return hist, edges


@composed("aten::histogram")
def histogram(
    self: Tensor, bins: int = 100, *, range: list[float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    ends = None if range is None else (range[0], range[1])
    hist, edges = weft.histogram(self, bins, range=ends, weight=weight, density=density)
    return hist, edges


@composed("aten::_lu_with_info")
def _lu_with_info(
    self: Tensor, pivot: bool = True, check_errors: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, info = linalg.lu_factor_ex(self, pivot=pivot, check_errors=check_errors)
    return factors, pivots, info


@composed("aten::matrix_H")
def matrix_h(self: Tensor) -> Tensor:
    return self.H


@composed("aten::chalf")
def chalf(self: Tensor, *, memory_format: int | None = None) -> Tensor:
    return self.to(_C.complex32)


@composed("prim::abs")
def absolute(self: Tensor) -> Tensor:
    return self.abs()


# Of archives of PyTorch 1.0 ----------------------------------------------------------------------


def _cast(name: str, dtype: _C.dtype) -> None:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        return self.to(dtype)

    cast.__qualname__ = cast.__name__ = name
    composed(f"aten::{name}")(cast)


_cast("_cast_Byte", _C.uint8)
_cast("_cast_Char", _C.int8)
_cast("_cast_Double", _C.float64)
_cast("_cast_Float", _C.float32)
_cast("_cast_Half", _C.float16)
_cast("_cast_Int", _C.int32)
_cast("_cast_Long", _C.int64)
_cast("_cast_Short", _C.int16)


@composed("aten::_unique")
def _unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    found, places = weft.unique(self, sorted, True)
    return found, places if return_inverse else places.new_empty([0])


# Of a number and a tensor, where weft's operators take two tensors -------------------------------


def _zero_dimensional(number: Any, other: Tensor) -> Tensor:
    return _C.full([], number, dtype=result_type(number, other))


def _number_first(name: str, function: Any) -> Callable[..., Any]:
    def call(self: Any, other: Tensor) -> Tensor:
        return function(_zero_dimensional(self, other), other)

    call.__qualname__ = call.__name__ = name
    return call


NUMBER_FIRST = {
    f"aten::{name}": _number_first(name, function)
    for name, function in {
        "remainder": _C.remainder,
        "bitwise_and": _C.bitwise_and,
        "bitwise_or": _C.bitwise_or,
        "bitwise_xor": _C.bitwise_xor,
        "special_xlog1py": special.xlog1py,
        "special_zeta": special.zeta,
    }.items()
}


@composed("aten::special_xlog1py")
def special_xlog1py_of_number(self: Tensor, other: Any) -> Tensor:
    return special.xlog1py(self, _zero_dimensional(other, self))


@composed("aten::special_zeta")
def special_zeta_of_number(self: Tensor, other: Any) -> Tensor:
    return special.zeta(self, _zero_dimensional(other, self))


# Parts that may be written to: each has a history of its own --------------------------------------


@composed("aten::unsafe_chunk")
def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in self.chunk(chunks, dim)]


@composed("aten::unsafe_split")
def unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in self.split(split_size, dim)]


@composed("aten::unsafe_split_with_sizes")
def unsafe_split_with_sizes(self: Tensor, split_sizes: list[int], dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in self.split(split_sizes, dim)]


# In place -----------------------------------------------------------------------------------------


@composed("aten::mish_")
def mish_(self: Tensor) -> Tensor:
    return self.copy_(F.mish(self.clone()))


# Casts that PyTorch writes where it freezes a block of autocast -----------------------------------


@composed("aten::_autocast_to_reduced_precision")
def autocast_to_reduced_precision(
    self: Tensor, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: int, cpu_dtype: int
) -> Tensor:
    return self.to(dtype_of(cpu_dtype)) if cpu_enabled and self.dtype == _C.float32 else self


@composed("aten::_autocast_to_full_precision")
def autocast_to_full_precision(self: Tensor, cuda_enabled: bool, cpu_enabled: bool) -> Tensor:
    is_narrow = self.dtype == _C.float16 or self.dtype == _C.bfloat16
    return self.float() if cpu_enabled and is_narrow else self


# What a program asks ------------------------------------------------------------------------------


@composed("aten::is_autocast_enabled")
def is_autocast_enabled() -> bool:
    return amp.is_autocast_enabled("cuda")
