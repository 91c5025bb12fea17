"""NamedTuple classes with a __new__ of their own, in scripted programs."""

from __future__ import annotations

from typing import NamedTuple

from weft import jit


class _Range(NamedTuple):
    low: int
    high: int


class Ordered(_Range):
    def __new__(cls, low: int, high: int = 3):
        if low > high:
            low, high = high, low
        return super().__new__(cls, low, high)

    def width(self) -> int:
        return self.high - self.low


class Widened(Ordered):
    def __new__(cls, low: int, by: int):
        return Ordered.__new__(cls, low - by, high=low + by)


def test_calls_do_what_new_does() -> None:
    def f(n: int):
        made = Ordered(n)
        return made, made.width(), Ordered(high=1, low=n).low, Widened(n, -2)

    scripted = jit.script(f)
    for n in (1, 5):
        assert scripted(n) == f(n)
    # Across the border a tuple keeps its fields: __new__ would order them again.
    assert type(scripted(1)[3]) is Widened and type(scripted(1)[0]) is Ordered


class Shifted(_Range):
    def __new__(cls, low: int, high: int):
        return super().__new__(cls, low + 1, high + 1)


def test_results_and_arguments_keep_their_fields():
    def same(given: Shifted) -> Shifted:
        return given._replace(high=9)

    given = Shifted(1, 2)
    assert tuple(given) == (2, 3)
    got = jit.script(same)(given)
    assert type(got) is Shifted and tuple(got) == (2, 9)
