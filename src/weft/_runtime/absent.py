"""What modules of devices and libraries answer that this build lacks."""

from __future__ import annotations

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


def raising(place: str, name: str, error: type[Exception]) -> Any:
    """The function `name` of a module `place` of GPUs, which raises.

    >>> raising("cuda.nvtx", "mark", RuntimeError)("step")
    Traceback (most recent call last):
    RuntimeError: cuda.nvtx.mark: expected a GPU, got a build for the CPU alone
    """

    def raises(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(f"{place}.{name}: expected a GPU, got a build for the CPU alone")

    raises.__name__ = raises.__qualname__ = name
    raises.__doc__ = f"Raises {error.__name__}."
    return raises
