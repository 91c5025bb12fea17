"""Every row of the operator table, as every function, method and form that Python has of it, traced
and replayed on other values: what is not recorded would give the values of the trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case, calling
from op_cases.realise import realise, to_library

import weft
from weft import jit

UNINITIALISED = frozenset(("empty.memory_format", "empty_strided", "empty_like", "new_empty"))
# Results that programs hand to Python: the trace warns, and keeps the first answer.
LEAKS = frozenset(("equal", "allclose", "is_nonzero"))


class Hole:
    """A place where a tensor goes."""


def split(value: Any, tensors: list[Any]) -> Any:
    """The value with holes for its tensors, which go to the list."""
    if isinstance(value, weft.Tensor):
        tensors.append(value)
        return Hole
    if isinstance(value, (list, tuple)):
        return type(value)(split(item, tensors) for item in value)
    return value


def fill(value: Any, tensors: Any) -> Any:
    if value is Hole:
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)(fill(item, tensors) for item in value)
    return value


def tensors_of(value: Any) -> tuple[Any, ...]:
    if isinstance(value, weft.Tensor) or type(value).__name__ in ("TracedInt", "TracedFloat"):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(leaf for item in value for leaf in tensors_of(item))
    return ()


def same(a: Any, b: Any) -> None:
    assert len(a) == len(b)
    for one, other in zip(a, b):
        if not isinstance(one, weft.Tensor):
            assert one == other
            continue
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        one, other = (x.detach().to(weft.float64) if x.dtype == weft.bfloat16 else x.detach()
                      for x in (one, other))  # fmt: skip
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def replay(function: Callable[..., Any], first: Any, second: Any, case: Case) -> None:
    """Traces a call with the first arguments and replays it with the second."""
    tensors: list[Any] = []
    args = split(first.args, tensors)
    kwargs = {name: split(value, tensors) for name, value in first.kwargs.items()}

    def call(*given: Any) -> Any:
        holes = iter(given)
        made = fill(args, holes)
        named = {name: fill(value, holes) for name, value in kwargs.items()}
        return (*tensors_of(function(*made, **named)), *given)

    others: list[Any] = []
    split(second.args, others)
    for value in second.kwargs.values():
        split(value, others)
    copies = [tensor.clone() for tensor in others]
    weft.manual_seed(5)
    expected = call(*copies)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = jit.trace(call, tuple(tensors), check_trace=False)
    weft.manual_seed(5)
    got = traced(*others)
    if case.name not in UNINITIALISED:
        same(expected, got if isinstance(got, tuple) else (got,))


def functions(case: Case) -> dict[str, Callable[..., Any]]:
    """The ways to call a row from Python."""
    name = calling.ROWS[case.name].name
    found = {"aten": calling.function_of(case.name)}
    for where, module in (("weft", weft), ("nn", weft.nn.functional), ("linalg", weft.linalg),
                          ("fft", weft.fft), ("special", weft.special)):  # fmt: skip
        public = getattr(module, name.removeprefix(f"{where}_"), None)
        if callable(public) and not isinstance(public, type):
            found[where] = public
    method = getattr(weft.Tensor, name, None)
    if callable(method):
        found["method"] = method
    return found


WAYS = [
    pytest.param(case, function, id=f"{case.name}-{way}")
    for case in CASES.values()
    if case.samples and case.name not in LEAKS
    for way, function in functions(case).items()
]


@pytest.mark.parametrize(("case", "function"), WAYS)
def test_a_traced_call_replays_on_other_values(case: Case, function: Any) -> None:
    for index, sample in enumerate(case.samples):
        dtype = case.dtypes[0]
        first, second = (
            to_library(realise(sample, case, dtype, i), weft, dtype) for i in (index, index + 100)
        )
        if not tensors_of([*first.args, *first.kwargs.values()]):
            continue
        try:
            function(*first.args, **first.kwargs)
        except (TypeError, RuntimeError, ValueError, IndexError, UserWarning):
            continue  # the public function takes other arguments than the row, or retired ones
        first, second = (
            to_library(realise(sample, case, dtype, i), weft, dtype) for i in (index, index + 100)
        )
        replay(function, first, second, case)


def detached(x: weft.Tensor) -> weft.Tensor:
    y = x * 2
    z = y + 1
    y.detach_()
    return (z * 3).sum() + (y * x).sum()


@pytest.mark.parametrize("compile", [jit.script, lambda f: jit.trace(f, weft.ones(3))])
def test_detach_in_place(compile: Any) -> None:
    x = weft.tensor([1.0, 2.0, -3.0], requires_grad=True)
    (expected,) = weft.autograd.grad(detached(x), x)
    program = compile(detached)
    for _ in range(3):
        result = program(x)
        assert result.item() == detached(x).item()
        (gradient,) = weft.autograd.grad(result, x)
        assert gradient.tolist() == expected.tolist()
