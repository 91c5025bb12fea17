"""Checkpointing: a part of a model keeps its inputs only, and runs again when backward needs it."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft._runtime.repetition import blocks_around, repetition
from weft.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from weft.autograd import _run
from weft.autograd.function import Function
from weft.autograd.grad_mode import enable_grad, no_grad
from weft.autograd.graph import saved_tensors_hooks

__all__ = [
    *("CheckpointError", "checkpoint", "checkpoint_sequential", "detach_variable"),
    *("noop_context_fn", "CheckpointPolicy", "SelectiveCheckpointContext"),
    *("create_selective_checkpoint_contexts",),
]
__getattr__ = lazy.names(__name__, dict.fromkeys(__all__, "weft.utils._selective_checkpoint"))


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one did."""


def noop_context_fn() -> tuple[Any, Any]:
    """The default of `context_fn`: two context managers that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple with its tensors detached, which require a gradient where they did.

    RuntimeError for anything but a tuple.

    >>> x = weft.ones(2, requires_grad=True) * 2
    >>> weft.utils.checkpoint.detach_variable((x, 1))
    (tensor([2., 2.], requires_grad=True), 1)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: expected a tuple, got {type(inputs).__name__}")
    return tuple(map(_detached, inputs))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)` without keeping what its operators save for backward.

    Backward runs the function again, from the same inputs, with the same autocast and
    (preserve_rng_state) the same state of the random generator, and takes what it needs from there.

    - use_reentrant: False keeps the graph and replaces what it saved; True runs the function
      without a graph and calls backward inside of backward (some argument must require grad, and
      `autograd.grad` does not work through it). Should be given; None warns and means True.
    - context_fn: makes the two context managers to run forward and its repetition in; False only.
    - determinism_check: "default" compares shapes and dtypes of what both runs saved, "none" does
      not. Raises CheckpointError where they differ.
    - early_stop: end the repetition as soon as everything is there.
    """
    if use_reentrant is None:
        warnings.warn(
            "weft.utils.checkpoint: expected use_reentrant to be given, got None; it means True, "
            "and use_reentrant=False is recommended",
            stacklevel=2,
        )
        use_reentrant = True
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: expected determinism_check 'default' or 'none', got {determinism_check!r}"
        )
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn:
            raise ValueError("checkpoint: expected no context_fn with use_reentrant=True, got one")
        return _reentrant().apply(function, preserve_rng_state, *args)
    forward_context, again_context = context_fn()
    frame = _Frame(function, args, kwargs, preserve_rng_state, again_context)
    frame.packed = getattr(forward_context, "packed", None)
    frame.check = determinism_check == "default"
    frame.early_stop = early_stop if _early_stop is None else _early_stop
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


checkpoint.__weft_jit__ = "checkpoint"  # type: ignore[attr-defined]


