"""Hooks of a module: before and after forward, and around its part of the backward pass."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.function import Function
from weft.utils.hooks import RemovableHandle


class HookDict:
    """A module's hooks of one kind, under PyTorch's name: a dict from the ids of their handles.

    It is made when it is first asked for. `_hooked` tells a call that it has to look for hooks;
    those that are not `called` by calls leave it.
    """

    def __init__(self, called: bool = True) -> None:
        self.called = called

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            return self
        if self.name not in module.__dict__:
            self.__set__(module, OrderedDict())
        return module.__dict__[self.name]

    def __set__(self, module: Any, hooks: Any) -> None:
        module.__dict__[self.name] = hooks
        if self.called:
            module.__dict__["_hooked"] = True

    def __delete__(self, module: Any) -> None:
        module.__dict__.pop(self.name, None)


class Hookable:
    """The part of Module that keeps and runs hooks; see Module."""

    _hooked = False
    _forward_pre_hooks = HookDict()
    _forward_pre_hooks_with_kwargs = HookDict()
    _forward_hooks = HookDict()
    _forward_hooks_with_kwargs = HookDict()
    _forward_hooks_always_called = HookDict()
    _backward_pre_hooks = HookDict()
    _backward_hooks = HookDict()
    _is_full_backward_hook: bool | None = None
    forward: Callable[..., Any]

    def _hooks_of(self, kind: str) -> dict[int, Any]:
        """The hooks of a kind to run for one call: those of all modules first."""
        own, shared = self.__dict__.get(kind, {}), _shared.__dict__.get(kind)
        return {**shared, **own} if shared else own

    def _has_hooks(self) -> bool:
        """Whether a call runs anything besides forward."""
        return self._hooked and any(map(self._hooks_of, HOOK_KINDS))

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; what it returns replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, returning (args, kwargs) or None.
        """
        flags = {"_forward_pre_hooks_with_kwargs": with_kwargs}
        return _register(self, "_forward_pre_hooks", hook, prepend, flags)

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
        even when forward or another hook raises (with output None).
        """
        flags = {
            "_forward_hooks_with_kwargs": with_kwargs,
            "_forward_hooks_always_called": always_call,
        }
        return _register(self, "_forward_hooks", hook, prepend, flags)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the backward pass of this module."""
        return _register(self, "_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients to the inputs exist.

        What it returns replaces grad_input. Only tensors among the positional arguments count;
        the places of others hold None. Tensors that need no gradient have zeros beside others that
        need one, and None where none does.
        """
        self._set_full_backward(True)
        return _register(self, "_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` of the last node that forward recorded.

        grad_input are that node's, not the module's, where forward is more than one operator (a
        FutureWarning): register_full_backward_hook has the module's. RuntimeError beside it.
        """
        self._set_full_backward(False)
        return _register(self, "_backward_hooks", hook)

    def _set_full_backward(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "register_backward_hook: expected either regular or full backward hooks on a "
                f"module, got both on {type(self).__name__}"
            )
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()  # the hooks for failures that have run already
        try:
            return self._run_all(args, kwargs, called)
        except Exception:
            self._run_always_called(args, kwargs, called)
            raise

    def _run_all(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        args, kwargs = self._run_pre_hooks(args, kwargs)
        backward, before = self._hooks_of("_backward_hooks"), self._hooks_of("_backward_pre_hooks")
        # Those of the last node: each of the module and of all modules have one kind.
        last_node = {}
        for each in (_shared, self):
            if each._is_full_backward_hook is False:
                last_node.update(each.__dict__.get("_backward_hooks", {}))
        backward = {number: hook for number, hook in backward.items() if number not in last_node}
        boundary = _Boundary(self, backward, before) if backward or before else None
        if boundary is not None:
            args = boundary.enter(args)
        result = self._run_forward(args, kwargs, called)
        if last_node:
            _hook_last_node(self, last_node, args, result)
        return result if boundary is None else boundary.leave(result)

    def _run_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        with_kwargs = self._hooks_of("_forward_pre_hooks_with_kwargs")
        for number, hook in list(self._hooks_of("_forward_pre_hooks").items()):
            if number in with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _inside_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """What a call does between the hooks."""
        return self.forward(*args, **kwargs)

    def _run_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        with_kwargs = self._hooks_of("_forward_hooks_with_kwargs")
        result = self._inside_hooks(*args, **kwargs)
        for number, hook in list(self._hooks_of("_forward_hooks").items()):
            called.add(number)
            replaced = hook(self, args, *((kwargs,) if number in with_kwargs else ()), result)
            if replaced is not None:
                result = replaced
        return result

    def _run_always_called(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
    ) -> None:
        """Runs the hooks that are called even when a call fails and have not run yet."""
        always = self._hooks_of("_forward_hooks_always_called")
        with_kwargs = self._hooks_of("_forward_hooks_with_kwargs")
        for number, hook in list(self._hooks_of("_forward_hooks").items()):
            if number not in always or number in called:
                continue
            try:
                hook(self, args, *((kwargs,) if number in with_kwargs else ()), None)
            except Exception as error:
                warnings.warn(
                    f"module forward hook with always_call=True raised {error!r}, which gives way "
                    "to the error of forward",
                    stacklevel=4,
                )


def hook_kinds(cls: type) -> tuple[str, ...]:
    """The names of the hooks that a class declares."""
    return tuple(name for name, value in vars(cls).items() if isinstance(value, HookDict))


HOOK_KINDS = hook_kinds(Hookable)

# Hooks of all modules. While there are any, Hookable._hooked is set, where a module without hooks
# of its own finds it: so a call without any hooks still asks only one question.
_shared = Hookable()


def _register(
    module: Hookable,
    kind: str,
    hook: Callable[..., Any],
    prepend: bool = False,
    flags: dict[str, bool] | None = None,
) -> RemovableHandle:
    extra = [getattr(module, flag) for flag, is_set in (flags or {}).items() if is_set]
    handle_class = _SharedHandle if module is _shared else RemovableHandle
    return handle_class.insert(getattr(module, kind), hook, prepend=prepend, flags=extra)


class _SharedHandle(RemovableHandle):
    """Takes back a hook of all modules."""

    @classmethod
    def insert(cls, *args: Any, **options: Any) -> RemovableHandle:
        Hookable._hooked = True
        return super().insert(*args, **options)

    def remove(self) -> None:
        super().remove()
        if not _shared._backward_hooks:
            _shared._is_full_backward_hook = None
        Hookable._hooked = any(map(_shared._hooks_of, HOOK_KINDS))


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before the forward of every module; see Module."""
    return _shared.register_forward_pre_hook(hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after the forward of every module; see Module."""
    return _shared.register_forward_hook(hook, with_kwargs=with_kwargs, always_call=always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before the backward pass of every module."""
    return _shared.register_full_backward_pre_hook(hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` after the backward pass of every module."""
    return _shared.register_full_backward_hook(hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` of the last node of every module; see
    Module.register_backward_hook. RuntimeError beside register_module_full_backward_hook."""
    return _shared.register_backward_hook(hook)


def _hook_last_node(
    module: Hookable, hooks: dict[int, Any], args: tuple[Any, ...], result: Any
) -> None:
    """Hangs a module's regular backward hooks on the node of its first result."""
    while not isinstance(result, Tensor):
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    node = result.grad_fn
    if node is None:
        return
    inputs = {arg.grad_fn for arg in args if isinstance(arg, Tensor)} - {None}
    if inputs != {below for below, _ in node.next_functions}:
        warnings.warn(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
            "deprecated and will be removed in future versions. This hook will be missing some "
            "grad_input. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )
    for hook in list(hooks.values()):
        node.register_hook(functools.partial(hook, module))


class _Boundary:
    """Marks where the backward pass enters and leaves a module, by identity functions."""

    def __init__(self, module: Hookable, hooks: dict[int, Any], pre_hooks: dict[int, Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: tuple[Any, ...] | None = None  # from the module's results to its inputs
        self.positions = 0
        self.wrapped: list[int] = []
        # What makes the zeros of the tensors that need no gradient, by place.
        self.zeros: dict[int, Callable[[], Tensor]] = {}

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.positions = len(args)
        tensors = [(i, a) for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.wrapped = [i for i, a in tensors if a.requires_grad]
        # Of sizes alone: a tensor that is kept until backward would need memory.
        self.zeros = {
            i: functools.partial(_C.zeros, a.shape, dtype=a.dtype, device=a.device)
            for i, a in tensors
            if not a.requires_grad
        }
        return _pass_through(args, self.wrapped, self._on_grad_input)

    def leave(self, result: Any) -> Any:
        if not isinstance(result, Tensor | tuple):
            warnings.warn(
                "backward hook: expected a tensor or a tuple of tensors as the output of the "
                f"module, got {type(result)}; the hook is not called",
                stacklevel=4,
            )
        results = result if isinstance(result, tuple) else (result,)
        positions = [i for i, r in enumerate(results) if isinstance(r, Tensor) and r.requires_grad]
        self.outputs = len(results)
        self.output_places = positions
        results = _pass_through(results, positions, self._on_grad_output)
        if not isinstance(result, tuple):
            return results[0]
        return type(result)(*results) if hasattr(result, "_fields") else results  # a named tuple

    def _on_grad_output(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full = _spread(grads, self.output_places, self.outputs)
        for hook in list(self.pre_hooks.values()):
            replaced = hook(self.module, full)
            if replaced is not None:
                full = _replaced(replaced, full)
        self.grad_output = full
        if not self.wrapped:  # nothing below asks for a gradient: the pass ends here
            self._run_hooks((None,) * self.positions)
        return tuple(full[i] for i in self.output_places)

    def _on_grad_input(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_output is None:  # not through the results: of a second derivative
            return grads
        positions = [*self.wrapped, *self.zeros]
        zeros = (make() for make in self.zeros.values())
        full = self._run_hooks(_spread((*grads, *zeros), positions, self.positions))
        return tuple(full[i] for i in self.wrapped)

    def _run_hooks(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.hooks.values()):
            replaced = hook(self.module, grad_input, self.grad_output)
            if replaced is not None:
                grad_input = _replaced(replaced, grad_input)
        self.grad_output = None
        return grad_input


def _replaced(grads: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a hook returned, as many gradients as before."""
    grads = grads if isinstance(grads, tuple) else (grads,)
    if len(grads) != len(before):
        raise RuntimeError(
            f"backward hook: expected {len(before)} gradients from a hook, got {len(grads)}"
        )
    return grads


def _spread(grads: tuple[Any, ...], positions: list[int], length: int) -> tuple[Any, ...]:
    full: list[Any] = [None] * length
    for place, grad in zip(positions, grads):
        full[place] = grad
    return tuple(full)


def _pass_through(
    values: tuple[Any, ...], positions: list[int], callback: Callable[..., Any]
) -> tuple[Any, ...]:
    """Sends the tensors at `places` through one identity whose backward calls `callback`."""
    if not positions:
        return values
    full = list(values)
    outputs = _Identity.apply(callback, *(values[i] for i in positions))
    for place, output in zip(positions, outputs):
        full[place] = output
    return tuple(full)


class _Identity(Function):
    """The identity with a callback."""

    @staticmethod
    def forward(ctx: Any, callback: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.callback = callback
        return tuple(tensor.view(tensor.size()) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return (None, *ctx.callback(grads))
