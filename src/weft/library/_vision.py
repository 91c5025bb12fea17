"""torchvision's operators on boxes and regions (`torch.ops.torchvision`), those of archives. Their
gradients follow from those of weft's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from weft.jit.archive import vision
from weft.jit.archive.functions import COMPOSED
from weft.library._infer import infer_schema
from weft.library._operator import OPERATORS, define, define_composed


def _refusing(qualname: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any) -> NoReturn:
        raise NotImplementedError(f"{qualname}: expected an operator that weft has")

    return refuse


for _qualname, _functions in COMPOSED.items():
    _space, _, _name = _qualname.partition("::")
    if _space == "torchvision" and _qualname not in OPERATORS:
        _text = infer_schema(_functions[0], mutates_args=(), op_name=_name)
        define_composed(_qualname, _text, _functions[0])
for _text in vision.REFUSED:
    _operator = define(f"torchvision::{_text.partition('(')[0]}", _text)
    _operator.kernels["every"] = _refusing(_operator.qualname)
