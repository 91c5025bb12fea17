"""Python's own parser, compiler and imports, called where the stack may be deep already.

Compiling nested programs goes deep (weft.jit.recursion), and Python 3.11 measures the depth of what
it parses from the bottom of the thread's stack, against the limit of the process: there it refuses
the simplest text.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_TIMES = 100


def on_fresh_stack(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What a function gives; it is called again, on a thread of its own, if the stack was too deep
    for it here."""
    try:
        return function(*args, **kwargs)
    except RecursionError:
        pass
    given: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(function(*args, **kwargs))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="weft-parser")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return given[0]


def parse(text: str, *args: Any, **kwargs: Any) -> Any:
    """As ast.parse. Again if another thread parsed something in the middle of it: in Python 3.11
    that is a SystemError, since the depths of both are kept in one place."""
    for _ in range(_TIMES):
        try:
            return on_fresh_stack(ast.parse, text, *args, **kwargs)
        except SystemError as error:
            disturbed = error
    raise disturbed


def literal_eval(text: str) -> Any:
    """As ast.literal_eval of a text."""
    return on_fresh_stack(ast.literal_eval, text)
