"""Cases: one piece of work, written once, for any library with PyTorch's interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Case:
    """A statement to be timed.

    statement: Python code that sees the names `setup(torch)` returns and `torch` itself, where
    torch is weft or PyTorch. Being a statement and not a function, it is timed without a call.
    seconds: how long to measure each library; needs: the option without which the case is left out;
    middle: the median of the samples counts, not the best.
    """

    name: str
    statement: str
    setup: Callable[[Any], dict[str, Any]] = lambda torch: {}
    seconds: float = 0.25
    needs: str = ""
    middle: bool = False


@dataclass
class Probe:
    """A program run in a new Python process, which prints one number, best of `runs`.

    program: source in which {library} stands for the module to import; unit: what it prints;
    libraries: those that can run it; values: asked for when it runs, stand for further names.
    """

    name: str
    program: str
    unit: str
    runs: int = 1
    libraries: tuple[str, ...] = ("weft", "torch")
    values: Callable[[], dict[str, str]] = dict


@dataclass
class Group:
    """A named list of cases."""

    name: str
    cases: list[Case | Probe] = field(default_factory=list)

    def add(
        self,
        name: str,
        statement: str,
        setup: Any = None,
        seconds: float = 0.25,
        needs: str = "",
        middle: bool = False,
    ) -> None:
        """Adds a case; see Case."""
        made = Case(name, statement, setup or (lambda torch: {}), seconds, needs, middle)
        self.cases.append(made)
