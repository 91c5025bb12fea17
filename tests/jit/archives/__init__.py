"""Modules and functions of PyTorch, each of a kind of archive: what its code, its pickles or its
storages have that others have not. Only parity tests import this folder."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# (module or function, calls of it) by name; a call is a list of arguments.
CASES: dict[str, Callable[[], tuple[Any, list[list[Any]]]]] = {}


def case(name: str, *calls: list[Any]) -> Callable[[Any], Any]:
    """Registers a class of modules, a function, or a function that makes a program."""

    def register(made: Any) -> Any:
        def make() -> tuple[Any, list[list[Any]]]:
            torch.manual_seed(11)
            program = made() if isinstance(made, type) or made.__name__.startswith("make") else made
            return program, [list(call) for call in calls]

        CASES[name] = make
        return made

    return register


def image(*shape: int) -> Tensor:
    """A float tensor that is the same in each process."""
    count = int(torch.tensor(shape).prod())
    return (torch.arange(count, dtype=torch.float32) * 0.37).sin().reshape(shape)


X = image(3, 4)
