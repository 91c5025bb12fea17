"""Weight normalisation: a parameter as a length and a direction."""

from __future__ import annotations

from typing import Any, TypeVar

import weft
from weft import Tensor
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter

T = TypeVar("T", bound=Module)


class WeightNorm:
    """The hook before forward that computes a weight from its length and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def lengths(self, v: Tensor) -> Tensor:
        """The length of each slice along dim, of all of v for None, in a shape that broadcasts."""
        if self.dim is None:
            return v.norm()
        others = [dim for dim in range(v.dim()) if dim != self.dim % v.dim()]
        return weft.linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()

    def compute_weight(self, module: Module) -> Tensor:
        """The weight: g in the direction of v."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / self.lengths(v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """Replaces a parameter by its length `name_g` and its direction `name_v`, and gives the module.

    dim: each slice along it has its own length; None: one length for all. RuntimeError for a
    parameter that is normalised already.

    >>> layer = weft.nn.utils.weight_norm(weft.nn.Linear(2, 3))
    >>> [(name, tuple(p.shape)) for name, p in layer.named_parameters()]
    [('bias', (3,)), ('weight_g', (3, 1)), ('weight_v', (3, 2))]
    """
    if _hook(module, name) is not None:
        raise RuntimeError(f"weight_norm: expected {name!r} not to be normalised yet, got it twice")
    weight = getattr(module, name)
    hook = WeightNorm(name, None if dim == -1 else dim)
    delattr(module, name)
    with weft.no_grad():
        length = hook.lengths(weight)
    module.register_parameter(name + "_g", Parameter(length))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: T, name: str = "weight") -> T:
    """Makes a normalised parameter a plain one again, with its value, and gives the module.

    ValueError for a parameter that is not normalised.

    >>> layer = weft.nn.utils.weight_norm(weft.nn.Linear(2, 3))
    >>> [name for name, _ in weft.nn.utils.remove_weight_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    key = _hook(module, name)
    if key is None:
        raise ValueError(f"remove_weight_norm: expected {name!r} to be normalised, got {module}")
    with weft.no_grad():
        weight = module._forward_pre_hooks[key].compute_weight(module)
    for part in (name, name + "_g", name + "_v"):
        delattr(module, part)
    setattr(module, name, Parameter(weight))
    del module._forward_pre_hooks[key]
    return module


def _hook(module: Module, name: str) -> Any:
    """The key of the hook that computes a parameter, None without one."""
    hooks = module._forward_pre_hooks.items()
    found = (key for key, hook in hooks if isinstance(hook, WeightNorm) and hook.name == name)
    return next(found, None)
