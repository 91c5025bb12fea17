"""Scripted functions give what Python gives: the table of frontend_cases, run by the oracle."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.jit.frontend_cases import CASES

import weft
from weft.jit import schemas
from weft.jit.archive.code_text import code_of
from weft.jit.frontend import compile_function
from weft.jit.ir.verify import verify


def same(a, b):
    """Equal in value, and as Python types where programs tell them apart."""
    if isinstance(a, weft.Tensor) or isinstance(b, weft.Tensor):
        assert isinstance(a, weft.Tensor) and isinstance(b, weft.Tensor), (a, b)
        assert a.dtype == b.dtype and a.shape == b.shape, (a, b)
        return bool(weft.equal(a, b))
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


def run(function, *args):
    """The interpreter's result."""
    from weft.jit.codegen import compile_program

    return compile_program([function]).function(function.name)(*args)


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_scripted_equals_eager(function, inputs):
    compiled = compile_function(function)
    verify(compiled.function.graph, schemas.of)
    expected = function(*copy.deepcopy(inputs))
    got = run(compiled.function, *copy.deepcopy(inputs))
    assert same(expected, got), f"{got!r} for {expected!r}\n{compiled.function.graph}"


@pytest.mark.parametrize("function", {f: None for f, _ in CASES}, ids=lambda f: f.__name__)
def test_code_is_python(function):
    text = code_of(compile_function(function).function)
    compile(text, "<code>", "exec")
    assert text.startswith(f"def {function.__name__}(")


def test_a_kind_has_one_rule():
    from weft.jit.frontend.registry import Rules

    rules = Rules()
    rules("a", "b")(len)
    with pytest.raises(ValueError, match="rule: expected one for b, got len and"):
        rules("b")(max)
    assert rules == {"a": len, "b": len}


def test_every_file_of_rules_is_imported_with_the_package():
    folder = Path(weft.jit.frontend.__file__).parent
    marks = ("@builtin(", "@expression(", "@method(", "@statement(", "@verb(")
    files = {p for p in folder.rglob("*.py") if any(m in p.read_text() for m in marks)}
    script = "import sys, weft.jit.frontend; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    loaded = {folder.parent.parent.parent.joinpath(*m.split(".")) for m in shown.split()}
    assert len(files) > 25
    assert not {path.with_suffix("") for path in files} - loaded
