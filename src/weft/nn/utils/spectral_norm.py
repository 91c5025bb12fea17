"""Spectral normalisation by a hook: a parameter divided by its largest singular value."""

from __future__ import annotations

from typing import Any, TypeVar

from weft import _C, linalg
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.nn import functional as F
from weft.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter, is_lazy

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]

M = TypeVar("M", bound=Module)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A tensor as the matrix whose rows are its slices along `dim`.

    >>> as_matrix(weft.ones(2, 3, 4), 1).shape
    torch.Size([3, 8])
    """
    return weight.movedim(dim, 0).flatten(1)


def hook_of(module: Module, kind: Any, name: str) -> Any:
    """The key of the hook before forward of a class for a parameter, None without one."""
    hooks = module._forward_pre_hooks.items()
    return next((k for k, hook in hooks if isinstance(hook, kind) and hook.name == name), None)


def default_dim(module: Module, dim: int | None) -> int:
    """The dimension of a layer's outputs in its weight, where the caller names none."""
    if dim is not None:
        return dim
    return int(isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d))


class SpectralNorm:
    """The hook before forward that computes a weight of spectral norm 1."""

    _version = 1  # since 1, a state_dict has v

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: expected n_power_iterations above 0, got {n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix of a row for each output."""
        return as_matrix(weight, self.dim)

    def _unit(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=0, eps=self.eps)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by u . W v, after steps of the power method on u and v, in place."""
        weight, u, v = (getattr(module, self.name + part) for part in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(self._unit(_C.mv(matrix.t(), u)))
                    u.copy_(self._unit(_C.mv(matrix, v)))
            # Copies: a later call changes u and v, which backward of this one needs.
            u, v = u.clone(), v.clone()
        return weight / _C.dot(u, _C.mv(matrix, v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def attach(self, module: Module) -> None:
        """Replaces the parameter by `_orig`, `_u` and `_v`, and registers the hooks."""
        weight = module._parameters[self.name]
        if weight is None or is_lazy(weight):
            got = "None" if weight is None else "one that is not initialized"
            raise ValueError(f"spectral_norm: expected a parameter {self.name!r}, got {got}")
        with no_grad():
            sizes = self.reshape_weight_to_matrix(weight).shape
            u, v = (self._unit(weight.new_empty(size).normal_(0, 1)) for size in sizes)
        delattr(module, self.name)
        module.register_parameter(self.name + "_orig", weight)
        setattr(module, self.name, weight.detach())
        module.register_buffer(self.name + "_u", u)
        module.register_buffer(self.name + "_v", v)
        module.register_forward_pre_hook(self)
        module._register_state_dict_hook(SpectralNormStateDictHook(self))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(self))

    def remove(self, module: Module) -> None:
        """Makes the weight, as it is, a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for part in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def solve_v(self, state_dict: Any, key: str) -> Tensor:
        """The v of a state_dict that has the weight instead: such that u . W v is the old norm."""
        original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
        sigma = (original / state_dict.pop(key)).mean()
        matrix = self.reshape_weight_to_matrix(original)
        v = linalg.pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
        return v * (sigma / _C.dot(u, _C.mv(matrix, v)))


class SpectralNormStateDictHook:
    """Writes the version of the format into a state_dict's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[f"{self.fn.name}.version"] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Brings a state_dict of the format before version 1 to the present one."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        *_: Any,
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        key = prefix + self.fn.name
        present = all(key + part in state_dict for part in ("_orig", "_u", "_v"))
        if version is not None or (present and key not in state_dict):
            return
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            state_dict[key + "_v"] = self.fn.solve_v(state_dict, key)


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divides a parameter by its largest singular value before each forward; gives the module.

    The parameter becomes `name_orig`, beside the buffers `name_u` and `name_v`. It counts as a
    matrix whose rows are its slices along `dim` (None: 0, for transposed convolutions 1). Each
    call in training mode improves the estimate by n_power_iterations.

    RuntimeError for a parameter that is normalised already, ValueError for no iterations.

    >>> layer = weft.nn.utils.spectral_norm(weft.nn.Linear(3, 3))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_orig']
    """
    if hook_of(module, SpectralNorm, name) is not None:
        raise RuntimeError(f"spectral_norm: expected {name!r} not to be normalised, got it twice")
    SpectralNorm(name, n_power_iterations, default_dim(module, dim), eps).attach(module)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes a normalised parameter a plain one again, with its value, and gives the module.

    ValueError for a parameter that is not normalised.

    >>> layer = weft.nn.utils.spectral_norm(weft.nn.Linear(2, 3))
    >>> [name for name, _ in weft.nn.utils.remove_spectral_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    key = hook_of(module, SpectralNorm, name)
    if key is None:
        raise ValueError(
            f"remove_spectral_norm: expected a normalised parameter of {type(module).__name__}, "
            f"got {name!r}"
        )
    module._forward_pre_hooks.pop(key).remove(module)
    kinds = (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    )
    for hooks, kind in kinds:
        found = [k for k, hook in hooks.items() if isinstance(hook, kind) and hook.fn.name == name]
        for each in found:
            del hooks[each]
    return module
