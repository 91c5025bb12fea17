"""Groups with a product or a convolution, against eager: for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import weft
from jit import groups
from weft import jit


def bits(tensor: Any) -> Any:
    """The elements to the last bit; NumPy has no bfloat16."""
    if tensor is not None and tensor.dtype == weft.bfloat16:
        tensor = tensor.view(weft.int16)
    return groups.bits(tensor)


def check(function: Any, *args: Any) -> None:
    """Three calls, of which the last may run native code, against eager."""
    compiled = jit.script(function)
    with weft.no_grad():
        expected = function(*args)
        for _ in range(3):
            got = compiled(*args)
            for one, other in zip(_tuple(got), _tuple(expected)):
                assert one.dtype == other.dtype and one.shape == other.shape
                assert one.stride() == other.stride()
                assert bits(one) == bits(other)


def check_errors(function: Any, *cases: tuple[Any, ...]) -> None:
    """Each call raises what eager raises, and shows the place in the program."""
    compiled = jit.script(function)
    with weft.no_grad():
        for args in cases:
            with pytest.raises(RuntimeError) as eager:
                function(*args)
            with pytest.raises(RuntimeError, match="HERE") as script:
                compiled(*args)
            assert str(eager.value).partition(":")[2] in str(script.value)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = weft.get_num_threads()
    weft.set_num_threads(count)
    try:
        yield
    finally:
        weft.set_num_threads(before)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
