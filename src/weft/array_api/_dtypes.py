"""Dtypes of the standard: kinds, promotion, limits."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft._C import Tensor
from weft._runtime.public import weft
from weft._tensor import limits

KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (weft.bool,),
    "signed integer": (weft.int8, weft.int16, weft.int32, weft.int64),
    "unsigned integer": (weft.uint8, weft.uint16, weft.uint32, weft.uint64),
    "real floating": (weft.float32, weft.float64),
    "complex floating": (weft.complex64, weft.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
SCALARS = (bool, int, float, complex)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a name such as "integral", or a tuple of those.

    >>> weft.array_api.isdtype(weft.uint8, ("bool", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return bool(dtype == kind)
    if kind not in KINDS:
        raise ValueError(f"isdtype: expected a kind among {', '.join(KINDS)}, got {kind!r}")
    return dtype in KINDS[kind]


def promoted(one: Any, other: Any) -> Any:
    """The dtype of an operation on two dtypes. TypeError where the standard has none."""
    try:
        return weft.promote_types(one, other)
    except RuntimeError:
        raise TypeError(
            f"result_type: expected dtypes with a common one, got {one} and {other}"
        ) from None


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of an operation on arrays, dtypes and Python numbers; the last take the dtype of
    the others where that is of their kind. Dimensions take no part.

    >>> weft.array_api.result_type(weft.tensor(1.0, dtype=weft.float64), weft.ones(2), 3)
    torch.float64
    """
    numbers = [each for each in arrays_and_dtypes if isinstance(each, SCALARS)]
    dtypes = [
        each.dtype if isinstance(each, Tensor) else each
        for each in arrays_and_dtypes
        if not isinstance(each, SCALARS)
    ]
    if not dtypes:
        raise ValueError("result_type: expected an array or a dtype, got numbers only")
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = promoted(found, dtype)
    for number in numbers:
        found = _with_number(found, number)
    return found


def _with_number(dtype: Any, number: Any) -> Any:
    if isinstance(number, bool):
        return dtype
    if isinstance(number, int):
        return weft.int64 if dtype == weft.bool else dtype
    exact = dtype.is_complex or (dtype.is_floating_point and isinstance(number, float))
    if exact:
        return dtype
    default = weft.get_default_dtype()
    if isinstance(number, float):
        return default
    wide = dtype == weft.float64 or (not dtype.is_floating_point and default == weft.float64)
    return weft.complex128 if wide else weft.complex64


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion takes an array or dtype to the dtype."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return bool(promoted(dtype, to) == to)
    except (TypeError, RuntimeError):
        return False


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The array in another dtype; with copy=False the array itself if it has it.

    TypeError for a real dtype of complex elements."""
    if x.dtype.is_complex and not dtype.is_complex:
        raise TypeError(f"astype: expected a complex dtype for {x.dtype} elements, got {dtype}")
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


class FloatLimits(NamedTuple):
    """finfo: the limits of a dtype of floats, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerLimits(NamedTuple):
    """iinfo: the limits of a dtype of integers."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a dtype of floats, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    real = {weft.complex64: weft.float32, weft.complex128: weft.float64}.get(dtype, dtype)
    info = limits.finfo(real)
    return FloatLimits(info.bits, info.eps, info.max, info.min, info.smallest_normal, real)


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of a dtype of integers, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    info = limits.iinfo(dtype)
    return IntegerLimits(info.bits, info.max, info.min, dtype)


def same_dtype(*operands: Any) -> list[Tensor]:
    """Arrays and Python numbers as arrays of the dtype of an operation on them."""
    dtype = result_type(*operands)
    return [
        each.to(dtype) if isinstance(each, Tensor) else weft.tensor(each, dtype=dtype)
        for each in operands
    ]


__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
