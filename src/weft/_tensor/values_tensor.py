"""ValuesTensor: a tensor that is the tensor of its values, of a class of its own.

So requires_grad, history, dtype and device are those of the values. Sparse and nested tensors are
of such classes, which say where the values stand and answer for every operator by a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from weft._C import Tensor
from weft.autograd.grad_mode import is_grad_enabled


class ValuesTensor(Tensor):
    """What sparse and nested tensors have in common."""

    @classmethod
    def _of(cls, values: Tensor) -> Any:
        """A tensor of these values, with their history; where they stand is still to be said."""
        if values.requires_grad and is_grad_enabled():
            return values.as_subclass(cls)
        # No view: saved for backward it stays what it is.
        return Tensor._make_subclass(cls, values.detach(), False)

    def _like(self, values: Tensor) -> Any:
        """Other values at the same places."""
        raise NotImplementedError

    def _gradient(self, values: Tensor) -> Any:
        """A gradient of the values as one of this tensor."""
        raise NotImplementedError

    def _history_node(self) -> Any:
        """The node of the values, which the first one wraps; None for a leaf."""
        node = self.grad_fn
        before = node.next_functions[0][0] if node is not None and node.next_functions else None
        return before if before is not None and before.next_functions else node

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "deepcopy: expected a leaf tensor, got one with history; use detach() first"
            )
        made = memo[id(self)] = self._like(values_of(self).detach().clone())
        return made.requires_grad_(self.requires_grad)

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Calls hook(gradient), of this class as well, before the gradient goes on."""

        def on_values(grad: Tensor | None) -> Tensor | None:
            found = hook(None if grad is None else self._gradient(grad))
            return values_of(found) if isinstance(found, ValuesTensor) else found

        return super().register_hook(on_values)


def values_of(tensor: Tensor) -> Tensor:
    """The values as a plain tensor over the same memory, with their history."""
    return cast(Tensor, tensor_member("as_subclass")(tensor, Tensor))


def tensor_member(name: str) -> Any:
    """A method of Tensor, or the descriptor of an attribute."""
    return getattr(Tensor, name)


def name_of(function: Any) -> str:
    """An operator's name; the attribute's, where a slot reads or writes one."""
    name: str = function.__name__
    if name in ("__get__", "__set__"):
        return ("set_" if name == "__set__" else "") + function.__self__.__name__
    return name
