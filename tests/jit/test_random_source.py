"""Random source programs: eager, scripted as they are, and optimised give the same, gradients included.

`WEFT_EXAMPLES=60 python -m pytest tests/jit/test_random_source.py` runs more of them, and other ones.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from random import Random
from typing import Any, Optional

import pytest
from drawing import UNSHRUNK, examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.programs import Sums
from jit.random_source import Program
from weft.jit.execution import executable

NAMES: dict[str, Any] = {
    "torch": weft, "math": math, "Tensor": weft.Tensor,
    "List": list, "Dict": dict, "Tuple": tuple, "Optional": Optional,
}  # fmt: skip
# What programs raise by themselves; anything else is a fault.
ERRORS = (ArithmeticError, LookupError, ValueError, RuntimeError)


def compile_source(text: str) -> dict[str, Any]:
    """The functions of a program, eager; scripts find their source in `__source__`."""
    names = dict(NAMES)
    exec(compile(text, "<random>", "exec"), names)
    return names


def inputs(random: Random, gradient: bool) -> list[Any]:
    weft.manual_seed(random.randint(0, 1000))
    tensors = [weft.randn(2, 3).requires_grad_(gradient) for _ in range(2)]
    numbers = [random.randint(-3, 6), random.randint(0, 5), random.choice([0.5, -2.0, 3.25])]
    return [*tensors, *numbers, random.random() < 0.5]


def outcome(run: Callable[..., Any], args: list[Any], gradient: bool) -> tuple[Any, Any]:
    """The result with gradients behind it, and the class of what was raised."""
    tensors = [a.detach().clone().requires_grad_(gradient) for a in args[:2]]
    try:
        result = list(run(*tensors, *args[2:]))
    except ERRORS as error:
        kinds = (ZeroDivisionError, OverflowError, IndexError, KeyError, ValueError, RuntimeError)
        return None, next(kind for kind in kinds if isinstance(error, kind))
    if gradient and result[0].requires_grad:
        result.append(Sums(weft.autograd.grad(result[0].sum(), tensors, allow_unused=True)))
    return result, None


def bits(value: Any) -> Any:
    """What is compared: every bit, but all NaN are one."""
    if isinstance(value, weft.Tensor):
        return str(value.dtype), tuple(value.shape), [bits(v) for v in value.reshape(-1).tolist()]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    return value


def fits(value: Any) -> bool:
    """Whether no int left 64 bits, where programs raise and Python goes on."""
    if isinstance(value, list):
        return all(map(fits, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def check(random: Random, gradient: bool) -> None:
    text = Program(random, writes=not gradient).text()
    names = compile_source(text)
    args = inputs(random, gradient)
    wanted, error = outcome(names["main"], args, gradient)
    if not fits(wanted):
        return
    scripted = script(text)
    for level in (0, 2):
        run = executable(scripted.function, level=level)
        for time in range(2):  # groups run their operators first and as one later
            got, got_error = outcome(run, args, gradient)
            # Where two operators of a program fail, a group may tell of the later one.
            assert got_error == error or (level and error and got_error), (text, args, level, time)
            assert bits(got) == bits(wanted), (text, args, level, time)


def script(text: str) -> Any:
    unit = weft.jit.CompilationUnit(text)
    return unit.main


@pytest.mark.parametrize("gradient", [False, True])
@examples(150, phases=UNSHRUNK)
@given(seed=st.integers(0, 2**32))
def test_source_programs(gradient: bool, seed: int) -> None:
    check(Random(seed), gradient)
