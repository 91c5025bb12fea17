"""Modules wrapped so that each call is a checkpoint (weft.utils.checkpoint)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft._runtime.public import weft
from weft.autograd.graph import save_on_cpu
from weft.nn.modules.module import Module

_NAME = "_checkpoint_wrapped_module"
_PREFIX = _NAME + "."


class CheckpointImpl(Enum):
    """How backward runs a part again: `use_reentrant` of weft.utils.checkpoint."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """Holds a module, whose attributes and names of parameters and states are its own."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("ActivationWrapper: expected a derived class to have forward, got none")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters under the names that they have without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter


def _without_prefix(module: Module, state: Any, prefix: str, metadata: Any) -> None:
    inner = prefix + _PREFIX
    for key in [key for key in state if key.startswith(inner)]:
        state[prefix + key.removeprefix(inner)] = state.pop(key)


def _with_prefix(module: Module, state: Any, prefix: str, *rest: Any) -> None:
    for key in [key for key in state if key.startswith(prefix)]:
        state[prefix + _PREFIX + key.removeprefix(prefix)] = state.pop(key)


class OffloadWrapper(ActivationWrapper):
    """Keeps what the module saves for backward in the memory of the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu():
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Runs the module as a checkpoint.

    - checkpoint_impl: the way of weft.utils.checkpoint.
    - checkpoint_fn: runs instead of it, as `checkpoint_fn(module, *args, **kwargs)`.
    - checkpoint_fn_kwargs: more arguments of either.

    >>> layer = CheckpointWrapper(weft.nn.Linear(2, 1))
    >>> list(layer.state_dict())
    ['weight', 'bias']
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
            checkpoint_fn_kwargs = {"use_reentrant": reentrant, **checkpoint_fn_kwargs}
        self.checkpoint_fn = checkpoint_fn or weft.utils.checkpoint.checkpoint
        self._options = checkpoint_fn_kwargs

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl != CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **self._options, **kwargs)

        # A checkpoint inside of backward takes no arguments by name.
        def run(*values: Tensor) -> Any:
            named = dict(zip(kwargs, values[len(args) :]))
            return module(*values[: len(args)], **named)

        return self.checkpoint_fn(run, *args, *kwargs.values(), **self._options)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """The module as a CheckpointWrapper, whose arguments these are."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """The module as an OffloadWrapper."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Replaces modules below `model`, innermost first, by checkpoint_wrapper_fn of them.

    Those are wrapped for which check_fn says so; with auto_wrap_policy, which is asked
    `auto_wrap_policy(module, recurse, nonwrapped_numel)`, those that it picks.

    >>> net = weft.nn.Sequential(weft.nn.Linear(2, 2), weft.nn.ReLU())
    >>> apply_activation_checkpointing(net, check_fn=lambda m: isinstance(m, weft.nn.Linear))
    >>> [type(layer).__name__ for layer in net]
    ['CheckpointWrapper', 'ReLU']
    """
    wanted = check_fn
    if auto_wrap_policy is not None:
        policy = auto_wrap_policy

        def wanted(module: Module) -> bool:
            numel = sum(parameter.numel() for parameter in module.parameters())
            return policy(module=module, recurse=False, nonwrapped_numel=numel)

    wrapped: dict[Module, Module] = {}  # one module at two places stays one
    _wrap_below(model, wanted, checkpoint_wrapper_fn, wrapped)


def _wrap_below(
    module: Module,
    wanted: Callable[[Module], bool],
    wrap: Callable[[Module], Module],
    wrapped: dict[Module, Module],
) -> None:
    for name, child in module.named_children():
        if child not in wrapped:
            _wrap_below(child, wanted, wrap, wrapped)
            wrapped[child] = wrap(child) if wanted(child) else child
        setattr(module, name, wrapped[child])


_list_own(vars())
