"""Room for deep recursion while programs and kernels are compiled, on the thread that does it."""

from __future__ import annotations

from weft import _C

# What a program may need when each of its statements is nested in the one before it, and a kernel
# whose steps feed each other in one long chain.
_FRAMES = 20_000


class DeepRecursion:
    """A context in which Python functions of this thread may call each other deeply."""

    __slots__ = ("_raised",)

    def __enter__(self) -> None:
        self._raised = _C._raise_recursion_limit(_FRAMES)

    def __exit__(self, *exception: object) -> None:
        _C._lower_recursion_limit(_FRAMES, self._raised)
