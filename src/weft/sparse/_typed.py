"""Constructors by type: weft.sparse.FloatTensor(indices, values, size)."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.sparse._construct import sparse_coo_tensor
from weft.sparse._tensor import SparseTensor, is_sparse


class _Typed(type):
    """isinstance(x, weft.sparse.FloatTensor) asks for layout and dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return is_sparse(instance) and bool(instance.is_sparse) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> SparseTensor:
        """sparse_coo_tensor of this dtype from (indices, values[, size]), or without values from
        sizes."""
        sizes = all(isinstance(n, int) for n in args)
        if sizes or isinstance(args[0], _C.Size):
            size = args if sizes else args[0]
            return sparse_coo_tensor(size or (0,), dtype=cls.dtype, device=device)
        if len(args) > 1 and isinstance(args[1], Tensor) and args[1].dtype != cls.dtype:
            raise TypeError(f"{cls.__name__}: expected values of {cls.dtype}, got {args[1].dtype}")
        return sparse_coo_tensor(*args, dtype=cls.dtype, device=device)


def _typed(name: str, dtype: Any) -> Any:
    members = {"dtype": dtype, "__doc__": f"Makes sparse tensors of {dtype}."}
    return _Typed(name, (), {**members, "__module__": "weft.sparse"})


FloatTensor = _typed("FloatTensor", _C.float32)
DoubleTensor = _typed("DoubleTensor", _C.float64)
HalfTensor = _typed("HalfTensor", _C.float16)
BFloat16Tensor = _typed("BFloat16Tensor", _C.bfloat16)
ByteTensor = _typed("ByteTensor", _C.uint8)
CharTensor = _typed("CharTensor", _C.int8)
ShortTensor = _typed("ShortTensor", _C.int16)
IntTensor = _typed("IntTensor", _C.int32)
LongTensor = _typed("LongTensor", _C.int64)
