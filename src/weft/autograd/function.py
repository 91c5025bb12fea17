"""Custom differentiable functions: forward and backward written in Python."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad

_autograd = _C._autograd
is_grad_enabled = _autograd.is_grad_enabled


class FunctionCtx:
    """What forward hands to backward. One object per call; free attributes may be set on it."""

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True
    _to_save: tuple[Tensor | None, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _constants: tuple[Tensor, ...] = ()
    _link: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps inputs or outputs for backward; changing them in place later is an error there."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                got = type(tensor).__name__
                raise TypeError(f"save_for_backward: expected Tensors or None, got {got}")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for a `jvp`, which weft derives from backward: they are checked alone."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                got = type(tensor).__name__
                raise TypeError(f"save_for_forward: expected Tensors or None, got {got}")

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What save_for_backward kept. RuntimeError when it was changed in place or freed.

        Each requires grad where it did when it was saved, in a backward that records nothing too.
        """
        if self._link is None:
            return self._to_save
        return self._link.saved_tensors()

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "saved_variables is deprecated; use saved_tensors", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says that forward changed these inputs in place; they must be returned as well."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says that these outputs have no gradient."""
        self._constants = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """With False, backward gets None instead of zeros for outputs without a gradient."""
        self.materialize_grads = value


class Function:
    """A differentiable function with its own backward.

        class Square(weft.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * x * grad

        y = Square.apply(x)

    `forward` runs without recording. `backward` takes one gradient per output and returns one per
    argument of forward, None for those that are no tensors or need none; for second derivatives it
    must consist of differentiable operators. With a static method `setup_context(ctx, inputs,
    output)`, forward is written without `ctx`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise RuntimeError(f"{name}: expected a call of {name}.apply(...), got an instance")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs: `forward(ctx, *args)`."""
        raise NotImplementedError("Function: expected a static method forward, got none")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Saves what backward needs, where forward takes no `ctx`."""
        raise NotImplementedError("Function: expected a static method setup_context, got none")

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """Computes the gradients of the arguments of forward."""
        raise NotImplementedError("Function: expected a static method backward, got none")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward and records the call."""
        recorder = _C._recorder()
        if recorder is not None:  # weft.jit.trace
            return recorder.override("apply", (cls, *args), {})
        if cls.setup_context is not Function.setup_context:
            args = _with_defaults(cls.forward, args)
        ctx = FunctionCtx()
        needs = tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        record = is_grad_enabled() and any(needs)
        ctx.needs_input_grad = needs if record else (False,) * len(args)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        if not record:
            return output
        outputs = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        outputs = _record(cls, ctx, args, outputs)
        return outputs if isinstance(output, (tuple, list)) else outputs[0]


def _with_defaults(forward: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of forward with those that it has by default: setup_context gets all."""
    defaults = getattr(forward, "__defaults__", None) or ()
    n = forward.__code__.co_argcount - hasattr(forward, "__self__") if defaults else 0
    return (*args, *defaults[len(args) - n :]) if 0 < n - len(args) <= len(defaults) else args


def _record(
    cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], outputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    name = f"{cls.__name__}Backward"
    constants = ctx._constants

    others = [i for i, output in enumerate(outputs) if not isinstance(output, Tensor)]

    def run(*grads: Any) -> Any:
        if others:
            grads = tuple(None if i in others else grad for i, grad in enumerate(grads))
        return _checked(name, args_are_tensors, cls.backward(ctx, *grads))

    args_are_tensors = tuple(isinstance(arg, Tensor) for arg in args)
    link, outputs = _autograd.record_function(
        name, run, ctx, ctx.materialize_grads, args, outputs, ctx._dirty, constants, ctx._to_save
    )
    ctx._link = link
    ctx._to_save = ctx._dirty = ctx._constants = ()  # the node keeps what is needed
    return outputs


def _checked(name: str, args_are_tensors: tuple[bool, ...], result: Any) -> tuple[Any, ...]:
    """The gradients that backward returned, as many as forward has arguments."""
    grads = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    count = len(args_are_tensors)
    if len(grads) < count or any(grad is not None for grad in grads[count:]):
        raise RuntimeError(f"{name}: expected {count} gradients, got {len(grads)}")
    for i, (grad, is_tensor) in enumerate(zip(grads, args_are_tensors)):
        if grad is not None and not is_tensor:
            got = type(grad).__name__
            raise RuntimeError(
                f"{name}: expected None as gradient of argument {i}, which is no tensor, got {got}"
            )
    return grads[:count]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that cannot be differentiated: doing so raises an error."""

    @functools.wraps(backward)
    def wrapped(ctx: FunctionCtx, *grads: Any) -> Any:
        with no_grad():
            result = backward(ctx, *grads)
        if not is_grad_enabled():
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        inputs = tuple(g for g in (*grads, *ctx.saved_tensors) if isinstance(g, Tensor))
        if not any(tensor.requires_grad for tensor in inputs):
            return result
        outputs = _autograd.once_differentiable(inputs, outputs)
        return outputs if isinstance(result, tuple) else outputs[0]

    return wrapped
