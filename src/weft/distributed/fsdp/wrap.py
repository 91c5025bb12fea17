"""Which modules become units: policies of FullyShardedDataParallel, and `wrap`.

A policy is called as policy(module=, recurse=, nonwrapped_numel=) with the elements of parameters
that no unit has yet: with recurse=True for whether to look below the module, then with False for
whether to wrap it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.nn.modules.attention import MultiheadAttention
from weft.nn.modules.container import ModuleDict, ModuleList
from weft.nn.modules.module import Module

Wrap = Callable[..., Module]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wraps every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wraps the modules that a function chooses."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[Module]],
) -> bool:
    """Wraps the modules of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: Iterable[type[Module]] | None = None,
    exclude_wrap_modules: Iterable[type[Module]] | None = None,
) -> bool:
    """Wraps modules of at least min_num_params elements that no unit below has; by default it looks
    not into MultiheadAttention, and leaves out lists and dicts of modules."""
    leaves = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    left_out = (
        (ModuleList, ModuleDict) if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    )
    return nonwrapped_numel >= min_num_params and not isinstance(
        module, leaves if recurse else left_out
    )


def _or_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, policies: Sequence[Callable[..., bool]]
) -> bool:
    """Wraps what one of several policies wraps."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)
        for policy in policies
    )


class ModuleWrapPolicy:
    """Wraps the modules of some classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._module_classes})"


class CustomPolicy:
    """Wraps where `lambda_fn(module)` is True, or a dict of arguments of the wrapper."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn


def wrap_below(module: Module, policy: Any, wrap_one: Wrap) -> int:
    """Replaces modules below `module`, innermost first, by wrap_one of them, as the policy says.
    The elements of the parameters that they have."""
    chosen = policy._lambda_fn if isinstance(policy, CustomPolicy) else None
    wrapped = 0
    for name, child in list(module.named_children()):
        count = sum(p.numel() for p in child.parameters())
        if chosen is None and not policy(module=child, recurse=True, nonwrapped_numel=count):
            continue
        inside = wrap_below(child, policy, wrap_one)
        if chosen is None:
            answer = policy(module=child, recurse=False, nonwrapped_numel=count - inside)
        else:
            answer = chosen(child)
        if answer or isinstance(answer, dict):
            setattr(module, name, wrap_one(child, **(answer if isinstance(answer, dict) else {})))
            inside = count
        wrapped += inside
    return wrapped


_enabled: list[tuple[Wrap, dict[str, Any]]] = []  # of the blocks of enable_wrap, the innermost last


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A block in which `wrap` makes wrapper_cls(module, **wrapper_kwargs)."""
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module, wrapped inside a block of enable_wrap."""
    if not _enabled:
        return module
    wrapper, kwargs = _enabled[-1]
    return wrapper(module, **{**kwargs, **wrap_overrides})