_early_stop: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside of it `early_stop` of checkpoints is `enable`, whatever calls say."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices of tensors and their generators' states: those of GPUs, which are none."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Sets generators of GPUs to what get_device_states told."""


class _Stop(Exception):
    """Ends a repetition that has saved everything."""


class _Frame:
    """One checkpointed call: how to run it again, and what its graph saved."""

    early_stop = True
    check = True

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        keep_state: bool,
        again_context: Any,
    ) -> None:
        self.call = (function, args, kwargs)
        self.surroundings = _Surroundings(keep_state)
        self.again_context = again_context
        self.saved: list[tuple[Any, Any]] = []  # shape and dtype of each
        self.found: dict[int, Tensor] = {}
        self.packed: list[Tensor] | None = None  # what a selective checkpoint wants to know

    def pack(self, tensor: Tensor) -> int:
        self.saved.append((tensor.shape, tensor.dtype))
        if self.packed is not None:
            self.packed.append(tensor)
        return len(self.saved) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.found:
            self.run_again()
        return self.found.pop(number)

    def run_again(self) -> None:
        seen = 0

        def keep(tensor: Tensor) -> int:
            nonlocal seen
            if seen < len(self.saved):
                self.compare(seen, tensor)
                self.found[seen] = tensor.detach()
            seen += 1
            if self.early_stop and seen == len(self.saved):
                raise _Stop
            return seen - 1

        def give(number: int) -> Tensor:  # a backward inside the function
            return self.found[number]

        function, args, kwargs = self.call
        args = tuple(_detached(arg) for arg in args)
        kwargs = {name: _detached(value) for name, value in kwargs.items()}
        with enable_grad(), self.surroundings.again(), self.again_context:
            try:
                with saved_tensors_hooks(keep, give):
                    function(*args, **kwargs)
            except _Stop:
                return
        if seen != len(self.saved):
            raise CheckpointError(
                "checkpoint: expected the same number of saved tensors when run again, got "
                f"{seen} after {len(self.saved)}"
            )

    def compare(self, number: int, tensor: Tensor) -> None:
        shape, dtype = self.saved[number]
        if self.check and (tensor.shape != shape or tensor.dtype != dtype):
            raise CheckpointError(
                f"checkpoint: expected saved tensor {number} of shape {tuple(shape)} and {dtype} "
                f"when run again, got {tuple(tensor.shape)} and {tensor.dtype}"
            )


def _detached(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


class _Surroundings:
    """What a function meets when it is called, and must meet again when it is repeated."""

    def __init__(self, keep_state: bool) -> None:
        self.random = _C.get_rng_state() if keep_state else None
        self.autocast = get_autocast_dtype("cpu"), is_autocast_enabled("cpu")
        self.blocks = blocks_around()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block in which it is as it was."""
        dtype, enabled = self.autocast
        with _rng_state(self.random), autocast("cpu", dtype, enabled), repetition(self.blocks):
            yield


@contextlib.contextmanager
def _rng_state(state: Tensor | None) -> Iterator[None]:
    """Runs the block from another state of the random generator and puts the present one back."""
    if state is None:
        yield
        return
    now = _C.get_rng_state()
    _C.set_rng_state(state)
    try:
        yield
    finally:
        _C.set_rng_state(now)


@functools.cache
def _reentrant() -> Any:
    """The Function of use_reentrant=True."""

    class CheckpointFunction(Function):
        @staticmethod
        def forward(ctx: Any, function: Any, keep_state: bool, *args: Any) -> Any:
            ctx.function = function
            ctx.surroundings = _Surroundings(keep_state)
            tensors = [arg if isinstance(arg, Tensor) else None for arg in args]
            ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
            ctx.save_for_backward(*tensors)
            if not any(t is not None and t.requires_grad for t in tensors):
                warnings.warn(
                    "None of the inputs have requires_grad=True. Gradients will be None",
                    stacklevel=4,
                )
            with no_grad():
                return function(*args)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            args = [
                other if saved is None else _detached(saved)
                for saved, other in zip(ctx.saved_tensors, ctx.others)
            ]
            with enable_grad(), ctx.surroundings.again():
                outputs = ctx.function(*args)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            pairs = [
                (out, grad)
                for out, grad in zip(outputs, grads)
                if isinstance(out, Tensor) and out.requires_grad
            ]
            if not pairs:
                raise RuntimeError("checkpoint: expected an output that requires grad, got none")
            _run.backward([out for out, _ in pairs], [grad for _, grad in pairs])
            found = (arg.grad if isinstance(arg, Tensor) else None for arg in args)
            return (None, None, *found)

    return CheckpointFunction


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs functions (or a Sequential) one after the other, in `segments` checkpointed parts.

    The last part is not checkpointed: backward starts there. kwargs: preserve_rng_state.
    """
    if use_reentrant is None:
        warnings.warn(
            "weft.utils.checkpoint: expected use_reentrant to be given, got None; it means True",
            stacklevel=2,
        )
        use_reentrant = True
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    start = 0
    for start in range(0, size * (segments - 1), size or 1):
        run = part(start, start + size)
        input = checkpoint(run, input, use_reentrant=use_reentrant, **kwargs)
    return part(size * (segments - 1), len(steps))(input)
