"""The recorded graph as Python sees it: nodes, and the hooks of nodes and tensors."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._runtime.hooks import RemovableHandle

_autograd = _C._autograd
Node = _autograd.Node


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives: result `output_nr` of `node`.

    It stands for its tensor in weft.autograd.grad and backward. The node keeps its part of the
    graph alive; `ownership_token`, which does in PyTorch, is None.

    >>> x = weft.ones(2, requires_grad=True)
    >>> edge, y = get_gradient_edge(x), x * 3
    >>> weft.autograd.grad(y.sum(), edge)
    (tensor([3., 3.]),)
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor: its grad_fn, or for a leaf the node that fills `.grad`.

    Raises RuntimeError when the tensor does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "get_gradient_edge: expected a tensor that requires grad, got one that does not"
        )
    return GradientEdge(*_autograd.gradient_edge(tensor))


class _SavedHooks(threading.local):
    """Of a thread: how many blocks of hooks it is in, and the error of those that are disabled."""

    depth = 0
    refusal: str | None = None


_saved_hooks = _SavedHooks()


class saved_tensors_hooks:
    """Inside the `with` block, what a graph saves goes through a pair of functions.

    `pack_hook(tensor)` is called, without recording, for each tensor saved for backward; whatever
    it returns is kept instead. `unpack_hook(packed)` must give a tensor of the same contents, when
    backward asks for it. It may not change its argument in place. Blocks nest: the innermost pair
    counts. Changes in place after packing are not noticed. An operand is packed as it is; a result
    comes without history, so that keeping it makes no cycle. What is unpacked gets the history of
    the tensor that was saved, whatever history the hook gave it.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _saved_hooks.refusal is not None:
            raise RuntimeError(_saved_hooks.refusal)
        for hook in (self.pack_hook, self.unpack_hook):
            if not callable(hook):
                got = type(hook).__name__
                raise TypeError(f"saved_tensors_hooks: expected two callables, got {got}")
        _autograd.push_saved_hooks(self.pack_hook, self.unpack_hook)
        _saved_hooks.depth += 1

    def __exit__(self, *exception: object) -> None:
        _saved_hooks.depth -= 1
        _autograd.pop_saved_hooks()


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the `with` block, saved_tensors_hooks raises RuntimeError with this message.

    So does the block itself where the thread is inside of hooks already. Blocks nest: the innermost
    message counts.

    >>> with disable_saved_tensors_hooks("no hooks here"), save_on_cpu():
    ...     pass
    Traceback (most recent call last):
    RuntimeError: no hooks here
    """
    if _saved_hooks.depth > 0:
        raise RuntimeError(error_message)
    before, _saved_hooks.refusal = _saved_hooks.refusal, error_message
    try:
        yield
    finally:
        _saved_hooks.refusal = before


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Counts a write to a tensor, or to several, that was done past the library: a graph that saved
    one raises in backward. Tensors of inference mode, which count none, stay as they are. TypeError
    for what is no tensor.

    >>> x = weft.zeros(2)
    >>> increment_version(x)
    >>> x._version
    1
    """
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(each, Tensor):
            raise TypeError(f"increment_version: expected tensors, got {type(each).__name__}")
        if not each.is_inference():
            each.detach().as_strided((0,), (1,)).zero_()


class save_on_cpu(saved_tensors_hooks):
    """Inside the `with` block, what a graph saves is kept in the memory of the processor.

    All memory is, so this keeps the tensors as they are; code written for accelerators runs
    unchanged. pin_memory has no effect.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(
            lambda tensor: (tensor.device, tensor.cpu()), lambda kept: kept[1].to(kept[0])
        )


class allow_mutation_on_saved_tensors:
    """Inside the `with` block, what a graph saves may be changed in place before backward.

    The graph keeps a copy of each saved tensor, made when it is saved (PyTorch makes it when the
    tensor is first changed), so backward gives the gradients of the values at that time. It has to
    run inside the block as well. Blocks do not nest: RuntimeError.
    """

    _active = False

    def __init__(self) -> None:
        self._hooks = saved_tensors_hooks(lambda tensor: tensor.clone(), self._unpack)
        self._open = False

    def _unpack(self, kept: Tensor) -> Tensor:
        if not self._open:
            raise RuntimeError(
                "allow_mutation_on_saved_tensors: expected backward inside the block whose graph "
                "it goes through, got one after its end"
            )
        return kept

    def __enter__(self) -> allow_mutation_on_saved_tensors:
        if allow_mutation_on_saved_tensors._active:
            raise RuntimeError(
                "allow_mutation_on_saved_tensors: expected one block, got a nested one"
            )
        self._hooks.__enter__()
        allow_mutation_on_saved_tensors._active = self._open = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._hooks.__exit__(*exception)
        allow_mutation_on_saved_tensors._active = self._open = False


class HookHandle(RemovableHandle):
    """Removes a hook again: `handle.remove()`, or at the end of a `with` block."""

    def __init__(self, node: Any, id: int) -> None:
        self._node = node
        self.id = id

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._node._remove_hook(self.id)


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Calls `hook(grad)` whenever the gradient of this tensor is known; with None where backward
    comes to it without one, as to a result that is not used.

    A tensor of the same shape and dtype that the hook returns replaces the gradient. Raises
    RuntimeError when the tensor does not require grad.
    """
    return HookHandle(*_autograd.register_hook(self, hook))


