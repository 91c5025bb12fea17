"""Attributes that are declared with a class and hold an object of a derived one; warnings."""

from __future__ import annotations

import warnings

import pytest

import weft
from weft import jit


class Scale:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: int) -> int:
        return x * self.by


class Shifted(Scale):
    def __init__(self, by: int) -> None:
        super().__init__(by)

    def __call__(self, x: int) -> int:
        return x + self.by


class Holder(weft.nn.Module):
    scale: Scale

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: int) -> int:
        return self.scale(x)


@pytest.mark.parametrize("kind", [Scale, Shifted])
def test_calls_take_the_methods_of_the_object(kind: type[Scale]) -> None:
    module = Holder(kind(3))
    assert jit.script(module)(4) == module(4) == (12 if kind is Scale else 7)


def warned(x: weft.Tensor) -> weft.Tensor:
    warnings.warn("the input is used as it is", stacklevel=2)
    return x + 1


def test_warnings_of_programs_are_those_of_python() -> None:
    program = jit.script(warned)
    with pytest.warns(UserWarning, match="the input is used as it is"):
        program(weft.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(weft.ones(2)).tolist() == [2.0, 2.0]
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="used as it is"):
        warnings.simplefilter("error")
        program(weft.ones(2))
