"""Pruning: parameters whose elements a mask sets to zero before each forward."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from weft import _C
from weft._C import Tensor
from weft._functions.norms import norm
from weft.nn.modules.module import Module
from weft.nn.utils.convert_parameters import parameters_to_vector

M = TypeVar("M", bound=Module)


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
        key = _key(module, name)
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
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
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


def _key(module: Module, name: str) -> Any:
    """The key of the hook that prunes a parameter, None without one."""
    found = [key for key, hook in _hooks(module) if hook._tensor_name == name]
    if len(found) > 1:
        raise AssertionError(
            f"prune: expected one pruning hook of {name!r}, got {len(found)}; a PruningContainer "
            "combines methods"
        )
    return found[0] if found else None


def _hooks(module: Module) -> list[tuple[Any, BasePruningMethod]]:
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

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        """As BasePruningMethod.apply."""
        return super().apply(module, name)


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

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> Any:  # type: ignore[override]
        """As BasePruningMethod.apply."""
        return super().apply(module, name, amount=amount)


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

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, dim: int = -1
    ) -> Any:
        """As BasePruningMethod.apply."""
        return super().apply(module, name, amount=amount, dim=dim)


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

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        """As BasePruningMethod.apply."""
        return super().apply(module, name, mask=mask)


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
    module: M,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
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
    key = _key(module, name)
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
    return any(_hooks(each) for each in module.modules())
