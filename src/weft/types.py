"""Names of types for annotations, and the unions that arguments may have."""

import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from weft import _C
from weft._C import Size, Tensor
from weft._runtime.symbolic import SymBool, SymFloat, SymInt
from weft.storage import TypedStorage, UntypedStorage

_bytes, _int, _float, _bool, _str, _complex = bytes, int, float, bool, str, complex
_dtype, _device, _layout = _C.dtype, _C.device, _C.layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]

Device: TypeAlias = _C.device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Number: TypeAlias = int | float | bool
Storage: TypeAlias = TypedStorage | UntypedStorage
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
_symsize: TypeAlias = Size | Sequence[int | SymInt]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]

__all__ = [
    "BoolLikeType",
    "Device",
    "FileLike",
    "FloatLikeType",
    "IntLikeType",
    "Number",
    "PySymType",
    "Storage",
    "py_sym_types",
]
