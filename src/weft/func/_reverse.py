"""grad, grad_and_value, vjp and jacrev: derivatives by backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.functional import joined, units
from weft.autograd.grad_mode import is_grad_enabled
from weft.func._arguments import Argnums, Chosen, output_tensors, split_aux
from weft.func._histories import History
from weft.utils._pytree import tree_flatten, tree_unflatten


class Recorded:
    """One call of a function, recorded: its output, and Jacobians from there back."""

    def __init__(
        self,
        op: str,
        func: Callable[..., Any],
        chosen: Chosen,
        kwargs: dict[str, Any],
        has_aux: bool,
    ) -> None:
        self.op, self.chosen = op, chosen
        self.history = History(chosen.tensors)
        lent = chosen.others(kwargs)
        if op in ("jvp", "jacfwd", "linearize"):  # elsewhere our own are leaves to the function
            lent += self.history.own
        with self.history.calling(lent):
            result = chosen.call(func, self.history.own, kwargs)
        self.output, aux = split_aux(op, result, has_aux)
        self.aux = self.history.leave_all(aux)


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives (gradients, value) of func, which returns a 0-d tensor.

    - argnums: which arguments to differentiate for: one, or a tuple, which gives a tuple. An
      argument may be a nest of lists, tuples and dicts; so is its gradient.
    - has_aux: func returns (output, aux); the result is (gradients, (value, aux)).

    RuntimeError where func returns anything but a floating 0-d tensor.

    >>> weft.func.grad_and_value(lambda x: (x ** 2).sum())(weft.ones(2))
    (tensor([2., 2.]), tensor(2.))
    """
    op = "grad"

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        done = Recorded(op, func, Chosen(op, argnums, args), kwargs, has_aux)
        output, history = done.output, done.history
        if not isinstance(output, Tensor) or output.dim() != 0:
            got = f"{output.dim()}-d one" if isinstance(output, Tensor) else type(output).__name__
            raise RuntimeError(f"{op}: expected a function that returns a 0-d Tensor, got {got}")
        if output.is_complex():
            raise RuntimeError(f"{op}: expected a real output, got {str(output.dtype)[6:]}")
        ones = _C._aten.ones_like(output.detach())
        gradients = history.gradients([output], [ones], retain_graph=False)
        value = history.leave(output)
        return done.chosen.like(gradients), (value, done.aux) if has_aux else value

    return call


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradients of func, which returns a 0-d tensor.

    Arguments and errors as for `grad_and_value`; with has_aux the result is (gradients, aux).
    Transforms nest, and go together with `vmap`.

    >>> weft.func.grad(weft.func.grad(weft.sin))(weft.tensor(0.0))
    tensor(-0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(func(*primals), the function that multiplies vectors with its Jacobian).

    The second takes vectors in the structure and sizes of the output, and gives a tuple of
    gradients, one for each of primals (one alone for one). has_aux: func returns (output, aux),
    and aux comes third. RuntimeError for outputs that are no floating or complex tensors.

    >>> output, back = weft.func.vjp(weft.sin, weft.zeros(2))
    >>> back(weft.ones(2))
    (tensor([1., 1.]),)
    """
    done = Recorded("vjp", func, Chosen("vjp", tuple(range(len(primals))), primals), {}, has_aux)
    outputs, spec = output_tensors("vjp", done.output)

    def back(
        *cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors, got = tree_flatten(given)
        if got != spec:
            raise RuntimeError(
                f"vjp: expected vectors in the structure of the output, {spec}, got {got}"
            )
        for vector, output in zip(vectors, outputs):
            if not isinstance(vector, Tensor) or vector.shape != output.shape:
                shape = tuple(getattr(vector, "shape", ()))
                raise RuntimeError(
                    f"vjp: expected a vector of shape {tuple(output.shape)}, got {shape}"
                )
        found = done.history.gradients(outputs, vectors, retain_graph, create_graph)
        return done.chosen.like(found if is_grad_enabled() else [each.detach() for each in found])

    output = tree_unflatten([done.history.leave(each) for each in outputs], spec)
    return (output, back, done.aux) if has_aux else (output, back)


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of func, a row at a time, by backward.

    For each output and each argument of argnums a tensor of shape (*output, *argument), in the
    structure of the output, each in that of the arguments. has_aux: func returns (output, aux), and
    the result is (Jacobian, aux). chunk_size has no effect: one row is computed at a time.
    RuntimeError for complex arguments, and for outputs that are no floating tensors.

    >>> weft.func.jacrev(lambda x: x ** 2)(weft.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: expected chunk_size above 0, got {chunk_size}")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        done = Recorded("jacrev", func, Chosen("jacrev", argnums, args), kwargs, has_aux)
        outputs, spec = output_tensors("jacrev", done.output)
        rows = [done.chosen.like(_rows(done.history, output)) for output in outputs]
        jacobian = tree_unflatten(rows, spec)
        return (jacobian, done.aux) if has_aux else jacobian

    return call


def _rows(history: History, output: Tensor) -> list[Tensor]:
    """The Jacobians of one output for each of our own tensors."""
    create = history.goes_on(output)
    found = [history.gradients([output], [unit], create_graph=create) for unit in units(output)]
    return joined(found, output, history.own)
