"""Operators by name: `weft.ops.aten.add.Tensor`, and those that programs define.

>>> weft.ops.aten.relu(weft.tensor([-1.0, 2.0]))
tensor([0., 2.])
>>> str(weft.ops.aten.add.Scalar._schema)
'aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor'
"""

from __future__ import annotations

from typing import Any, NoReturn

from weft.library._overloads import Namespace, namespace

#: the libraries that load_library loaded: none, for it refuses
loaded_libraries: set[str] = set()


def load_library(path: Any) -> NoReturn:
    """Refuses libraries of operators: they are compiled for PyTorch's C++ interface. OSError."""
    raise OSError(
        f"ops.load_library: expected operators written in Python, got the library {path!s}; weft "
        "has not PyTorch's C++ interface, weft.library.custom_op defines operators"
    )


def __getattr__(name: str) -> Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return namespace(name)
