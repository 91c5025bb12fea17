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
    """Loads a library in C, or in a language that calls C, which registers operators through
    `weft.h`, or by TORCH_LIBRARY of weft's headers, while it is loaded: then they are
    `weft.ops.my.op`, and programs call them.

    Of the libraries of torchvision nothing is loaded: weft has their operators itself.

    OSError for a file that is no library, and for one that registers none: libraries that were
    built against PyTorch's own headers are such.
    """
    known = dict(_C._host_operators())
    place = os.fspath(path)
    if _provided.provide(place):
        loaded_libraries.add(place)
        return
    ctypes.CDLL(str(Path(place).resolve()) if os.path.exists(place) else place)
    made = {k: v for k, v in _C._host_operators() if k not in known}
    if not made and place not in loaded_libraries:
        raise OSError(
            "ops.load_library: expected a library that registers operators by "
            f"weft_register_operator or TORCH_LIBRARY, got {place}, which registers none; build it "
            "against weft's headers (python -m weft --libtorch-flags)"
        )
    define_host_operators(made)
    loaded_libraries.add(place)


def __getattr__(name: str) -> Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return namespace(name)
