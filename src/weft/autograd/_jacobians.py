"""Whole Jacobians by finite differences, as tests of other libraries ask for them.

A Jacobian has a row for each element of an input and a column for each element of an output.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad

Function = Callable[..., Any]


def _get_numerical_jacobian(
    fn: Function,
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """For each tensor of `target` that requires grad (of `inputs` unless given), the Jacobians of
    all outputs of fn(*inputs), by central differences of step `eps`.

    Of a complex input d/dx + 1j d/dy. ValueError for complex outputs.
    """
    given = _tuple(inputs)
    with no_grad():
        found = _tuple(fn(*given)) if outputs is None else _tuple(outputs)
        if any(each.dtype.is_complex for each in found):
            raise ValueError("get_numerical_jacobian: expected real outputs, got complex ones")
        targets = _learned(given if target is None else target)
        return [_differences(fn, given, x, found, eps) for x in targets]


def get_numerical_jacobian(
    fn: Function, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """For each tensor that requires grad, the Jacobian of the first output of fn(inputs).

    An older form, which warns; gradcheck is the one to use.
    """
    name = "get_numerical_jacobian"
    warnings.warn(f"{name} is an older form; use gradcheck", FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError(f"{name}: expected grad_out 1.0, got {grad_out}")
    found = _get_numerical_jacobian(lambda *given: fn(given), inputs, None, target, eps)
    return tuple(each[0] for each in found)


def _differences(
    fn: Function, given: Any, x: Tensor, outputs: Any, eps: float
) -> tuple[Tensor, ...]:
    kind = x.dtype if x.dtype.is_complex else None
    rows = [_row(fn, given, x, place, eps) for place in itertools.product(*map(range, x.shape))]
    if not rows:
        return tuple(_C.zeros((0, each.numel()), dtype=kind or each.dtype) for each in outputs)
    return tuple(_C.stack(list(each)) for each in zip(*rows))


def _row(fn: Function, given: Any, x: Tensor, place: Any, eps: float) -> list[Tensor]:
    """The derivatives of all outputs by one element."""
    along = _slopes(fn, given, x.data, place, eps)
    if not x.dtype.is_complex:
        return along
    across = _slopes(fn, given, x.data, place, eps * 1j)
    return [real + 1j * imag for real, imag in zip(along, across)]


def _slopes(fn: Function, given: Any, values: Tensor, place: Any, step: Any) -> list[Tensor]:
    start = values[place].item()
    ends = []
    for end in (start + step, start - step):
        values[place] = end
        ends.append([each.detach().clone().reshape(-1) for each in _tuple(fn(*given))])
    values[place] = start
    return [(after - before) / (2 * abs(step)) for after, before in zip(*ends)]


def _tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _learned(values: Any) -> Iterator[Tensor]:
    """The tensors that require grad, in lists and tuples too."""
    if isinstance(values, Tensor):
        if values.requires_grad:
            yield values
    elif isinstance(values, (tuple, list)):
        for each in values:
            yield from _learned(each)
