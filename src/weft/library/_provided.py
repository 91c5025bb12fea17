"""Operators of libraries in PyTorch's C++ interface, which weft has in their place."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from weft.jit.archive import vision
from weft.jit.archive.functions import COMPOSED
from weft.library._infer import infer_schema
from weft.library._operator import OPERATORS, define, define_composed


def provide(place: str) -> bool:
    """Makes the operators of a library of torchvision, by its path; False for other libraries."""
    path = Path(place)
    operators = _LIBRARIES.get((path.parent.name, path.name.partition(".")[0]))
    if operators is not None:
        operators()
    return operators is not None


def _vision() -> None:
    """Operators on boxes and regions. Their gradients follow from those of weft's operators."""
    for qualname, functions in COMPOSED.items():
        space, _, name = qualname.partition("::")
        if space == "torchvision" and qualname not in OPERATORS:
            text = infer_schema(functions[0], mutates_args=(), op_name=name)
            define_composed(qualname, text, functions[0])
    for name in vision.REFUSED:
        if f"torchvision::{name}" not in OPERATORS:
            operator = define(f"torchvision::{name}", f"{name}(Tensor input) -> Tensor")
            operator.kernels["every"] = _refusing(operator.qualname)


def _refusing(qualname: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any) -> NoReturn:
        raise NotImplementedError(f"{qualname}: expected an operator that weft has")

    return refuse


def _images() -> None:
    """Images in files, through Pillow. OSError without it, as for a library that is not there."""
    try:
        importlib.import_module("weft.library._images")
    except ImportError as error:
        text = "ops.load_library: expected Pillow for the operators of torchvision's image.so"
        raise OSError(text) from error


_LIBRARIES: dict[tuple[str, str], Callable[[], None]] = {
    ("torchvision", "_C"): _vision,
    ("torchvision", "image"): _images,
}
