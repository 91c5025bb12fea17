"""`backward` and `grad`: the two ways to start the engine."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

from weft import _C
from weft._C import Tensor
from weft.autograd.graph import GradientEdge

Tensors: TypeAlias = Tensor | GradientEdge | Iterable[Tensor | GradientEdge]
_ONE = (Tensor, GradientEdge)
Gradients: TypeAlias = Tensor | Iterable[Tensor | None] | None


class Levels(threading.local):
    """`current`: this thread's level of forward_ad, in which gradients have tangents as well."""

    current: Any = None


levels = Levels()


def backward(
    tensors: Tensors,
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Gradients = None,
    inputs: Tensors | None = None,
) -> None:
    """Adds the gradient of `tensors` into the `.grad` of every leaf they were made from.

    - grad_tensors: one gradient per tensor, of its shape; None is allowed for one-element tensors.
    - retain_graph: keep what backward needs, so that it can run again; default: `create_graph`.
    - create_graph: record the gradients as well, for higher derivatives.
    - grad_variables: the old name of `grad_tensors`.
    - inputs: compute only the gradients of these, leaves or not.

    Edges of the graph (weft.autograd.graph.get_gradient_edge) may stand for tensors; among `inputs`
    only those of leaves have a `.grad` to fill. Raises RuntimeError when a tensor does not require
    grad, when a gradient is missing or has the wrong shape, and when the graph was freed by an
    earlier backward.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: expected grad_tensors or grad_variables, got both")
        grad_tensors = grad_variables
    roots = _as_tuple("backward", "tensors", tensors)
    targets = () if inputs is None else _as_tuple("backward", "inputs", inputs)
    if inputs is not None and not targets:
        raise RuntimeError("backward: expected at least one of inputs, got none")
    retain = create_graph if retain_graph is None else retain_graph
    gradients = _gradients("backward", grad_tensors, len(roots))
    _start(roots, gradients, targets, retain, create_graph, True, True)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Returns the gradient of `outputs` with respect to each of `inputs`; no `.grad` changes.

    - grad_outputs: one gradient per output, of its shape; None is allowed for one-element outputs.
    - retain_graph, create_graph: as for `backward`.
    - only_inputs: has no effect; False warns.
    - allow_unused: give None for inputs that the outputs do not depend on, instead of an error;
      default: `materialize_grads`.
    - is_grads_batched: the first dim of each of `grad_outputs` counts gradients; the results get
      that dim as well.
    - materialize_grads: give zeros instead of None for such inputs.

    Edges of the graph (weft.autograd.graph.get_gradient_edge) may stand for tensors. Within a
    level of forward_ad graphs stay, and the gradients' own is made. Raises RuntimeError as
    `backward` does.
    """
    if levels.current is not None:
        create_graph = retain_graph = True
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: expected allow_unused=True with materialize_grads=True, got False")
    roots = _as_tuple("grad", "outputs", outputs)
    targets = _as_tuple("grad", "inputs", inputs)
    gradients = _gradients("grad", grad_outputs, len(roots))
    if is_grads_batched:
        flags = (create_graph, allow_unused, materialize_grads)
        return _grad_batched(roots, targets, gradients, retain_graph, *flags)
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    result = _start(roots, gradients, targets, retain, create_graph, False, unused)
    result = tuple(_as_of(target, got) for target, got in zip(targets, result))
    if materialize_grads:
        return tuple(
            _zeros_of(target) if got is None else got for target, got in zip(targets, result)
        )
    return result


def _zeros_of(target: Tensor | GradientEdge) -> Tensor:
    if isinstance(target, GradientEdge):
        raise RuntimeError(
            "grad: expected inputs that the outputs depend on where they are edges of the graph, "
            "got another with materialize_grads=True"
        )
    return _C.zeros_like(target)


def _as_of(target: Tensor | GradientEdge, got: Tensor | None) -> Tensor | None:
    """The gradient of a tensor whose class has its own (weft.sparse) as one of that class."""
    made = None if got is None else getattr(type(target), "_gradient", None)
    return got if made is None else made(target, got)


def _start(*args: Any) -> Any:
    recorder = _C._recorder()
    if recorder is not None:  # weft.jit.trace
        return recorder.override("run_backward", args, {})
    return _C._autograd.run_backward(*args)


def _grad_batched(
    outputs: tuple[Tensor | GradientEdge, ...],
    inputs: tuple[Tensor | GradientEdge, ...],
    batch: tuple[Tensor | None, ...],
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> tuple[Tensor, ...]:
    """`grad` once for each gradient of the batch; the results stacked."""
    sizes = {one.size(0) for one in batch if one is not None and one.dim() > 0}
    if len(sizes) != 1 or any(one is not None and one.dim() == 0 for one in batch):
        raise RuntimeError(
            "grad: expected grad_outputs with the same first dim for is_grads_batched=True, got "
            f"{[None if one is None else tuple(one.shape) for one in batch]}"
        )
    (count,) = sizes
    retain = create_graph if retain_graph is None else retain_graph
    rows = [
        grad(
            outputs,
            inputs,
            [None if one is None else one[i] for one in batch],
            retain_graph=retain or i + 1 < count,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
        for i in range(count)
    ]
    if not rows:
        return tuple(_C.stack([_zeros_of(each)])[:0] for each in inputs)
    return tuple(
        None if column[0] is None else _C.stack(column)  # type: ignore[misc]
        for column in zip(*rows)
    )


def _as_tuple(op: str, what: str, value: Tensors) -> tuple[Any, ...]:
    if type(value) in (list, tuple):
        return tuple(value)
    if isinstance(value, _ONE):
        return (value,)
    if not isinstance(value, Iterable):
        got = type(value).__name__
        raise TypeError(f"{op}: expected {what} as a Tensor or a sequence of them, got {got}")
    return tuple(value)


def _gradients(op: str, value: Gradients, count: int) -> tuple[Tensor | None, ...]:
    if value is None:
        return (None,) * count
    return _as_tuple(op, "gradients", value)  # type: ignore[arg-type]
