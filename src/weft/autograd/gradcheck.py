"""Gradients against finite differences.

For an input x, a random direction u and random weights v of an output y, the derivative of <v, y>
along u is computed twice: as <gradient of x, u>, and as the central difference

    (<v, y(x + eps u)> - <v, y(x - eps u)>) / (2 eps)

One number per pair of input and output is compared, so the check costs two calls per input however
large it is, and a wrong entry of the gradient shows with probability one. Inner products of complex
values are Re(conj(a) b).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft.autograd._run import grad
from weft.autograd.grad_mode import enable_grad, no_grad

Function = Callable[..., Any]
_OLD_NAMES = ("get_numerical_jacobian", "_get_numerical_jacobian")
__getattr__ = lazy.names(__name__, dict.fromkeys(_OLD_NAMES, "weft.autograd._jacobians"))
_Way = Callable[[Tensor, Tensor, Tensor, Tensor], float]


class GradcheckError(RuntimeError):
    """A gradient that differs from finite differences."""


class _Options(NamedTuple):
    """How far results may differ, and by which ways derivatives are computed."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    ways: dict[str, _Way]


def gradcheck(
    func: Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Checks the gradients of `func(*inputs)` in every input that requires grad.

    - inputs: those that require grad should be float64 or complex128 (a UserWarning otherwise).
    - eps: step of the finite differences.
    - atol, rtol: |got - expected| <= atol + rtol * |expected|, for a direction of length one per
      entry on average.
    - raise_exception: False returns False instead of raising GradcheckError.
    - nondet_tol: how far two runs of backward may differ.
    - check_backward_ad, check_batched_grad, check_forward_ad: the derivatives that are compared:
      those of backward, of a backward of several gradients at once (is_grads_batched), and along
      a direction, which is the derivative of backward by its gradient.

    The other arguments have no effect: the check is always the fast one, takes the gradient of
    each output alone (the others are undefined), and a gradient always has its input's dtype.

    Returns True when all gradients agree.

    >>> x = weft.ones(2, dtype=weft.float64, requires_grad=True)
    >>> weft.autograd.gradcheck(weft.sin, (x,), check_forward_ad=True)
    True
    """
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("gradcheck: check_batched_forward_grad expects check_forward_ad=True")
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("gradcheck: expected check_forward_ad or check_backward_ad, got none")
    wanted = (check_backward_ad, check_batched_grad, check_forward_ad)
    ways = dict(itertools.compress(_WAYS.items(), wanted))
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _checked_inputs(args)
    try:
        for seed, index in enumerate(checked):
            _check_input(func, args, index, seed, _Options(eps, atol, rtol, nondet_tol, ways))
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
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks the second derivatives: gradcheck of the gradients of `func`.

    - grad_outputs: gradients of the outputs to start from; random ones by default, with
      gen_non_contig_grad_outputs not contiguous.
    - check_fwd_over_rev, check_rev_over_rev: check_forward_ad and check_backward_ad of that check.
    - The other arguments are those of `gradcheck`.
    """
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _checked_inputs(args)
    if grad_outputs is None:
        outputs = _outputs(func, args)
        starts = [_direction(out, seed) for seed, out in enumerate(outputs)]
        if gen_non_contig_grad_outputs:
            starts = [_C.stack([start, start], -1)[..., 0] for start in starts]
        starts = [start.requires_grad_() for start in starts]
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
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


def _checked_inputs(args: tuple[Any, ...]) -> list[int]:
    checked = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
    if not checked:
        raise ValueError("gradcheck: expected an input that requires grad, got none")
    for i in checked:
        if (
            args[i].layout == _C.strided
            and args[i].numel()
            and any(step == 0 and n > 1 for step, n in zip(args[i].stride(), args[i].shape))
        ):
            raise RuntimeError(
                f"gradcheck: expected inputs whose entries do not overlap, got strides "
                f"{args[i].stride()} for input {i}"
            )
        if args[i].dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"gradcheck: expected inputs of dtype float64 or complex128, got {args[i].dtype} "
                f"for input {i}, in which finite differences are coarse",
                stacklevel=3,
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
    func: Function, args: tuple[Any, ...], index: int, seed: int, options: _Options
) -> None:
    direction = _direction(args[index], 1000 + seed)
    with enable_grad():
        outputs = _outputs(func, args)
    weights = [_direction(out, 2000 + i) for i, out in enumerate(outputs)]
    high = _shifted(func, args, index, direction, options.eps)
    low = _shifted(func, args, index, direction, -options.eps)
    for i, (out, weight) in enumerate(zip(outputs, weights)):
        expected = (_inner(weight, high[i]) - _inner(weight, low[i])) / (2 * options.eps)
        for name, way in options.ways.items():
            got, again = (
                way(out, args[index], weight, direction) if out.requires_grad else 0.0
                for _ in range(2)
            )
            if abs(got - again) > options.nondet_tol:
                raise GradcheckError(
                    f"gradcheck: expected the same gradient twice, got {got:.10g} and "
                    f"{again:.10g} (output {i}, input {index})"
                )
            if not abs(got - expected) <= options.atol + options.rtol * abs(expected):
                raise GradcheckError(
                    f"gradcheck: expected a derivative of {expected:.10g} by finite differences, "
                    f"got {got:.10g} by {name} (output {i}, input {index})"
                )