class MultiHookHandle(RemovableHandle):
    """Removes the hooks of several tensors again: `handle.remove()`, or by a `with` block."""

    def __init__(self, handles: Sequence[HookHandle]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        """Removes the hooks; a second call does nothing."""
        for handle in self._handles:
            handle.remove()


class _Gathered:
    """The gradients of several tensors in one run of backward."""

    def __init__(self, tensors: Sequence[Tensor], call: Callable[[Any], None], every: bool) -> None:
        self.nodes = [get_gradient_edge(tensor).node for tensor in tensors]
        self.call, self.every = call, every
        self.local = threading.local()  # a run of backward stays in its thread

    def arrived(self, index: int, grad: Tensor) -> None:
        running = _autograd.running_backwards()
        runs: dict[int, list[Any]] = getattr(self.local, "runs", {})
        self.local.runs = runs = {run: runs[run] for run in running if run in runs}
        if running[0] not in runs:
            wanted = sum(map(_autograd.takes_part, self.nodes)) if self.every else 1
            runs[running[0]] = [wanted, [None] * len(self.nodes)]
        state = runs[running[0]]
        state[0] -= 1
        state[1][index] = grad
        if state[0] == 0:
            self.call(state[1] if self.every else grad)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> MultiHookHandle:
    """Calls fn once a run of backward, for several tensors together.

    mode="all": `fn(grads)` when the gradients of all `tensors` that the run reaches are known, None
    for the others. mode="any": `fn(grad)` with the first of them; tensors that do not require grad
    are passed over. Raises ValueError for other modes and, with "all", RuntimeError for such a
    tensor.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: expected mode 'all' or 'any', got {mode!r}")
    if not callable(fn):
        raise TypeError(f"register_multi_grad_hook: expected a callable, got {type(fn).__name__}")
    if mode == "any":
        tensors = [tensor for tensor in tensors if tensor.requires_grad]
    gathered = _Gathered(tensors, fn, mode == "all")

    def hook_of(index: int) -> Callable[[Tensor], None]:
        return lambda grad: gathered.arrived(index, grad)

    return MultiHookHandle([register_hook(t, hook_of(i)) for i, t in enumerate(tensors)])


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> HookHandle:
    """Calls `hook(tensor)` after backward has added to the `.grad` of this leaf.

    During backward raises RuntimeError where the hook returns another tensor than the leaf, and
    TypeError where it returns something else than None.
    """
    tensor = weakref.ref(self)

    def run() -> None:
        target = tensor()
        if target is None or (got := hook(target)) is None or got is target:
            return
        raise (RuntimeError if isinstance(got, Tensor) else TypeError)(
            "register_post_accumulate_grad_hook: expected a hook that returns None, "
            f"got {type(got).__name__}"
        )

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


def _register_hook_dict(self: Any, tensor: Tensor) -> None:
    """What tensor._backward_hooks holds is called, in its order, as hooks of the tensor are."""
    hooks = tensor._backward_hooks

    def run(grad: Tensor | None) -> Tensor | None:
        for hook in list(hooks.values()):
            found = hook(grad)
            grad = grad if found is None else found
        return grad

    _autograd.register_hook(tensor, run)


def _node_getattr(self: Any, name: str) -> Any:
    """Nodes of leaves show their `variable`, those of custom Functions what is on their `ctx`."""
    if name == "variable" and self.name() == "torch::autograd::AccumulateGrad":
        return self._leaf
    context = None if name.startswith("__") else self._context
    if context is None:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
    return getattr(context, name)


def _node_setattr(self: Any, name: str, value: Any) -> None:
    """Attributes of the node of a custom Function are those of its `ctx`."""
    context = self._context
    if context is None:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
    setattr(context, name, value)


Node.__getattr__ = _node_getattr
Node.__setattr__ = _node_setattr
Node.register_hook = _node_register_hook
Node.register_prehook = _node_register_prehook
Node._register_hook_dict = _register_hook_dict
Tensor._backward_hooks = None  # type: ignore[attr-defined]
Tensor.register_hook = register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
