"""NumPy's arrays, scalars and dtypes in pickles, read without NumPy's own unpickling.

They are allowed with `weights_only=False`, as in PyTorch. A dtype is one of numbers, text or
objects; an array gets its state only when it has the bytes or objects that its shape asks for.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from weft.serialization.errors import LoadError
from weft.serialization.unpickle import Callee, Inert

_CODE = re.compile(r"[?bBhHiIlLqQefdFDgG]|b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU]\d{1,9}|O8?")


class ArrayType(Inert):
    """The class of arrays, as an argument of `_reconstruct`."""

    __slots__ = ()


def _empty_array(kind: Any, shape: Any, code: Any) -> Any:
    """An array that BUILD gives its elements."""
    if type(kind) is not ArrayType or shape != (0,):
        raise LoadError("load: expected an array of NumPy to be made empty, got something else")
    return np.empty(0, np.int8)


def _dtype(code: Any, align: Any = False, copy: Any = False) -> Any:
    if type(code) is not str or not _CODE.fullmatch(code):
        raise LoadError("load: expected a NumPy dtype of numbers, text or objects, got another")
    return np.dtype(code)


def _scalar(dtype: Any, data: Any) -> Any:
    """A number of NumPy from its bytes."""
    whole = isinstance(dtype, np.dtype) and type(data) is bytes and len(data) == dtype.itemsize
    if not whole or not data or dtype.hasobject:
        raise LoadError("load: expected the dtype and bytes of a NumPy scalar, got something else")
    return np.frombuffer(data, dtype)[0]


def set_state(target: Any, state: Any) -> Any:
    """BUILD of an array, which is changed, or of a dtype: one of the byte order that it names."""
    if type(state) is not tuple:
        raise LoadError("load: expected the state of a NumPy value as a tuple")
    if isinstance(target, np.dtype):
        return _ordered(target, state)
    if len(state) != 5:
        raise LoadError("load: expected the state of a NumPy array, got something else")
    version, shape, dtype, is_fortran, data = state
    plain = type(target) is np.ndarray and isinstance(dtype, np.dtype) and type(shape) is tuple
    sizes = plain and all(type(size) is int and size >= 0 for size in shape) and len(shape) <= 32
    holder, size = (list, 1) if plain and dtype.hasobject else (bytes, plain and dtype.itemsize)
    if not sizes or version != 1 or type(is_fortran) is not bool or type(data) is not holder:
        raise LoadError("load: expected the state of a NumPy array, got something else")
    if math.prod(shape) * size != len(data):
        raise LoadError(f"load: expected the bytes of a NumPy array of {shape}, got {len(data)}")
    target.__setstate__(state)
    return None


def _ordered(dtype: Any, state: tuple[Any, ...]) -> Any:
    order, has_parts = state[1:2], any(part is not None for part in state[2:5])
    if len(state) < 8 or has_parts or order not in (("<",), (">",), ("|",), ("=",)):
        raise LoadError("load: expected a NumPy dtype of numbers, text or objects, got another")
    return dtype.newbyteorder(order[0]) if order[0] == ">" else None


_NAMES: dict[str, Any] = {
    "numpy.ndarray": ArrayType(),
    "numpy.dtype": Callee("numpy.dtype", _dtype),
}
for _core in ("numpy._core.multiarray", "numpy.core.multiarray"):  # of NumPy 2, of NumPy 1
    _NAMES[f"{_core}._reconstruct"] = Callee(f"{_core}._reconstruct", _empty_array)
    _NAMES[f"{_core}.scalar"] = Callee(f"{_core}.scalar", _scalar)


def find(module: str, name: str) -> Any:
    """What a global of NumPy stands for, or None."""
    return _NAMES.get(f"{module}.{name}")
