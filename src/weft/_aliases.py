"""Second names of operators, as PyTorch has them: clip is clamp, arccos is acos, ..."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor

# second name: first name; functions, methods and in-place methods alike
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
    "fix": "trunc", "ger": "outer", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "subtract": "sub", "true_divide": "div", "unsafe_chunk": "chunk", "unsafe_split": "split",
}  # fmt: skip


def install(module: dict[str, Any]) -> None:
    """Gives functions of `module` and methods of Tensor their second names."""
    for alias, name in ALIASES.items():
        for suffix in ("", "_"):
            function = _C._functions.get(name + suffix)
            if function is not None:
                module.setdefault(alias + suffix, function)
            method = getattr(Tensor, name + suffix, None)
            if method is not None and not hasattr(Tensor, alias + suffix):
                setattr(Tensor, alias + suffix, method)
