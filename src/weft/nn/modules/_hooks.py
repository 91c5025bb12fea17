"""Hooks of a module: before and after forward, and around its part of the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
from weft import Tensor
from weft.utils.hooks import RemovableHandle


class Hooks:
    """The hooks of one module; it exists only once a hook has been registered."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, Any] = {}
        self.forward: dict[int, Any] = {}
        self.backward_pre: dict[int, Any] = {}
        self.backward: dict[int, Any] = {}

    def any(self) -> bool:
        """Whether there is a hook left."""
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)

    def with_shared(self) -> Hooks:
        """The hooks to run for one call: those of all modules first."""
        if not _shared.any():
            return self
        both = Hooks()
        for kind in ("forward_pre", "forward", "backward_pre", "backward"):
            getattr(both, kind).update(getattr(_shared, kind))
            getattr(both, kind).update(getattr(self, kind))
        return both


# Hooks of all modules. While there are any, they stand in Hookable._hooks, where a module without
# hooks of its own finds them: so a call without any hooks still asks only one question.
_shared = Hooks()


class _SharedHandle(RemovableHandle):
    """Takes back a hook of all modules."""

    def remove(self) -> None:
        super().remove()
        if not _shared.any():
            Hookable._hooks = None


def _share(hooks: dict[int, Any], entry: Any) -> RemovableHandle:
    handle = _SharedHandle.insert(hooks, entry)
    Hookable._hooks = _shared
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before the forward of every module; see Module."""
    return _share(_shared.forward_pre, (hook, False))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after the forward of every module; see Module."""
    return _share(_shared.forward, (hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before the backward pass of every module."""
    return _share(_shared.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` after the backward pass of every module."""
    return _share(_shared.backward, hook)


class Hookable:
    """The part of Module that keeps and runs hooks; see Module."""

    _hooks: Hooks | None = None
    forward: Callable[..., Any]

    def _get_hooks(self) -> Hooks:
        own = self.__dict__.get("_hooks")
        if own is None:
            own = self._hooks = Hooks()
        return own

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; what it returns replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, returning (args, kwargs) or None.
        """
        entry = (hook, with_kwargs)
        return RemovableHandle.insert(self._get_hooks().forward_pre, entry, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after forward; what it returns replaces the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`. `always_call` runs the hook
        even when forward raises (with output None).
        """
        entry = (hook, with_kwargs, always_call)
        return RemovableHandle.insert(self._get_hooks().forward, entry, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the backward pass of this module."""
        return RemovableHandle.insert(self._get_hooks().backward_pre, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients to the inputs exist.

        What it returns replaces grad_input. Only tensors among the positional arguments count;
        the places of others hold None.
        """
        return RemovableHandle.insert(self._get_hooks().backward, hook, prepend=prepend)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = self.__dict__.get("_hooks")
        hooks = _shared if own is None else own.with_shared()
        args, kwargs = self._run_pre_hooks(hooks, args, kwargs)
        boundary = _Boundary(self, hooks) if hooks.backward or hooks.backward_pre else None
        if boundary is not None:
            args = boundary.enter(args)
        try:
            result = self.forward(*args, **kwargs)
        except Exception:
            for hook, with_kwargs, always_call in list(hooks.forward.values()):
                if always_call:
                    hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
            raise
        for hook, with_kwargs, _ in list(hooks.forward.values()):
            if with_kwargs:
                replaced = hook(self, args, kwargs, result)
            else:
                replaced = hook(self, args, result)
            if replaced is not None:
                result = replaced
        return result if boundary is None else boundary.leave(result)

    def _run_pre_hooks(
        self, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook, with_kwargs in list(hooks.forward_pre.values()):
            if with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs


class _Boundary:
    """Marks where the backward pass enters and leaves a module, by identity functions."""

    def __init__(self, module: Hookable, hooks: Hooks) -> None:
        self.module = module
        self.hooks = hooks
        self.grad_output: tuple[Any, ...] = ()
        self.places = 0
        self.wrapped: list[int] = []

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.places = len(args)
        self.wrapped = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        return _pass_through(args, self.wrapped, self._on_grad_input)

    def leave(self, result: Any) -> Any:
        results = result if isinstance(result, tuple) else (result,)
        places = [i for i, r in enumerate(results) if isinstance(r, Tensor) and r.requires_grad]
        self.outputs = len(results)
        self.output_places = places
        results = _pass_through(results, places, self._on_grad_output)
        return results if isinstance(result, tuple) else results[0]

    def _on_grad_output(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full = _spread(grads, self.output_places, self.outputs)
        for hook in list(self.hooks.backward_pre.values()):
            replaced = hook(self.module, full)
            if replaced is not None:
                full = replaced if isinstance(replaced, tuple) else (replaced,)
        self.grad_output = full
        if not self.wrapped:  # nothing below asks for a gradient: the pass ends here
            self._run_hooks((None,) * self.places)
        return tuple(full[i] for i in self.output_places)

    def _on_grad_input(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full = self._run_hooks(_spread(grads, self.wrapped, self.places))
        return tuple(full[i] for i in self.wrapped)

    def _run_hooks(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.hooks.backward.values()):
            replaced = hook(self.module, grad_input, self.grad_output)
            if replaced is not None:
                grad_input = replaced if isinstance(replaced, tuple) else (replaced,)
        return grad_input


def _spread(grads: tuple[Any, ...], places: list[int], length: int) -> tuple[Any, ...]:
    full: list[Any] = [None] * length
    for place, grad in zip(places, grads):
        full[place] = grad
    return tuple(full)


def _pass_through(
    values: tuple[Any, ...], places: list[int], callback: Callable[..., Any]
) -> tuple[Any, ...]:
    """Sends the tensors at `places` through one identity whose backward calls `callback`."""
    if not places:
        return values
    full = list(values)
    outputs = _identity_function().apply(callback, *(values[i] for i in places))
    for place, output in zip(places, outputs):
        full[place] = output
    return tuple(full)


def _identity_function() -> Any:
    """The identity with a callback; made on first use, so that importing nn stays cheap."""
    global _identity
    if _identity is None:

        class Identity(weft.autograd.Function):
            @staticmethod
            def forward(ctx: Any, callback: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
                ctx.callback = callback
                return tuple(tensor.view(tensor.size()) for tensor in tensors)

            @staticmethod
            def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
                return (None, *ctx.callback(grads))

        _identity = Identity
    return _identity


_identity: Any = None
