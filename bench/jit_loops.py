"""Compiled loops: what the interpreter itself costs. PyTorch's side is torch.jit.script."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from bench.case import Group

group = Group("jit_loops")


def branching(n: int) -> int:
    """Integers and a branch."""
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total = total + i
        else:
            total = total - 1
    return total


def recurrence(n: int, value: float) -> float:
    """Floats, each step from the one before."""
    for i in range(n):
        value = value * 0.5 + i
        if i < 500:
            value = value - 0.25
    return value


def fibonacci(n: int) -> int:
    """A loop whose values change places."""
    a, b = 0, 1
    while n > 0:
        a, b = b, (a + b) % 1000003
        n -= 1
    return a


def total_of(items: list[int]) -> int:
    """The items of a list."""
    total = 0
    for item in items:
        total += item * 2
    return total


def counts(n: int) -> dict[str, int]:
    """Strings and a dict."""
    found: dict[str, int] = {}
    for i in range(n):
        key = str(i % 7)
        if key in found:
            found[key] += 1
        else:
            found[key] = 1
    return found


def _scripted(function: Callable[..., Any], *args: Any) -> Callable[[Any], dict[str, Any]]:
    def setup(torch: Any) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch has deprecated it
            f = torch.jit.script(function)
        for _ in range(3):  # PyTorch optimises after two runs
            f(*args)
        return {"f": f, "args": args}

    return setup


def _lstm(torch: Any) -> dict[str, Any]:
    def cell(x, h, c, w_ih, w_hh, b, steps: int):  # type: ignore[no-untyped-def]
        for _ in range(steps):
            gates = torch.mm(x, w_ih) + torch.mm(h, w_hh) + b
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c

    size = 32
    state = [torch.randn(1, size), torch.zeros(1, size), torch.zeros(1, size)]
    weights = [torch.randn(size, 4 * size), torch.randn(size, 4 * size), torch.randn(4 * size)]
    with torch.no_grad():
        return _scripted(cell, *state, *weights, 100)(torch) | {"torch": torch}


group.add("branching, 1000 steps", "f(*args)", _scripted(branching, 1000))
group.add("recurrence of floats, 1000 steps", "f(*args)", _scripted(recurrence, 1000, 1.0))
group.add("fibonacci, 1000 steps", "f(*args)", _scripted(fibonacci, 1000))
group.add("list of 1000 ints", "f(*args)", _scripted(total_of, list(range(1000))))
group.add("dict of strings, 1000 steps", "f(*args)", _scripted(counts, 1000))
group.add("LSTM cell of 32, 100 steps", "f(*args)", _lstm)
