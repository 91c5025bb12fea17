"""Defaults of parameters are values of the declared type, wherever a definition comes from."""

from __future__ import annotations

from typing import Optional

import pytest

import weft
from weft.jit import CompilationUnit, FrontendError

# annotation, default, the value in programs
DEFAULTS = [
    ("float", "20", 20.0),
    ("float", "True", 1.0),
    ("int", "True", 1),
    ("bool", "1", True),
    ("complex", "2", 2 + 0j),
    ("complex", "2.5", 2.5 + 0j),
    ("Optional[float]", "20", 20.0),
    ("Optional[float]", "None", None),
    ("Optional[List[float]]", "[2]", [2.0]),
    ("List[float]", "[1, 2]", [1.0, 2.0]),
    ("List[List[float]]", "[[1], []]", [[1.0], []]),
    ("Tuple[float, int]", "(1, 2)", (1.0, 2)),
    ("Dict[str, float]", "{'a': 1}", {"a": 1.0}),
    ("Dict[str, Tuple[float, complex]]", "{'a': (1, 2)}", {"a": (1.0, 2 + 0j)}),
    ("Union[float, str]", "2", 2.0),
    ("Union[int, float, str]", "2", 2),
    ("Any", "2", 2),
]
WRONG = [
    ("float", "None"),
    ("str", "None"),
    ("List[int]", "None"),
    ("int", "2.5"),
    ("Optional[int]", "2.5"),
    ("Optional[str]", "2"),
    ("List[int]", "[1, 2.5]"),
    ("Tuple[int, int]", "(1, 2, 3)"),
]


def typed(value):
    """The value with the types of what it holds."""
    if isinstance(value, (list, tuple)):
        return type(value), [typed(item) for item in value]
    if isinstance(value, dict):
        return dict, [(typed(key), typed(item)) for key, item in value.items()]
    return type(value), value


@pytest.mark.parametrize(("annotation", "default", "value"), DEFAULTS)
def test_default_is_of_the_declared_type(annotation, default, value):
    unit = CompilationUnit(f"""
def f(g: {annotation} = {default}): return g
def called(): return f()
""")
    assert typed(unit.f()) == typed(value)
    assert typed(unit.called()) == typed(value)
    assert typed(unit.f.schema.arguments[0].default_value) == typed(value)


@pytest.mark.parametrize(("annotation", "default"), WRONG)
def test_default_of_another_type_is_refused(annotation, default):
    with pytest.raises(FrontendError, match="expected a default of type"):
        CompilationUnit(f"def f(g: {annotation} = {default}): return g").f()


class Scaled(weft.nn.Module):
    def forward(self, x, g: float = 20, h: Optional[float] = 3):  # noqa: UP045
        assert h is not None
        return x * g * 2.5, h * 2.5


def test_default_of_forward():
    x, h = weft.jit.script(Scaled())(weft.ones(1))
    assert (x.item(), h) == (50.0, 7.5)
