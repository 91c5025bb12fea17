"""Pruning: parameters whose elements a mask sets to zero before each forward."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, TypeVar

from weft import _C
from weft._C import Tensor
from weft._functions.norms import norm
from weft.nn.modules.module import Module
from weft.nn.utils import _pruning
from weft.nn.utils._pruning import BasePruningMethod, PruningContainer
from weft.nn.utils.convert_parameters import parameters_to_vector

M = TypeVar("M", bound=Module)


# Methods ----------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing, and registers a mask of ones.

    >>> Identity().prune(weft.ones(2))
    tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it was."""
        return default_mask


class _ByAmount(BasePruningMethod):
    """A method that prunes a number of elements, or a share of them."""

    amount: Any

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, numbers.Real):
            raise TypeError(
                f"{type(self).__name__}: expected amount as an int or a float, got {amount!r}"
            )
        most = float("inf") if isinstance(amount, numbers.Integral) else 1.0
        if not 0 <= float(amount) <= most:
            raise ValueError(
                f"{type(self).__name__}: expected amount as a float in [0, 1] or an int of at "
                f"least 0, got {amount}"
            )
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `size` to prune."""
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * size)
        if int(self.amount) > size:
            raise ValueError(
                f"{type(self).__name__}: expected amount of at most {size}, got {self.amount}"
            )
        return int(self.amount)


class _Unstructured(_ByAmount):
    """Prunes the elements with the smallest scores."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros at the elements that this method chooses."""
        count = self._count(t.numel())
        mask = default_mask.clone(memory_format=_C.contiguous_format)
        if count:
            mask.view(-1)[self._choose(t, count)] = 0
        return mask

    def _choose(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError


class RandomUnstructured(_Unstructured):
    """Prunes elements at random. amount: how many of them, or (a float) which share.

    >>> int(RandomUnstructured(amount=0.5).prune(weft.ones(10)).sum())
    5
    """

    def _choose(self, t: Tensor, count: int) -> Tensor:
        return _C.topk(_C.rand_like(t).view(-1), k=count)[1]


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest absolute value. amount: as RandomUnstructured.

    >>> L1Unstructured(amount=1).prune(weft.tensor([1.0, -3.0, 2.0]))
    tensor([ 0., -3.,  2.])
    """

    def _choose(self, t: Tensor, count: int) -> Tensor:
        return _C.topk(t.abs().reshape(-1), k=count, largest=False)[1]

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> Any:
        """As BasePruningMethod.apply."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_ByAmount):
    """Prunes whole slices along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros in the slices that this method chooses."""
        name = type(self).__name__
        if t.dim() <= 1:
            raise ValueError(f"{name}: expected at least 2 dimensions, got {tuple(t.shape)}")
        if self.dim >= t.dim():
            raise IndexError(f"{name}: expected dim below {t.dim()}, got {self.dim}")
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        mask = _C.zeros_like(t)
        mask.movedim(self.dim, 0)[self._kept(t, size, count)] = 1
        return mask * default_mask.to(dtype=mask.dtype)

    def _kept(self, t: Tensor, size: int, count: int) -> Tensor:
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes slices along `dim` at random. amount: how many, or (a float) which share.

    >>> int(RandomStructured(amount=1, dim=0).prune(weft.ones(3, 2)).sum())
    4
    """

    def _kept(self, t: Tensor, size: int, count: int) -> Tensor:
        drawn = _C.rand(size)
        return drawn > _C.kthvalue(drawn, k=count)[0]


class LnStructured(_Structured):
    """Prunes the slices along `dim` with the smallest norm of order n. amount: as RandomStructured.

    >>> LnStructured(amount=1, n=1, dim=0).prune(weft.tensor([[1.0, 2.0], [3.0, 0.5]]))
    tensor([[0.0000, 0.0000],
            [3.0000, 0.5000]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, size: int, count: int) -> Tensor:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return _C.topk(norm(t, p=self.n, dim=others), k=size - count)[1]

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> Any:
        """As BasePruningMethod.apply."""
        options = {"amount": amount, "n": n, "dim": dim}
        return super().apply(module, name, importance_scores=importance_scores, **options)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask has zeros.

    >>> CustomFromMask(weft.tensor([1, 0])).prune(weft.ones(2))
    tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of the mask before and the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"CustomFromMask: expected a mask of shape {tuple(default_mask.shape)}, got "
                f"{tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# Functions --------------------------------------------------------------------------------------


def identity(module: M, name: str) -> M:
    """Registers a mask of ones for a parameter, and gives the module.

    >>> sorted(identity(weft.nn.Linear(2, 2), "bias").state_dict())
    ['bias_mask', 'bias_orig', 'weight']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prunes elements of a parameter at random, and gives the module.

    amount: how many of them, or (a float) which share. ValueError for one beyond the elements.

    >>> int(random_unstructured(weft.nn.Linear(2, 5), "weight", 0.3).weight_mask.sum())
    7
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prunes the elements of a parameter with the smallest absolute value, and gives the module.

    importance_scores: of the parameter's shape, counts instead of its elements.

    >>> scores = weft.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> l1_unstructured(weft.nn.Linear(2, 2), "weight", 2, scores).weight_mask
    tensor([[1., 0.],
            [0., 1.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prunes slices of a parameter along `dim` at random, and gives the module.

    >>> int(random_structured(weft.nn.Linear(4, 3), "weight", 2, dim=1).weight_mask.sum())
    6
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> M:
    """Prunes the slices of a parameter along `dim` of the smallest norm of order n; gives the
    module.

    >>> int(ln_structured(weft.nn.Conv2d(2, 4, 3), "weight", 0.5, 2, dim=0).weight_mask.sum())
    36
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes parameters, given as pairs of a module and a name, as if they were one vector.

    pruning_method: an unstructured one, made with `kwargs`. importance_scores: by pair.
    TypeError for other arguments.

    >>> layers = [weft.nn.Linear(2, 2) for _ in range(2)]
    >>> pairs = [(layer, "weight") for layer in layers]
    >>> global_unstructured(pairs, L1Unstructured, amount=3)
    >>> sum(int((layer.weight == 0).sum()) for layer in layers)
    3
    """
    if not isinstance(parameters, Iterable):
        got = type(parameters).__name__
        raise TypeError(f"global_unstructured: expected an iterable of parameters, got {got}")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        got = type(given).__name__
        raise TypeError(f"global_unstructured: expected importance_scores as a dict, got {got}")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            "global_unstructured: expected a method of PRUNING_TYPE 'unstructured', got "
            f"{pruning_method.__name__} of {method.PRUNING_TYPE!r}"
        )
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors)]
    masks = [
        getattr(module, name + "_mask", _C.ones_like(tensor))
        for (module, name), tensor in zip(pairs, tensors)
    ]
    method._tensor_name = "all"
    whole = PruningContainer(method)
    mask = whole.compute_mask(parameters_to_vector(scores), parameters_to_vector(masks))
    for (module, name), part in zip(pairs, mask.split([tensor.numel() for tensor in tensors])):
        custom_from_mask(module, name, part.view_as(getattr(module, name)))


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prunes a parameter where `mask`, of its shape, has zeros; gives the module.

    >>> mask = weft.tensor([[True, False]])
    >>> custom_from_mask(weft.nn.Linear(2, 1), "weight", mask).weight[0, 1].item() == 0
    True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: M, name: str) -> M:
    """Makes a pruned parameter, with its zeros, a plain one again; gives the module.

    ValueError for a parameter that is not pruned.

    >>> layer = l1_unstructured(weft.nn.Linear(2, 1), "weight", 1)
    >>> int((remove(layer, "weight").weight == 0).sum()), sorted(layer.state_dict())
    (1, ['bias', 'weight'])
    """
    key = _pruning.key_of(module, name)
    if key is None:
        raise ValueError(
            f"remove: expected a pruned parameter of {type(module).__name__}, got {name!r}"
        )
    module._forward_pre_hooks.pop(key).remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned.

    >>> is_pruned(weft.nn.Sequential(identity(weft.nn.Linear(2, 2), "bias")))
    True
    """
    return any(_pruning.hooks_of(each) for each in module.modules())
