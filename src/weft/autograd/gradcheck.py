"""Gradients against finite differences.

For an input x, a random direction u and random weights v of an output y, the derivative of <v, y>
along u is computed twice: as <gradient of x, u>, and as the central difference

    (<v, y(x + eps u)> - <v, y(x - eps u)>) / (2 eps)

One number per pair of input and output is compared, so the check costs two calls per input however
large it is, and a wrong entry of the gradient shows with probability one. Inner products of complex
values are Re(conj(a) b).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import weft
from weft._C import Tensor
from weft.autograd._run import grad
from weft.autograd.grad_mode import enable_grad, no_grad

Function = Callable[..., Any]


class GradcheckError(RuntimeError):
    """A gradient that differs from finite differences."""


def gradcheck(
    func: Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Checks the gradients of `func(*inputs)` in every input that requires grad.

    - inputs: those that require grad must be float64 or complex128 (TypeError otherwise).
    - eps: step of the finite differences.
    - atol, rtol: |got - expected| <= atol + rtol * |expected|, for a direction of length one per
      entry on average.
    - raise_exception: False returns False instead of raising GradcheckError.
    - nondet_tol: how far two runs of backward may differ.

    Returns True when all gradients agree.
    """
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _checked_inputs(args)
    try:
        for seed, index in enumerate(checked):
            _check_input(func, args, index, seed, (eps, atol, rtol, nondet_tol))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Checks the second derivatives: gradcheck of the gradients of `func`.

    - grad_outputs: gradients of the outputs to start from; random ones by default.
    - The other arguments are those of `gradcheck`.
    """
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _checked_inputs(args)
    if grad_outputs is None:
        outputs = _outputs(func, args)
        starts = [_direction(out, seed).requires_grad_() for seed, out in enumerate(outputs)]
    else:
        starts = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        own, given = values[: len(args)], values[len(args) :]
        outputs = _outputs(func, own)
        targets = [own[i] for i in checked]
        result = grad(outputs, targets, given, create_graph=True, allow_unused=True)
        return tuple(g for g in result if g is not None)

    # Finite differences call `gradients` with values that have no history.
    def function(*values: Any) -> tuple[Tensor, ...]:
        with enable_grad():
            fresh = list(values)
            for i in checked:
                if not fresh[i].requires_grad:
                    fresh[i] = fresh[i].detach().requires_grad_()
            return gradients(*fresh)

    return gradcheck(
        function,
        (*args, *starts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )


def _checked_inputs(args: tuple[Any, ...]) -> list[int]:
    checked = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
    if not checked:
        raise ValueError("gradcheck: expected an input that requires grad, got none")
    for i in checked:
        if args[i].dtype not in (weft.float64, weft.complex128):
            raise TypeError(
                f"gradcheck: expected inputs of dtype float64 or complex128, got {args[i].dtype} "
                f"for input {i}"
            )
    return checked


def _outputs(func: Function, args: Sequence[Any]) -> list[Tensor]:
    """The outputs that may have a gradient."""
    result = func(*args)
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    return [
        out
        for out in outputs
        if isinstance(out, Tensor) and (out.is_floating_point() or out.is_complex())
    ]


def _check_input(
    func: Function,
    args: tuple[Any, ...],
    index: int,
    seed: int,
    tolerances: tuple[float, float, float, float],
) -> None:
    eps, atol, rtol, nondet_tol = tolerances
    direction = _direction(args[index], 1000 + seed)
    with enable_grad():
        outputs = _outputs(func, args)
    weights = [_direction(out, 2000 + i) for i, out in enumerate(outputs)]
    high = _shifted(func, args, index, direction, eps)
    low = _shifted(func, args, index, direction, -eps)
    for i, (out, weight) in enumerate(zip(outputs, weights)):
        expected = (_inner(weight, high[i]) - _inner(weight, low[i])) / (2 * eps)
        got = _derivative(out, args[index], weight, direction)
        again = _derivative(out, args[index], weight, direction)
        if abs(got - again) > nondet_tol:
            raise GradcheckError(
                f"gradcheck: expected the same gradient twice, got {got:.10g} and {again:.10g} "
                f"(output {i}, input {index})"
            )
        if not abs(got - expected) <= atol + rtol * abs(expected):
            raise GradcheckError(
                f"gradcheck: expected a derivative of {expected:.10g} by finite differences, got "
                f"{got:.10g} by backward (output {i}, input {index})"
            )


def _shifted(
    func: Function, args: tuple[Any, ...], index: int, direction: Tensor, step: float
) -> list[Tensor]:
    with no_grad():
        moved = list(args)
        moved[index] = args[index].detach() + direction * step
        return [out.detach() for out in _outputs(func, moved)]


def _derivative(out: Tensor, value: Tensor, weight: Tensor, direction: Tensor) -> float:
    if not out.requires_grad:
        return 0.0
    (got,) = grad(out, value, weight, retain_graph=True, allow_unused=True)
    return 0.0 if got is None else _inner(got, direction)


def _direction(like: Tensor, seed: int) -> Tensor:
    """Normal random numbers of the shape and dtype of `like`; the global generator is not used."""
    source = random.Random(seed)
    if like.is_complex():
        values: list[Any] = [
            complex(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(like.numel())
        ]
    else:
        values = [source.gauss(0, 1) for _ in range(like.numel())]
    return weft.tensor(values, dtype=like.dtype).reshape(like.shape)


def _inner(a: Tensor, b: Tensor) -> float:
    pairs = zip(a.detach().reshape(-1).tolist(), b.detach().reshape(-1).tolist())
    return sum((complex(x).conjugate() * complex(y)).real for x, y in pairs)