def _shifted(
    func: Function, args: tuple[Any, ...], index: int, direction: Tensor, step: float
) -> list[Tensor]:
    """The outputs for an input that is moved in place: functions may reach it by other ways than
    their arguments, as a module that is called reaches its parameters."""
    if args[index].layout != _C.strided:  # has no entries to write to
        moved = list(args)
        moved[index] = args[index].detach() + direction * step
        with no_grad():
            return [out.detach() for out in _outputs(func, moved)]
    data = args[index].detach()
    before = data.clone()
    try:
        data.data.add_(direction, alpha=step)
        with enable_grad():
            return [out.detach().clone() for out in _outputs(func, args)]
    finally:
        data.data.copy_(before)


def _backward(out: Tensor, value: Tensor, weight: Tensor, direction: Tensor) -> float:
    (got,) = grad(out, value, weight, retain_graph=True, allow_unused=True)
    return 0.0 if got is None else _inner(got, direction)


def _batched_backward(out: Tensor, value: Tensor, weight: Tensor, direction: Tensor) -> float:
    both = _C.stack([weight * 2, weight])
    (got,) = grad(out, value, both, retain_graph=True, allow_unused=True, is_grads_batched=True)
    return 0.0 if got is None else _inner(got[1], direction)


def _forward(out: Tensor, value: Tensor, weight: Tensor, direction: Tensor) -> float:
    """The derivative of backward, which is linear, by its gradient."""
    start = _C.zeros_like(out, requires_grad=True)
    (back,) = grad(out, value, start, create_graph=True, allow_unused=True)
    if back is None:
        return 0.0
    (got,) = grad(back, start, direction, allow_unused=True)
    return 0.0 if got is None else _inner(weight, got)


# The derivative of <weight, out> along a direction of `value`, in three ways.
_WAYS: dict[str, _Way] = {
    "backward": _backward,
    "a backward of two gradients": _batched_backward,
    "the derivative along the direction": _forward,
}


def _direction(like: Tensor, seed: int) -> Tensor:
    """Normal random numbers of the shape and dtype of `like`; the global generator is not used."""
    source = lazy.value("random", "Random")(seed)  # whose import takes 1 ms
    if like.is_complex():
        values: list[Any] = [
            complex(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(like.numel())
        ]
    else:
        values = [source.gauss(0, 1) for _ in range(like.numel())]
    return _C.tensor(values, dtype=like.dtype).reshape(like.shape)


def _inner(a: Tensor, b: Tensor) -> float:
    pairs = zip(a.detach().reshape(-1).tolist(), b.detach().reshape(-1).tolist())
    return sum((complex(x).conjugate() * complex(y)).real for x, y in pairs)
