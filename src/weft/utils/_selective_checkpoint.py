"""Checkpoints that keep the results of some operators: `create_selective_checkpoint_contexts`.

A mode of functions sees the operators of the first run and keeps the results that the policy wants,
with notes of what each operator saved for backward. In the repetition the mode gives these results
instead of calling the operators, and saves for backward what they had saved.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.autograd.function import Function
from weft.library._overloads import OpOverload
from weft.overrides import TorchFunctionMode
from weft.utils._flop_formulas import FORMULAS
from weft.utils._pytree import tree_flatten, tree_leaves, tree_unflatten


class CheckpointPolicy(enum.Enum):
    """What becomes of a result: kept (saved, offloaded to the CPU), or computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told: whether this is the repetition (it is not asked there), and the
    result of the operator."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts of `checkpoint(context_fn=)` that keep the results of some operators.

    policy_fn_or_list: operators such as `weft.ops.aten.mm.default`, whose results are kept; or a
    function (context, operator, *args, **kwargs) that gives a CheckpointPolicy. Products have the
    names of PyTorch's operators, whatever function computes them: mm, bmm, addmm. RuntimeError in
    backward where a kept result was changed in place, unless allow_cache_entry_mutation, and for a
    second backward; ValueError for a list of anything but overloads, TypeError for others.

    >>> from functools import partial
    >>> from weft.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = partial(create_selective_checkpoint_contexts, [weft.ops.aten.mm.default])
    >>> x = weft.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=keep)
    >>> y.sum().backward()
    """
    name = "create_selective_checkpoint_contexts"
    policy = policy_fn_or_list
    if isinstance(policy, list):
        for each in policy:
            if not isinstance(each, OpOverload):
                raise ValueError(f"{name}: expected overloads as ops.aten.mm.default, got {each!r}")
        kept = frozenset(map(str, policy))
        policy = lambda context, op, *args, **kwargs: str(op) in kept  # noqa: E731
    elif not callable(policy):
        raise TypeError(f"{name}: expected a function or a list, got {type(policy).__name__}")
    results: dict[tuple[str, int], Any] = {}
    return _Keeping(policy, results), _Kept(results, allow_cache_entry_mutation)


#: operators of PyTorch behind functions of other names
_NAMES = {
    "softmax": "_softmax",
    "log_softmax": "_log_softmax",
    "layer_norm": "native_layer_norm",
    "group_norm": "native_group_norm",
    "batch_norm": "native_batch_norm",
    "dropout": "native_dropout",
    "scaled_dot_product_attention": "_scaled_dot_product_flash_attention_for_cpu",
    "__rmul__": "mul",
    "__radd__": "add",
}


def _operator(func: Any, result: Any, args: Any, kwargs: Any) -> Any:
    """PyTorch's operator that a function stands for; None where there is none."""
    if isinstance(func, OpOverload):
        return func
    name: str = func.__name__
    if name in FORMULAS and name not in _NAMES:
        made = FORMULAS[name](result, *args, **{k: v for k, v in kwargs.items() if k != "out"})
        name = name if made is None else made.name
    name = _NAMES.get(name, name.strip("_") if name.startswith("__") else name)
    packet = getattr(weft.ops.aten, name, None)
    overloads = [] if packet is None else packet.overloads()
    if not overloads:
        return None if packet is None and name not in _NAMES.values() else _Named(name)
    chosen = next((each for each in ("default", "Tensor") if each in overloads), overloads[0])
    return getattr(packet, chosen)


class _Named:
    """An operator that weft has under another name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"aten.{self.name}.default"

    __repr__ = __str__


class _Entry(NamedTuple):
    """A result that is kept. requires: of which of its tensors gradients are wanted; saved: what
    the operator saved for backward, as places among arguments and results, or tensors."""

    leaves: list[Any]
    spec: Any
    requires: list[bool]
    versions: list[int]
    saved: list[Any]


def _tensors(*trees: Any) -> list[Tensor]:
    return [one for one in tree_leaves(trees) if isinstance(one, Tensor)]


class _Mode(TorchFunctionMode):
    """Counts operators. What is written in Python and is no operator runs with the mode."""

    def __init__(self, results: dict[tuple[str, int], Any]) -> None:
        super().__init__()
        self.results = results
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Any:
        self.counts.clear()
        return super().__enter__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if hasattr(func, "__wrapped__") and name not in _NAMES:
            with _Again(self):
                return func.__wrapped__(*args, **kwargs)
        writes = name.endswith("_") and not name.endswith("__")
        if (
            writes
            or kwargs.get("out") is not None
            or name in _IGNORED
            or not _tensors(args, kwargs)
        ):
            return func(*args, **kwargs)
        return self.run(func, args, kwargs)

    def run(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result of what may be an operator."""
        raise NotImplementedError

    def place(self, name: str) -> tuple[str, int]:
        """The operator's name and how many of it there were before."""
        self.counts[name] += 1
        return name, self.counts[name]


