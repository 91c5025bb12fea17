"""The recorded graph as Python sees it: nodes, and the hooks of nodes and tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor

_autograd = _C._autograd
Node = _autograd.Node


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives: result `output_nr` of `node`."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor: its grad_fn, or for a leaf the node that fills `.grad`.

    Raises RuntimeError when the tensor does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "get_gradient_edge: expected a tensor that requires grad, got one that does not"
        )
    return GradientEdge(*_autograd.gradient_edge(tensor))


class saved_tensors_hooks:
    """Inside the `with` block, what a graph saves goes through a pair of functions.

    `pack_hook(tensor)` is called, without recording, for each tensor saved for backward; whatever
    it returns is kept instead. `unpack_hook(packed)` must give a tensor of the same contents, when
    backward asks for it. It may not change its argument in place. Blocks nest: the innermost pair
    counts. Changes in place after packing are not noticed. What is packed has no history (PyTorch
    hands over the tensor itself): keeping it makes no cycle.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _autograd.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception: object) -> None:
        _autograd.pop_saved_hooks()


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
    not require grad.
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


def _node_getattr(self: Any, name: str) -> Any:
    """The node of a custom Function shows what forward put on its `ctx`."""
    context = None if name.startswith("__") else self._context
    if context is None:
        raise AttributeError(f"'{self.name()}' object has no attribute {name!r}")
    return getattr(context, name)


Node.__getattr__ = _node_getattr
Node.register_hook = _node_register_hook
Node.register_prehook = _node_register_prehook
Tensor.register_hook = register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
