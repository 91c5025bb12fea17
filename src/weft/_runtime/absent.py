"""What modules of devices and libraries answer that this build lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def is_available() -> bool:
    """False: tensors of this build live on the CPU."""
    return False


def is_built() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def empty_cache() -> None:
    """Nothing to do: weft.memory.empty_cache empties the CPU's."""


def manual_seed(seed: int) -> None:
    """Nothing to do: no device has a generator."""


def manual_seed_all(seed: int) -> None:
    """Nothing to do: no device has a generator."""


def define(module: dict[str, Any], doc: str, answer: Callable[[str], Any], heads: str) -> None:
    """Functions of a module, by their heads: each gives, or raises, `answer(its name)`.

    >>> names = {"__name__": "weft.cuda"}
    >>> define(names, "0.", lambda name: 0, "memory_allocated(device=None) device_count()")
    >>> names["memory_allocated"]("cuda:0"), names["device_count"].__doc__
    (0, '0.')
    """
    for head in heads.split():
        name, _, parameters = head[:-1].partition("(")
        made: Any = eval(f"lambda {parameters}: answer({name!r})", {"answer": answer})
        made.__name__ = made.__qualname__ = name
        made.__module__, made.__doc__ = module["__name__"], doc
        module[name] = made


def raising(place: str, error: type[Exception], more: str = "") -> Callable[[str], NoReturn]:
    """The answer of functions of `place` that need a GPU.

    >>> raising("cuda.nvtx", RuntimeError)("mark")
    Traceback (most recent call last):
    RuntimeError: cuda.nvtx.mark: expected a GPU, got a build for the CPU alone
    """

    def raises(name: str) -> NoReturn:
        raise error(f"{place}.{name}: expected a GPU, got a build for the CPU alone{more}")

    return raises
