"""What PyTorch calls functions and types, in generated code and printed graphs."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

from weft import _C, overrides
from weft._runtime.public import weft

# What PyTorch's functions are called inside of it, where programs do not import them from.
_INNER_NAMES = {
    "torch.linalg.": "torch._C._linalg.linalg_",
    "torch.fft.": "torch._C._fft.fft_",
    "torch.special.": "torch._C._special.special_",
}


class _Inner(ModuleType):
    """Stands where PyTorch has the operators of a module: torch._C._linalg.linalg_norm."""

    def __getattr__(self, name: str) -> Any:
        public, prefix = f"weft.{self.__name__}", f"{self.__name__}_"
        if not name.startswith(prefix):
            raise AttributeError(f"{public}: expected a name that begins with {prefix}, got {name}")
        return getattr(getattr(weft, self.__name__), name.removeprefix(prefix))


for _name in ("linalg", "fft", "special"):
    setattr(_C, f"_{_name}", _Inner(_name))

_OF_NN = frozenset(
    ("avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "one_hot")
    + ("scaled_dot_product_attention", "softplus", "softshrink")
)
for _name in _OF_NN:
    if hasattr(weft.nn.functional, _name):
        setattr(_C._nn, _name, getattr(weft.nn.functional, _name))


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """PyTorch's dotted name of a function: torch.relu, operator.add, math.sqrt."""
    if getattr(builtins, getattr(func, "__name__", ""), None) is func:
        return func.__name__
    known = overrides.resolve_name(func)
    if known is not None:
        return _inner_name(known)
    module = _public_module(getattr(func, "__module__", None) or "builtins")
    name = getattr(func, "__qualname__" if isinstance(func, type) else "__name__", None)
    if name is None:
        return f"{module}.{type(func).__qualname__}"
    if module.startswith("torch._") and getattr(weft, name, None) is func:
        return f"torch.{name}"
    return f"{module}.{name}"


def _inner_name(known: str) -> str:
    for public, inner in _INNER_NAMES.items():
        if known.startswith(public):
            return known.replace(public, inner)
    module, _, name = known.rpartition(".")
    if module in ("torch", "torch.nn.functional") and name in _OF_NN:
        return f"torch._C._nn.{name}"
    return known


def _public_module(name: str) -> str:
    if name == "_operator":
        return "operator"
    if name == "weft" or name.startswith("weft."):
        return "torch" + name.removeprefix("weft")
    return name


def _type_repr(obj: Any) -> str:
    """A type as generated code and printed graphs show it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        module = _public_module(obj.__module__)
        return obj.__qualname__ if module == "builtins" else f"{module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace("weft.", "torch.")