#: attributes, and what makes no result of its own
_IGNORED = ("__get__", "__set__", "detach", "size", "dim", "numel", "requires_grad_", "backward")


class _Again(TorchFunctionMode):
    """A mode that is on once more, inside of what it answers for."""

    def __init__(self, mode: _Mode) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._mode.__torch_function__(func, types, args, kwargs)


class _Keeping(_Mode):
    """The context of the first run. packed: what was saved for backward lately."""

    def __init__(self, policy: Callable[..., Any], results: dict[tuple[str, int], Any]) -> None:
        super().__init__(results)
        self.policy = policy
        self.packed: list[Tensor] = []

    def run(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.packed.clear()
        result = func(*args, **kwargs)
        packed, self.packed[:] = list(self.packed), []
        op = _operator(func, result, args, kwargs)
        made = _tensors(result)
        if op is None or not made:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        answer = self.policy(context, op, *args, **kwargs)
        wanted = answer if isinstance(answer, bool) else answer.name.endswith(("SAVE", "OFFLOAD"))
        place = self.place(_key(func))
        self.results[place] = _entry(result, packed, _tensors(args, kwargs)) if wanted else None
        return result


def _key(func: Any) -> str:
    return str(getattr(func, "__qualname__", func.__name__))


def _entry(result: Any, packed: list[Tensor], given: list[Tensor]) -> _Entry:
    leaves, spec = tree_flatten(result)
    made = [one.detach() if isinstance(one, Tensor) else one for one in leaves]
    known = [_identity(one) for one in (*given, *_tensors(made))]
    saved: list[Any] = []
    for one in packed:
        identity = _identity(one)
        saved.append(known.index(identity) if identity in known else one.detach())
    requires = [isinstance(one, Tensor) and bool(one.requires_grad) for one in leaves]
    versions = [one._version if isinstance(one, Tensor) else 0 for one in made]
    return _Entry(made, spec, requires, versions, saved)


def _identity(tensor: Tensor) -> tuple[Any, ...]:
    """What two tensors over the same elements have in common."""
    layout = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
    return (tensor._storage_key(), *layout)


class _Kept(_Mode):
    """The context of the repetition."""

    def __init__(self, results: dict[tuple[str, int], Any], may_change: bool) -> None:
        super().__init__(results)
        self.may_change = may_change

    def run(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        key = _key(func)
        place = (key, self.counts[key] + 1)
        if place not in self.results:  # it is no operator
            return func(*args, **kwargs)
        entry = self.results[self.place(key)]
        if entry is None:
            return func(*args, **kwargs)
        if entry is _USED:
            raise RuntimeError(
                "checkpoint: expected one backward of a selective checkpoint, got another"
            )
        self.results[place] = _USED
        now = [one._version if isinstance(one, Tensor) else 0 for one in entry.leaves]
        if now != entry.versions and not self.may_change:
            raise RuntimeError(f"checkpoint: expected kept results as they were, got {key} changed")
        return _given(entry, _tensors(args, kwargs))


_USED: Any = object()


def _given(entry: _Entry, given: list[Tensor]) -> Any:
    """A kept result, which saves for backward what the operator would have saved."""
    made, leaves = _tensors(entry.leaves), list(entry.leaves)
    known = [*given, *made]
    saved = [known[one] if isinstance(one, int) else one for one in entry.saved]
    if any(entry.requires):
        anchor = _C.zeros(()).requires_grad_()
        results = iter(KeptResult.apply(anchor, made, entry.requires, saved))
        leaves = [next(results) if isinstance(one, Tensor) else one for one in leaves]
    return tree_unflatten(leaves, entry.spec)


class KeptResult(Function):
    """The node of a kept result."""

    @staticmethod
    def forward(ctx: Any, anchor: Any, made: Any, requires: Any, saved: Any) -> Any:
        ctx.save_for_backward(*saved)
        results = tuple(one.detach() for one in made)
        plain = [one for one, needed in zip(results, requires) if not needed]
        ctx.mark_non_differentiable(*plain)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "checkpoint: expected no backward inside of a selective checkpoint, got one"
        )
