"""Weight normalisation: a parameter as a length and a direction."""

from __future__ import annotations

from typing import Any, TypeVar

from weft._C import Tensor
from weft._functions.norms import _weight_norm, norm_except_dim
from weft.autograd.grad_mode import no_grad
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter, is_lazy
from weft.nn.utils.spectral_norm import hook_of

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

T = TypeVar("T", bound=Module)


class WeightNorm:
    """The hook before forward that computes a weight from its length and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight: g in the direction of v."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return _weight_norm(v, g, self.dim)

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
    if hook_of(module, WeightNorm, name) is not None:
        raise RuntimeError(f"weight_norm: expected {name!r} not to be normalised yet, got it twice")
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(f"weight_norm: expected an initialized parameter, got {weight}")
    hook = WeightNorm(name, dim)
    delattr(module, name)
    length = norm_except_dim(weight.detach(), 2, hook.dim)
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
    key = hook_of(module, WeightNorm, name)
    if key is None:
        raise ValueError(f"remove_weight_norm: expected {name!r} to be normalised, got {module}")
    with no_grad():
        weight = module._forward_pre_hooks[key].compute_weight(module)
    for part in (name, name + "_g", name + "_v"):
        delattr(module, part)
    setattr(module, name, Parameter(weight))
    del module._forward_pre_hooks[key]
    return module
