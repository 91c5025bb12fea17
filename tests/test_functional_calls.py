"""Calls of modules with other tensors than their own, in both libraries."""

from __future__ import annotations

from typing import Any

import pytest
from libraries import both


def tied(lib: Any) -> Any:
    """A module with tensors of two names and an attribute that is none."""

    class Tied(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = lib.nn.Linear(1, 1)
            self.again = self.layer.bias
            self.register_buffer("shift", lib.ones(1))
            self.number = 3.0

        def forward(self, x: Any) -> Any:
            extra = getattr(self, "extra", None)
            x = self.layer(x) + self.again + self.shift
            return x if extra is None else x + extra

    return Tied()


@both
def test_names_that_the_module_has_not_are_there_during_the_call(lib: Any) -> None:
    model, x = tied(lib), lib.zeros(1, 1)
    zero = lib.zeros(1)
    given = {"layer.bias": zero, "shift": zero, "extra": lib.tensor([4.0]), "layer.more": zero}
    assert lib.func.functional_call(model, given, (x,)).item() == 4
    assert not hasattr(model, "extra") and not hasattr(model.layer, "more")
    assert model.again is model.layer.bias and model.shift.item() == 1


@both
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"layer.weight": 1.0}, TypeError),
        ({"number": None}, TypeError),
        ({"absent.weight": None}, AttributeError),
    ],
)
def test_what_no_call_takes(lib: Any, given: dict[str, Any], error: type[Exception]) -> None:
    model = tied(lib)
    weight = model.layer.weight
    with pytest.raises(error):
        lib.func.functional_call(model, {"layer.bias": lib.ones(1), **given}, (lib.ones(1, 1),))
    assert model.layer.weight is weight and model.again is model.layer.bias and model.number == 3


@both
@pytest.mark.parametrize("tie", [True, False])
def test_strict_calls_of_tied_members(lib: Any, tie: bool) -> None:
    given = {"layer.weight": lib.ones(1, 1), "layer.bias": lib.ones(1), "shift": lib.ones(1)}
    call = lib.func.functional_call
    if tie:
        assert call(tied(lib), given, (lib.ones(1, 1),), strict=True).item() == 4
    else:
        with pytest.raises(RuntimeError, match="again"):
            call(tied(lib), given, (lib.ones(1, 1),), tie_weights=False, strict=True)


@both
def test_modules_in_a_circle(lib: Any) -> None:
    model, one = tied(lib), lib.ones(1)
    model.layer.outer = model
    given = {"layer.outer.layer.bias": one, "again": one, "layer.outer.shift": one}
    result = lib.func.functional_call(model, given, (lib.zeros(1, 1),), tie_weights=False)
    assert result.item() == 3


@both
def test_programs_are_not_called_with_other_tensors(lib: Any) -> None:
    layer = lib.nn.Linear(1, 1)
    for program in (lib.jit.script(layer), lib.jit.trace(layer, lib.ones(1, 1))):
        with pytest.raises(RuntimeError):
            lib.func.functional_call(program, {"bias": lib.ones(1)}, (lib.ones(1, 1),))
