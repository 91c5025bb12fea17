"""How often this process has compiled: a program that serves wants to see that it has ceased to."""

from __future__ import annotations

from weft.jit import execution
from weft.jit.native import compiler


def stats() -> dict[str, int]:
    """What was compiled in this process so far.

    programs   functions made to run: as they stand for their first call, optimised at the second,
               and once more at the first call with (or without) gradients to record. Never for
               other shapes
    native     fusion groups that have native code, made or found on disk: one per group and dtypes
    failures   fusion groups that could not be compiled and run on their operators' kernels

    >>> import weft
    >>> @weft.jit.script
    ... def double(x):
    ...     return x * 2
    >>> before = weft.jit.stats()["programs"]
    >>> for length in range(1, 100):
    ...     _ = double(weft.ones(length))
    >>> weft.jit.stats()["programs"] - before
    2
    """
    return {
        "programs": execution.programs_made,
        "native": len(compiler.compiled),
        "failures": len(compiler.failures),
    }
