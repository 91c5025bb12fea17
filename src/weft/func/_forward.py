"""jvp, linearize, jacfwd and hessian: derivatives along tangents.

Backward gives v J, which is linear in v: its derivative in the direction of a tangent t is J t. So
one backward of backward is forward mode, exact for every operator with a gradient that can be
differentiated, and no operator needs a rule of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd._run import grad as backward_grad
from weft.autograd.functional import units
from weft.autograd.grad_mode import enable_grad, is_grad_enabled
from weft.func._arguments import Argnums, Chosen, output_tensors
from weft.func._batched import has_history
from weft.func._histories import History, Owner, entry
from weft.func._reverse import Recorded, jacrev
from weft.utils._pytree import TreeSpec, tree_flatten, tree_unflatten


class Forward:
    """Products of the Jacobian of recorded outputs with tangents of the history's own tensors."""

    def __init__(self, history: History, outputs: list[Tensor]) -> None:
        self._outputs = outputs
        self._goes_on = any(map(history.goes_on, outputs))
        with enable_grad():
            self._seeds = [_seed(each) for each in outputs]
            self._products = history.gradients(outputs, self._seeds, create_graph=True)

    def along(self, tangents: list[Tensor]) -> list[Tensor]:
        """A tangent for each output; zeros where nothing flows."""
        pairs = [(p, t) for p, t in zip(self._products, tangents) if has_history(p)]
        seeds = [each for each in self._seeds if has_history(each)]
        found: Any = iter(())
        if pairs and seeds:
            recorded = is_grad_enabled() and any(has_history(t) for _, t in pairs)
            found = iter(
                backward_grad(
                    [product for product, _ in pairs],
                    seeds,
                    [tangent for _, tangent in pairs],
                    retain_graph=True,
                    create_graph=self._goes_on or recorded,
                    materialize_grads=True,
                )
            )
        zeros = _C._aten.zeros_like
        return [
            next(found, zeros(output.detach())) if has_history(seed) else zeros(output)
            for output, seed in zip(self._outputs, self._seeds)
        ]


def _seed(output: Tensor) -> Tensor:
    zeros = _C._aten.zeros_like(output.detach())
    return entry(zeros, Owner()) if has_history(output) else zeros


def _checked_tangents(op: str, chosen: Chosen, spec: TreeSpec, tangents: Any) -> list[Tensor]:
    leaves, got = tree_flatten(tangents)
    if got != spec:
        raise RuntimeError(f"{op}: expected tangents in the structure of primals, got {got}")
    for tangent, primal in zip(leaves, chosen.tensors):
        if not isinstance(tangent, Tensor) or tangent.shape != primal.shape:
            shape = tuple(getattr(tangent, "shape", ()))
            raise RuntimeError(
                f"{op}: expected a tangent of shape {tuple(primal.shape)}, got {shape}"
            )
        if tangent.dtype != primal.dtype:
            raise RuntimeError(
                f"{op}: expected a tangent of {str(primal.dtype)[6:]}, got {str(tangent.dtype)[6:]}"
            )
    return leaves


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """(func(*primals), the Jacobian times tangents), both in the structure of the output.

    - primals, tangents: tuples of equal structure; a tangent has its primal's shape and dtype.
    - strict: RuntimeError where an output does not depend on primals, instead of zeros.
    - has_aux: func returns (output, aux), and aux comes third.

    >>> weft.func.jvp(weft.sin, (weft.zeros(2),), (weft.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        got = type(tangents if isinstance(primals, tuple) else primals).__name__
        raise RuntimeError(f"jvp: expected primals and tangents as tuples, got {got}")
    if not primals:
        raise RuntimeError("jvp: expected at least one of primals, got none")
    chosen = Chosen("jvp", tuple(range(len(primals))), primals)
    vectors = _checked_tangents("jvp", chosen, tree_flatten(primals)[1], tangents)
    done = Recorded("jvp", func, chosen, {}, has_aux)
    outputs, spec = output_tensors("jvp", done.output)
    if strict and not all(has_history(each) for each in outputs):
        raise RuntimeError("jvp: expected outputs that depend on primals, got one that does not")
    found = Forward(done.history, outputs).along(vectors)
    output = tree_unflatten([done.history.leave(each) for each in outputs], spec)
    tangent = tree_unflatten(found, spec)
    return (output, tangent, done.aux) if has_aux else (output, tangent)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(func(*primals), the function that multiplies its Jacobian with tangents).

    The second takes a tangent for each of primals and calls func no more.

    >>> output, along = weft.func.linearize(weft.sin, weft.zeros(2))
    >>> along(weft.ones(2))
    tensor([1., 1.])
    """
    chosen = Chosen("linearize", tuple(range(len(primals))), primals)
    structure = tree_flatten(primals)[1]
    done = Recorded("linearize", func, chosen, {}, False)
    outputs, spec = output_tensors("linearize", done.output)
    forward = Forward(done.history, outputs)

    def along(*tangents: Any) -> Any:
        vectors = _checked_tangents("linearize", chosen, structure, tangents)
        return tree_unflatten(forward.along(vectors), spec)

    return tree_unflatten([done.history.leave(each) for each in outputs], spec), along


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that gives the Jacobian of func, a column at a time: fewer steps than `jacrev`
    where the arguments have fewer elements than the outputs. The result is as for `jacrev`.

    randomness has no effect: func is called once.

    >>> weft.func.jacfwd(lambda x: x ** 2)(weft.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        done = Recorded("jacfwd", func, Chosen("jacfwd", argnums, args), kwargs, has_aux)
        outputs, spec = output_tensors("jacfwd", done.output)
        columns = list(_columns(done.history, outputs))
        rows = [
            done.chosen.like([per_input[i] for per_input in columns]) for i in range(len(outputs))
        ]
        jacobian = tree_unflatten(rows, spec)
        return (jacobian, done.aux) if has_aux else jacobian

    return call


def _columns(history: History, outputs: list[Tensor]) -> Iterator[list[Tensor]]:
    """For each of the history's own tensors the Jacobians of all outputs."""
    forward = Forward(history, outputs)
    zeros = [_C._aten.zeros_like(each.detach()) for each in history.own]
    for place, own in enumerate(history.own):
        found = [
            forward.along([*zeros[:place], unit, *zeros[place + 1 :]])
            for unit in units(own.detach())
        ]
        shapes = [(*output.shape, *own.shape) for output in outputs]
        if found:
            yield [_C._aten.stack(c, -1).reshape(s) for c, s in zip(zip(*found), shapes)]
        else:
            yield [output.detach().new_zeros(s) for output, s in zip(outputs, shapes)]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of func: tensors of shape (*output, *argument,
    *argument), in the structure of `jacrev` of `jacrev`.

    >>> weft.func.hessian(lambda x: (x ** 3).sum())(weft.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
