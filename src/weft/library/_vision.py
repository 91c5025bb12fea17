"""torchvision's operators on boxes and regions (`torch.ops.torchvision`), those of archives. Their
gradients follow from those of weft's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from weft.jit.archive import vision
from weft.jit.archive.functions import COMPOSED
from weft.library._operator import define
from weft.library._overloads import namespace


def _refusing(qualname: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any) -> NoReturn:
        raise NotImplementedError(f"{qualname}: expected an operator that weft has")

    return refuse


for _qualname in COMPOSED:
    _space, _, _name = _qualname.partition("::")
    if _space == "torchvision":
        getattr(namespace(_space), _name)  # which defines it
for _text in vision.REFUSED:
    _operator = define(f"torchvision::{_text.partition('(')[0]}", _text)
    _operator.kernels["every"] = _refusing(_operator.qualname)
