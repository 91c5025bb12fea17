"""Operators by name: `weft.ops.aten.add.Tensor`, and those that programs define.

>>> weft.ops.aten.relu(weft.tensor([-1.0, 2.0]))
tensor([0., 2.])
>>> str(weft.ops.aten.add.Scalar._schema)
'aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor'
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from weft import _C
from weft.library import _provided
from weft.library._operator import define_host_operators
from weft.library._overloads import Namespace, namespace

#: the libraries that load_library loaded
loaded_libraries: set[str] = set()


def load_library(path: str | os.PathLike[str]) -> None:
    """Loads a library which registers operators while it is loaded, by `weft.h` or by the
    TORCH_LIBRARY of weft's headers: then they are `weft.ops.my.op`, and programs call them.

    Of the libraries of torchvision nothing is loaded: weft has their operators itself.

    OSError for a file that is no library, and for one whose operators cannot be registered, or that
    registers none: libraries that were compiled against libtorch are such.
    """
    known = dict(_C._host_operators())
    place = os.fspath(path)
    if _provided.provide(place):
        loaded_libraries.add(place)
        return
    _C._take_host_error()
    ctypes.CDLL(str(Path(place).resolve()) if os.path.exists(place) else place)
    made = {k: v for k, v in _C._host_operators() if k not in known}
    define_host_operators(made)
    error = _C._take_host_error()
    if error.startswith("TORCH_LIBRARY"):
        raise OSError(
            "ops.load_library: expected a library whose operators can be registered, got "
            f"{place}: {error}"
        )
    if not made and place not in loaded_libraries:
        raise OSError(
            "ops.load_library: expected a library that registers operators by "
            f"weft_register_operator or TORCH_LIBRARY, got {place}, which registers none; for "
            "PyTorch's C++ interface it is to be compiled against weft's headers"
        )
    loaded_libraries.add(place)


def __getattr__(name: str) -> Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return namespace(name)
