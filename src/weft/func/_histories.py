"""The part of the graph that belongs to one transform.

A transform gives its function tensors of its own, in place of the caller's, and looks at what the
function made of them. What the caller may differentiate further keeps its history; the rest leaves
the transform without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.samples import whole
from weft.autograd._run import grad
from weft.autograd.function import Function
from weft.autograd.grad_mode import enable_grad, is_grad_enabled
from weft.func._batched import has_history, like, seen_by, spread
from weft.utils._pytree import tree_map


def require_tensor(op: str, what: str, value: Any, real: bool = False) -> Tensor:
    """The value, a floating or complex tensor, or a `real` one. ValueError for what is no tensor,
    RuntimeError for another dtype, and of jvp for both."""
    if not isinstance(value, Tensor):
        kind = RuntimeError if op == "jvp" else ValueError
        raise kind(f"{op}: expected {what} as a Tensor, got {type(value).__name__}")
    if real and value.is_complex():
        raise RuntimeError(
            f"{op}: expected {what} of a real dtype, got {str(value.dtype)[6:]}; "
            "view_as_real() gives both parts"
        )
    if not (value.is_floating_point() or value.is_complex()):
        raise RuntimeError(
            f"{op}: expected {what} of a floating or complex dtype, got {str(value.dtype)[6:]}"
        )
    return value


class Owner:
    """Whose tensors a history begins with."""


_active: set[Owner] = set()  # owners of transforms whose functions are under way


class _Entry(Function):
    """The identity, as the first node of a history. Backward knows by it where one begins."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, owner: Owner) -> Tensor:
        ctx.owner, ctx.leaf = owner, tensor
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return grad, None


def entry(tensor: Tensor, owner: Owner) -> Tensor:
    """A tensor of the same elements that requires grad, and whose history begins with `owner`."""
    trace: Any = _C._recorder()
    while hasattr(trace, "outer"):  # levels of vmap
        trace = trace.outer
    with seen_by(trace), enable_grad():
        leaf = whole(tensor).detach().requires_grad_()
        return like(tensor, leaf if trace is not None else _Entry.apply(leaf, owner))


class History:
    """What one call of a function records from tensors of its own: the copies of those given.
    As a context it lasts as long as the transform; inner ones then keep what depends on it."""

    def __init__(self, given: Iterable[Tensor]) -> None:
        self.outer = is_grad_enabled()
        self._owner = Owner()
        self.own: list[Tensor] = []
        self._entries: list[tuple[Any, int]] = []  # the node and the version that each began with
        for each in given:
            self.add(each)

    def __enter__(self) -> History:
        _active.add(self._owner)
        return self

    def __exit__(self, *exception: object) -> None:
        _active.discard(self._owner)

    @contextmanager
    def calling(self, lent: list[Tensor]) -> Iterator[None]:
        """Within, the function runs, which may write in place to what it makes and what is lent."""
        _C._autograd._begin_transform([whole(each) for each in lent])
        try:
            with self, enable_grad():
                yield
        finally:
            _C._autograd._end_transform()

    def add(self, given: Tensor) -> Tensor:
        """One more tensor of our own, over the elements of the one given."""
        with enable_grad():
            tensor = spread(given)
            linked = self.outer and has_history(tensor)
            own = _C._aten.alias(tensor) if linked else entry(tensor, self._owner)
        self.own.append(own)
        self._entries.append((_node(own), whole(own)._version))
        return own

    def reaches(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on one of our own."""
        entries = {node for node, _ in self._entries}
        return has_history(tensor) and any(each in entries for each in self._nodes(tensor))

    def _nodes(self, tensor: Tensor) -> Iterator[Any]:
        """The nodes that a tensor was made by, down to where histories begin."""
        seen: set[Any] = set()
        waiting = [_node(tensor)]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                yield node
                if _owner(node) is None:
                    waiting += [each for each, _ in node.next_functions if each is not None]

    def goes_on(self, tensor: Tensor) -> bool:
        """Whether the caller may differentiate a tensor: it depends on more than our own, namely
        on leaves of the program or on tensors of a transform around this one."""
        if not self.outer or not has_history(tensor):
            return False
        entries = {node for node, _ in self._entries}
        for node in self._nodes(tensor):
            owner = _owner(node)
            if owner in _active and owner is not self._owner:
                return True
            is_leaf = owner is None and node.name().endswith("AccumulateGrad")
            if is_leaf and node not in entries:
                return True
        return False

    def leave(self, value: Any) -> Any:
        """A result as the caller gets it."""
        if not isinstance(value, Tensor) or not has_history(value) or self.goes_on(value):
            return value
        return value.detach()

    def leave_all(self, values: Any) -> Any:
        """Nested results as the caller gets them."""
        return tree_map(self.leave, values)

    def gradients(
        self,
        outputs: list[Tensor],
        vectors: list[Tensor],
        retain_graph: bool = True,
        create_graph: bool | None = None,
    ) -> list[Tensor]:
        """Vectors times the Jacobian of the outputs, for each of our own tensors."""
        targets = [_beginning(own, *each) for own, each in zip(self.own, self._entries)]
        if create_graph is None:
            create_graph = any(map(self.goes_on, outputs)) or (
                is_grad_enabled() and any(has_history(each) for each in vectors)
            )
        pairs = [(o, v) for o, v in zip(outputs, vectors) if has_history(o)]
        if not pairs:
            return [_C._aten.zeros_like(each.detach()) for each in self.own]
        found = grad(
            [out for out, _ in pairs],
            targets,
            [vector for _, vector in pairs],
            retain_graph=retain_graph or create_graph,
            create_graph=create_graph,
            materialize_grads=True,
        )
        return list(found)


def _beginning(own: Tensor, node: Any, version: int) -> Tensor:
    """The tensor that the history of one of our own began with, which may have been written to."""
    if whole(own)._version == version:
        return own
    if _owner(node) is None:
        raise RuntimeError(
            "func: expected arguments with gradients of the caller's that are not changed in "
            "place, got one that was; change a clone() of it"
        )
    return like(own, node._context.leaf)


def _node(tensor: Tensor) -> Any:
    """The node that a tensor was made by; that of a leaf adds its gradient up."""
    return _C._autograd.gradient_edge(whole(tensor))[0]


def _owner(node: Any) -> Owner | None:
    """Whose history begins with the node, if one does."""
    owner = getattr(getattr(node, "_context", None), "owner", None)
    return owner if isinstance(owner, Owner) else None
