"""Room for deep recursion while programs and kernels are compiled, on the thread that does it."""

from __future__ import annotations

import sys

from weft import _C

# For statements nested in each other, and for kernels of one long chain of steps. Before Python
# 3.11 calls take the stack of C, which ends somewhere.
_FRAMES = 20_000 if sys.version_info >= (3, 11) else 5_000


class DeepRecursion:
    """A context in which Python functions of this thread may call each other deeply."""

    __slots__ = ("_raised",)

    def __enter__(self) -> None:
        self._raised = _C._raise_recursion_limit(_FRAMES)

    def __exit__(self, *exception: object) -> None:
        _C._lower_recursion_limit(_FRAMES, self._raised)
