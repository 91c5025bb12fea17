"""isinstance of abstract classes in programs: what Python says of a value of that type."""

from __future__ import annotations

import collections.abc
import linecache
import numbers
import typing

import pytest

import weft
from weft import jit

CLASSES = [
    *(getattr(collections.abc, name) for name in collections.abc.__all__),
    *(numbers.Number, numbers.Complex, numbers.Real, numbers.Integral),
    *(typing.Sequence, typing.Iterable, typing.Mapping, typing.Hashable),
    object,
]
VALUES = {
    "int": 3,
    "float": 2.5,
    "bool": True,
    "complex": 1j,
    "str": "ab",
    "List[int]": [1, 2],
    "List[List[str]]": [["a"]],
    "Tuple[int, str]": (1, "a"),
    "Dict[str, int]": {"a": 1},
    "Tensor": weft.ones(2),
}


@pytest.mark.filterwarnings("ignore:'collections.abc.ByteString' is deprecated")
@pytest.mark.parametrize("annotation", VALUES)
def test_what_abstract_classes_a_value_is_of(annotation: str) -> None:
    names = [f"_c{i}" for i in range(len(CLASSES))]
    tests = ", ".join(f"isinstance(x, {name})" for name in names)
    scope = {**dict(zip(names, CLASSES)), **vars(typing), "Tensor": weft.Tensor}
    program = _program(f"def f(x: {annotation}) -> List[bool]:\n    return [{tests}]\n", scope)
    value = VALUES[annotation]
    expected = {cls: isinstance(value, cls) for cls in CLASSES}
    assert dict(zip(CLASSES, program(value))) == expected
    assert True in expected.values() and False in expected.values()


def test_an_optional_value_is_asked_while_the_program_runs() -> None:
    text = "def f(x: Optional[List[int]]) -> int:\n    return sum(x) if isinstance(x, S) else -1\n"
    program = _program(text, {**vars(typing), "S": collections.abc.Sequence})
    assert [program([1, 2]), program(None)] == [3, -1]


def _program(text: str, scope: dict[str, typing.Any]) -> typing.Any:
    linecache.cache["<abstract>"] = (len(text), None, text.splitlines(keepends=True), "<abstract>")
    exec(compile(text, "<abstract>", "exec"), scope)
    return jit.script(scope["f"])
