"""The hook that prunes a parameter, and several of them in one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn.modules.module import Module


class BasePruningMethod(ABC):
    """The hook before forward that multiplies a parameter by its mask.

    A subclass says by compute_mask which elements stay, and by PRUNING_TYPE which ones it is asked
    about after another method: "unstructured" (those that are left), "structured" (the slices
    along its `dim` in which some are left) or "global" (all).

    >>> class Below(weft.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def __init__(self, bound):
    ...         self.bound = bound
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t.abs() >= self.bound)
    >>> Below(2).prune(weft.tensor([1.0, 3.0]))
    tensor([0., 3.])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of 0 and 1 for importance scores `t`; `default_mask`: that before."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with zeros where the mask has them."""
        mask, original = (getattr(module, self._tensor_name + p) for p in ("_mask", "_orig"))
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Prunes a parameter of `module` and registers the hook, which it returns.

        The parameter becomes `name_orig`, beside the buffer `name_mask`. One that is pruned already
        is pruned further, by a PruningContainer of the methods.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        key = key_of(module, name)
        first = key is None
        if not first:
            before = module._forward_pre_hooks[key]
            chain = before if isinstance(before, PruningContainer) else (before,)
            method = PruningContainer(*chain, method)
        original = getattr(module, name)
        scores = _scores(importance_scores, original)
        if first:
            mask = _C.ones_like(original)
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        mask = method.compute_mask(scores, default_mask=mask)
        module._forward_pre_hooks.pop(key, None)
        if first:
            parameter = module._parameters[name]
            delattr(module, name)
            module.register_parameter(name + "_orig", parameter)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor with zeros where this method puts them; nothing is registered."""
        scores = _scores(importance_scores, t)
        mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Makes the parameter, with its zeros, a plain one again."""
        name = self._tensor_name
        weight, original = self.apply_mask(module), module._parameters[name + "_orig"]
        original.data = weight.detach()
        for part in ("", "_orig", "_mask"):
            if hasattr(module, name + part):
                delattr(module, name + part)
        setattr(module, name, original)


def _scores(given: Tensor | None, pruned: Tensor) -> Tensor:
    if given is None:
        return pruned
    if given.shape != pruned.shape:
        raise AssertionError(
            f"prune: expected importance_scores of shape {tuple(pruned.shape)}, got "
            f"{tuple(given.shape)}"
        )
    return given


def key_of(module: Module, name: str) -> Any:
    """The key of the hook that prunes a parameter, None without one."""
    found = [key for key, hook in hooks_of(module) if hook._tensor_name == name]
    if len(found) > 1:
        raise AssertionError(
            f"prune: expected one pruning hook of {name!r}, got {len(found)}; a PruningContainer "
            "combines methods"
        )
    return found[0] if found else None


def hooks_of(module: Module) -> list[tuple[Any, BasePruningMethod]]:
    """The hooks that prune parameters of the module, and their keys."""
    hooks = module._forward_pre_hooks.items()
    return [(key, hook) for key, hook in hooks if isinstance(hook, BasePruningMethod)]


class PruningContainer(BasePruningMethod):
    """Methods that prune one parameter one after the other.

    TypeError for what is no method, ValueError for one of another parameter.

    >>> layer = weft.nn.Linear(4, 1)
    >>> for _ in range(2):
    ...     layer = weft.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
    >>> (hook,) = layer._forward_pre_hooks.values()
    >>> len(hook), int(layer.weight_mask.sum())
    (2, 2)
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a method, which is asked after those that are there."""
        if not isinstance(method, BasePruningMethod):
            got = type(method).__name__
            raise TypeError(f"PruningContainer: expected a BasePruningMethod, got {got}")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"PruningContainer: expected a method of {self._tensor_name!r}, got one of "
                f"{method._tensor_name!r}"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method within what the mask before has left."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        if mask is default_mask:
            mask = mask.clone()
        inner = method.compute_mask(t[left], default_mask=default_mask[left])
        mask[left] = inner.to(dtype=mask.dtype)
        return mask


def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
    """The index of those elements that a method is asked about."""
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return (slice(None),) * t.dim()
    if kind != "structured":
        raise ValueError(
            "prune: expected PRUNING_TYPE 'unstructured', 'structured' or 'global', got "
            f"{kind!r} of {type(method).__name__}"
        )
    if not hasattr(method, "dim"):
        raise AttributeError(
            f"prune: expected an attribute dim of the structured {type(method).__name__}, got none"
        )
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"prune: expected a dim of {t.dim()} dimensions, got {method.dim}")
    kept = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return (*(slice(None) for _ in range(dim)), kept)
