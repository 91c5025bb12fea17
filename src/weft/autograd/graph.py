"""The recorded graph as Python sees it: nodes, and the hooks of nodes and tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor

_autograd = _C._autograd
Node = _autograd.Node


class HookHandle:
    """Removes a hook again: `handle.remove()`, or at the end of a `with` block."""

    __slots__ = ("_node", "id")

    def __init__(self, node: Any, id: int) -> None:
        self._node = node
        self.id = id

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._node._remove_hook(self.id)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Calls `hook(grad)` whenever the gradient of this tensor is known.

    A tensor that the hook returns replaces the gradient. Raises RuntimeError when the tensor does
    not require grad. Do not refer to the tensor itself in the hook: that would keep both alive.
    """
    return HookHandle(*_autograd.register_hook(self, hook))


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> HookHandle:
    """Calls `hook(tensor)` after backward has added to the `.grad` of this leaf."""
    tensor = weakref.ref(self)

    def run() -> None:
        target = tensor()
        if target is not None:
            hook(target)

    if not callable(hook):
        got = type(hook).__name__
        raise TypeError(f"register_post_accumulate_grad_hook: expected a callable, got {got}")
    return HookHandle(*_autograd.register_accumulated_hook(self, run))


def _node_register_hook(self: Any, hook: Callable[..., Any]) -> HookHandle:
    """Calls `hook(grad_inputs, grad_outputs)` after this node ran; a tuple replaces grad_inputs."""
    return HookHandle(self, self._register_hook(hook))


def _node_register_prehook(self: Any, hook: Callable[..., Any]) -> HookHandle:
    """Calls `hook(grad_outputs)` before this node runs; a tuple replaces them."""
    return HookHandle(self, self._register_prehook(hook))


Node.register_hook = _node_register_hook
Node.register_prehook = _node_register_prehook
Tensor.register_hook = register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
