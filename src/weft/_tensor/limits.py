"""finfo and iinfo: what numbers a dtype can hold."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import dtype as DType

# bits, eps, largest, smallest normal, smallest, resolution
_FLOATS = {
    "float8_e4m3fn": (8, 2.0**-3, 448.0, 2.0**-6, 2.0**-9, 1.0),
    "float8_e5m2": (8, 2.0**-2, 57344.0, 2.0**-14, 2.0**-16, 1.0),
    "float8_e4m3fnuz": (8, 2.0**-3, 240.0, 2.0**-7, 2.0**-10, 1.0),
    "float8_e5m2fnuz": (8, 2.0**-3, 57344.0, 2.0**-15, 2.0**-17, 1.0),  # PyTorch's eps, not 2**-2
    "float16": (16, 2.0**-10, 65504.0, 2.0**-14, 2.0**-24, 1e-3),
    "bfloat16": (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 2.0**-133, 1e-2),
    "float32": (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 2.0**-149, 1e-6),
    "float64": (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 5e-324, 1e-15),
}


# What Python's types of numbers stand for, as where a dtype is given.
_DTYPES: dict[Any, DType] = {
    float: _C.float64,
    complex: _C.complex128,
    int: _C.int64,
    bool: _C.bool,
}


def _dtype(given: Any) -> DType:
    return _DTYPES.get(given, given)


def _name(dtype: DType) -> str:
    return str(dtype).removeprefix("torch.")


class _Info:
    """Equal where everything that is told is; not hashable, as in PyTorch."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class finfo(_Info):
    """Limits of a floating dtype (of its parts, for a complex one); default: the default dtype.

    Raises TypeError for other dtypes.
    """

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str

    def __init__(self, dtype: DType | type | None = None) -> None:
        given = _C.get_default_dtype() if dtype is None else dtype
        real = _dtype(given).to_real()
        name = _name(real)
        if name not in _FLOATS:
            raise TypeError(f"finfo: expected a floating or complex dtype, got {dtype}")
        self.bits, self.eps, self.max, self.tiny, _, self.resolution = _FLOATS[name]
        self.min = -self.max
        self.smallest_normal = self.tiny
        self.dtype = name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Info):
    """Limits of an integer dtype. Raises TypeError for other dtypes."""

    bits: int
    max: int
    min: int
    dtype: str

    def __init__(self, dtype: DType | type) -> None:
        dtype = _dtype(dtype)
        if dtype.is_floating_point or dtype.is_complex or dtype is _C.bool:
            raise TypeError(f"iinfo: expected an integer dtype, got {dtype}")
        self.bits = dtype.itemsize * 8
        self.max = (1 << (self.bits - (1 if dtype.is_signed else 0))) - 1
        self.min = -(1 << (self.bits - 1)) if dtype.is_signed else 0
        self.dtype = _name(dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
