"""Hooks of an optimizer: around its steps, and around the saving and loading of its state."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from weft.nn.modules._hooks import HookDict
from weft.utils.hooks import RemovableHandle

Hook = Callable[..., Any]


class Hookable:
    """The part of Optimizer that keeps hooks; see Optimizer.

    The step of a derived class runs them too, whoever wrote it: outermost, and once where it calls
    that of its base.
    """

    _hooked = False
    _stepping = False
    _opt_called = False  # whether there was a step: schedules ask
    _optimizer_step_pre_hooks = HookDict()
    _optimizer_step_post_hooks = HookDict()
    _optimizer_state_dict_pre_hooks = HookDict(called=False)
    _optimizer_state_dict_post_hooks = HookDict(called=False)
    _optimizer_load_state_dict_pre_hooks = HookDict(called=False)
    _optimizer_load_state_dict_post_hooks = HookDict(called=False)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        step = vars(cls).get("step")
        if callable(step):
            cls.step = _with_hooks(step)  # type: ignore[attr-defined]

    def _patch_step_function(self) -> None:
        """Nothing: `__init_subclass__` has done it. Optimizers without `__init__` call it."""

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; args[0] is the optimizer.

        A pair of args and kwargs that it returns replaces them.
        """
        return RemovableHandle.insert(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle.insert(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` before state_dict reads the state."""
        return RemovableHandle.insert(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` for a state_dict; what it returns replaces this."""
        return RemovableHandle.insert(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before it is loaded; what it returns replaces it."""
        hooks = self._optimizer_load_state_dict_pre_hooks
        return RemovableHandle.insert(hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after a state_dict has been loaded."""
        hooks = self._optimizer_load_state_dict_post_hooks
        return RemovableHandle.insert(hooks, hook, prepend=prepend)

    def _run_state_hooks(self, when: str, value: Any) -> Any:
        """`value`, or what the last of the hooks that return something made of it."""
        for hook in list(self.__dict__.get(f"_optimizer_{when}_hooks", {}).values()):
            replaced = hook(self, value) if value is not None else hook(self)
            value = value if replaced is None else replaced
        return value


#: hooks of all optimizers
_global_optimizer_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return RemovableHandle.insert(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return RemovableHandle.insert(_global_optimizer_post_hooks, hook)


def _with_hooks(step: Hook) -> Hook:
    """A step method that runs the hooks around it."""

    @functools.wraps(step)
    def hooked(self: Hookable, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        shared = _global_optimizer_pre_hooks or _global_optimizer_post_hooks
        if self._stepping or not (self._hooked or shared):
            return step(self, *args, **kwargs)
        self._stepping = True
        try:
            return _step_between_hooks(step, self, args, kwargs)
        finally:
            del self._stepping

    return hooked


def _step_between_hooks(step: Hook, optimizer: Hookable, args: Any, kwargs: Any) -> Any:
    args = (optimizer, *args)
    own = optimizer._optimizer_step_pre_hooks
    for hook in _all(_global_optimizer_pre_hooks, own):
        replaced = hook(optimizer, args, kwargs)
        if replaced is None:
            continue
        if not isinstance(replaced, tuple) or len(replaced) != 2:
            raise RuntimeError(
                "step: expected a hook that returns None or a pair of args and kwargs, got "
                f"{replaced!r}"
            )
        args, kwargs = replaced
    result = step(*args, **kwargs)
    for hook in _all(optimizer._optimizer_step_post_hooks, _global_optimizer_post_hooks):
        hook(optimizer, args, kwargs)
    return result


def _all(*kinds: dict[int, Hook]) -> Iterator[Hook]:
    for hooks in kinds:
        yield from list(hooks.values())
