"""Deep programs: room for deep recursion belongs to the thread that compiles, and to nobody else."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from weft.jit.execution import LOCK
from weft.jit.ir.fresh_stack import on_fresh_stack, parse
from weft.jit.recursion import DeepRecursion


def depth_left(most: int = 100_000) -> int:
    """How many calls fit on the stack of this thread below here."""

    def deeper(n: int) -> int:
        try:
            return deeper(n + 1) if n < most else n
        except RecursionError:
            return n

    return deeper(0)


@pytest.fixture
def limit() -> Iterator[int]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own: another test of this process may have left more
    yield 1000
    sys.setrecursionlimit(before)


def test_room_for_one_thread_alone(limit: int) -> None:
    plain = depth_left()
    found: list[int] = []
    with DeepRecursion():
        assert depth_left(5_000) == 5_000
        assert sys.getrecursionlimit() == limit
        other = threading.Thread(target=lambda: found.append(depth_left()))
        other.start()
        other.join()
    assert found[0] < 1.5 * limit
    assert depth_left() == plain


def test_room_is_given_back_once(limit: int) -> None:
    plain = depth_left()
    with LOCK, LOCK, LOCK:
        assert depth_left(5_000) == 5_000
        assert depth_left() < 30_000  # not thrice the room: the stack of C ends somewhere
    assert depth_left() == plain
    with pytest.raises(KeyError), LOCK:
        raise KeyError
    assert depth_left() == plain


def test_a_limit_set_meanwhile_stays(limit: int) -> None:
    plain = depth_left()
    with DeepRecursion():
        sys.setrecursionlimit(limit + 500)
    assert abs(depth_left() - plain - 500) < 5


def early_returns(count: int) -> str:
    lines = "".join(f"    if x == {i}:\n        return {i}\n" for i in range(count))
    return f"def early(x: int) -> int:\n{lines}    return helper(x)\n"


def helper(x: int) -> int:
    s = f"{x:5d}"  # what the compiler has not met before: more is parsed far down
    return len(s.strip().ljust(7)) * 3


def test_functions_are_parsed_far_down() -> None:
    early = weft.jit.CompilationUnit(early_returns(300)).early
    assert [early(i) for i in (0, 299, 1000)] == [0, 299, helper(1000)]


@pytest.mark.parametrize(
    "text",
    [" + ".join(["x"] * 800), "x" + ".add(1)" * 800, "x" + "[:]" * 800, "-" * 800 + "x"],
    ids=["sum", "methods", "items", "signs"],
)
def test_long_expressions(text: str) -> None:
    long = weft.jit.CompilationUnit(f"def long(x):\n    return {text}\n").long
    x = weft.ones(2)
    assert weft.equal(long(x), eval(text, {"x": x}))


def test_parsing_where_the_stack_is_deep() -> None:
    def down(n: int) -> ast.Module:
        return down(n - 1) if n else parse("f(x)[0] + 1")

    with DeepRecursion():
        assert ast.dump(down(3_000)) == ast.dump(ast.parse("f(x)[0] + 1"))
    with pytest.raises(SyntaxError):
        parse("x +")
    with pytest.raises(RecursionError):  # there is no room for it on any stack
        on_fresh_stack(endless)


def endless() -> None:
    endless()


def test_a_parser_that_was_disturbed_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python 3.11 two threads may disturb each other: ast.parse raises a SystemError."""
    parser, failures = ast.parse, [SystemError("AST constructor recursion depth mismatch")] * 3

    def disturbed(*args: Any, **kwargs: Any) -> ast.AST:
        if failures:
            raise failures.pop()
        return parser(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert weft.jit.CompilationUnit("def f(x: int) -> int:\n    return x + 1\n").f(2) == 3
    assert not failures
