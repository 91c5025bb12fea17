"""Programs that are wrong in Python too: refused, or they raise what Python raises."""

from __future__ import annotations

import pytest

from weft import jit

NUMBERS = [1, 2]
NAMED = {"a": 1}
NESTED = [[1], [2]]


def behind(a: int, /, b: int) -> int:
    return a - b


def by_name(x: int) -> int:
    return behind(a=x, b=3)


def text_as_type(x: int) -> bool:
    return isinstance(x, "int")


@pytest.mark.parametrize(
    "function, message",
    [(by_name, "argument 'a' is missing"), (text_as_type, "expected types, got 'int'")],
)
def test_refused(function, message):
    with pytest.raises(jit.FrontendError, match=message):
        jit.script(function)


def in_place(x: int) -> int:
    return behind(x, b=3)


def test_arguments_by_position():
    assert jit.script(in_place)(1) == -2


def appends(x: int) -> int:
    NUMBERS.append(x)
    return len(NUMBERS)


def through_a_name(x: int) -> list[int]:
    numbers = NUMBERS
    numbers.append(x)
    return numbers


def sets(x: int) -> dict[str, int]:
    NAMED["b"] = x
    return NAMED


def deletes(x: int) -> list[int]:
    del NUMBERS[x]
    return NUMBERS


def within(x: int) -> int:
    NESTED[0].append(x)
    return len(NESTED[0])


@pytest.mark.parametrize("function", [appends, through_a_name, sets, deletes, within])
def test_containers_of_the_module_are_not_changed(function):
    """Each mention is a copy, so a change would be lost."""
    with pytest.raises(jit.FrontendError, match="expected something that can be changed, got"):
        jit.script(function)


def copies(x: int) -> list[int]:
    numbers = NUMBERS.copy()
    numbers.append(x)
    return numbers + NESTED[1] + [NAMED["a"]]


def test_copies_of_them_are_changed():
    assert jit.script(copies)(7) == copies(7) == [1, 2, 7, 2, 1]


def starred(xs: list[int]) -> list[int]:
    first, *rest, last = xs
    return [first, last, *rest]


def first_and_rest(xs: list[int]) -> list[int]:
    first, *rest = xs
    return [*rest, first]


@pytest.mark.parametrize("function", [starred, first_and_rest])
@pytest.mark.parametrize("count", range(4))
def test_starred_targets_leave_enough(function, count):
    xs = list(range(count))
    try:
        expected = function(xs)
    except ValueError as error:
        with pytest.raises(ValueError) as raised:
            jit.script(function)(xs)
        assert str(error) in str(raised.value)
    else:
        assert jit.script(function)(xs) == expected


class Sometimes:
    def __init__(self, x: int):
        if x < 0:
            raise ValueError("negative")
        self.x = x
        if x > 1:
            self.y = x
            self.names = ["a"] * x

    def total(self) -> int:
        self.y += 1
        return self.y + len(self.names)


class Early:
    def __init__(self, x: int):
        if x < 1:
            return
        self.y = x


class Either:
    def __init__(self, x: int):
        if x > 1:
            self.y = 1.5
        else:
            self.y = 2


def sometimes(x: int) -> int:
    return Sometimes(x).total()


def early(x: int) -> int:
    return Early(x).y


def set_later(x: int) -> int:
    made = Early(x)
    made.y = 3
    return made.y


def either(x: int) -> float:
    return Either(x).y


@pytest.mark.parametrize("function", [sometimes, early, set_later, either])
@pytest.mark.parametrize("x", [-1, 0, 1, 2, 3])
def test_attributes_that_init_sets_on_some_paths(function, x):
    try:
        expected = function(x)
    except (AttributeError, ValueError) as error:
        with pytest.raises(type(error), match=str(error)):
            jit.script(function)(x)
    else:
        assert jit.script(function)(x) == expected
