"""What the compiler refuses: the texts word for word, the table of refused syntax, the chain of
callers."""

from __future__ import annotations

import sys

import pytest
from tests.jit.refusal_texts import REFUSALS

import weft
from weft import jit, nn
from weft.jit.frontend.source.errors import REFUSED, REFUSED_FORMS


@pytest.mark.parametrize(("source", "text"), REFUSALS, ids=range(len(REFUSALS)))
def test_texts(source, text):
    with pytest.raises(RuntimeError) as caught:
        jit.CompilationUnit(source)
    assert "\n".join(line.rstrip() for line in str(caught.value).split("\n")) == "\n".join(
        line.rstrip() for line in text.split("\n")
    )


MERGES = {
    "conditional expression": "y = {0} if b else {1}",
    "or": "y = {0} or {1}",
    "return": "if b:\n        return {0}\n    return {1}",
    "return in a loop": "for _ in range(2):\n        if b:\n            return {0}\n    return {1}",
    "variable": "if b:\n        y = {0}\n    else:\n        y = {1}\n    return y",
    "carried variable": "y = {1}\n    while b:\n        if b:\n            y = {0}\n    return y",
}
HINTS = {
    ("n", "x"): "float(...) around the int",
    ("n", "s"): "a declaration before the if, as x: Union[int, str]",
}


@pytest.mark.parametrize("form", MERGES)
@pytest.mark.parametrize("names", HINTS)
def test_values_of_two_types_come_with_what_to_write_instead(form, names):
    body = MERGES[form].format(*names)
    with pytest.raises(RuntimeError, match="expected one type on both paths") as caught:
        jit.CompilationUnit(f"def f(b: bool, n: int, x: float, s: str):\n    {body}\n")
    assert str(caught.value).endswith(f"Write instead: {HINTS[names]}")


EXAMPLES = {**REFUSED, **REFUSED_FORMS}
LATER = pytest.mark.skipif(sys.version_info < (3, 12), reason="no syntax of Python before 3.12")


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=[LATER] if key == "generic function" else []) for key in EXAMPLES],
    ids=str,
)
def test_every_refused_syntax_says_what_to_write_instead(key):
    refusal = EXAMPLES[key]
    text = refusal.example + "\n"
    if not text.startswith(("def", "async def")):
        lines = refusal.example.split("\n")
        text = "def h(x, xs: List[int]):\n" + "".join(f"    {line}\n" for line in lines)
    with pytest.raises(jit.NotSupportedError) as caught:
        jit.CompilationUnit(text)
    assert refusal.what in str(caught.value)
    assert f"Write instead: {refusal.instead}" in str(caught.value)


def broken(x: int) -> int:
    return x + "s"  # type: ignore[operator]


def middle(x: int) -> int:
    return broken(x)


def outer(x: int) -> int:
    return middle(x)


def test_the_chain_of_callers():
    with pytest.raises(RuntimeError) as caught:
        jit.script(outer)
    lines = str(caught.value).split("\n")
    assert lines[0] == "+: expected types it is defined for, got int and str"
    calls = [line for line in lines if line.startswith("'")]
    assert calls == [
        "'broken' is compiled because it is called from 'middle'",
        "'middle' is compiled because it is called from 'outer'",
    ]
    assert sum("test_frontend_errors.py" in line for line in lines) == 3


def test_a_failed_compilation_can_be_tried_again():
    for _ in range(2):
        with pytest.raises(RuntimeError, match="int and str"):
            jit.script(outer)


class Deep(nn.Module):
    def forward(self, x):
        return self.missing(x)


def test_missing_attributes_of_modules():
    with pytest.raises(RuntimeError, match=r"Deep: expected an attribute it has, got 'missing'"):
        jit.script(Deep())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "expected a function, module or class, got int"),
        ((1,), "expected a function, module or class, got a tuple"),
        (nn.Linear, "expected a module, got the module class Linear"),
        (weft.relu, "expected a function, module or class"),
    ],
)
def test_things_that_are_no_programs(value, message):
    with pytest.raises(RuntimeError, match=message):
        jit.script(value)


def shouts(n: int) -> int:
    if n > 3:
        raise ValueError(f"too big: {n}")
    return n


def test_programs_raise_with_the_line_of_the_program():
    f = jit.script(shouts)
    assert f(1) == 1
    with pytest.raises(ValueError, match="too big: 4") as caught:
        f(4)
    assert "raise ValueError" in str(caught.value)


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"expected value of type int for argument 'n'"):
        jit.script(shouts)("a")


def test_a_variable_that_only_a_loop_sets():
    source = """
def f(n: int):
    for i in range(n):
        if i == 5:
            found = i
            break
    else:
        found = -1
    return found
"""
    with pytest.raises(RuntimeError, match="found: expected a value on every path"):
        jit.CompilationUnit(source)


def test_a_variable_that_an_unrolled_step_may_skip():
    source = """
def f(flag: bool):
    for k in (1, 2):
        if flag:
            continue
        found = k
    return found
"""
    with pytest.raises(RuntimeError, match="found: expected a value on every path"):
        jit.CompilationUnit(source)


def test_deep_and_long_programs():
    returns = "".join(f"    if n == {i}:\n        return {i * 2}\n" for i in range(150))
    chain = "".join(f"    elif n == {i}:\n        k = {i}\n" for i in range(80))
    nested = "(1 + " * 100 + "n" + ")" * 100
    unit = jit.CompilationUnit(
        f"def f(n: int) -> int:\n{returns}    return -1\n"
        f"def g(n: int) -> int:\n    if n < 0:\n        k = -1\n{chain}    else:\n        k = 9\n"
        f"    return k\n"
        f"def h(n: int) -> int:\n    return {nested}\n"
    )
    assert [unit.f(3), unit.f(149), unit.f(999)] == [6, 298, -1]
    assert [unit.g(-5), unit.g(70), unit.g(99)] == [-1, 70, 9]
    assert unit.h(1) == 101
    too_deep = "-" * 100_000 + "n"
    with pytest.raises(RuntimeError, match="nested"):
        jit.CompilationUnit(f"def f(n: int) -> int:\n    return {too_deep}\n")


def refused(x):
    return x.no_such_method()


class Refusing(weft.nn.Module):
    def forward(self, x):
        return refused(x)


@pytest.mark.parametrize(
    "compiles",
    [
        lambda: weft.jit.script(refused),
        lambda: weft.jit.script(Refusing()),
        lambda: weft.jit.CompilationUnit("def f(x):\n    return x.no_such_method()"),
    ],
)
def test_the_traceback_ends_where_the_compiler_was_called(compiles):
    """The text says where the user's program is wrong; frames of the compiler only hide it."""
    with pytest.raises(RuntimeError, match="no_such_method") as caught:
        compiles()
    names = [entry.name for entry in caught.traceback]
    assert names[-1] in ("script", "define") and len(names) <= 5
