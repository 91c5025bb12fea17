"""What passes may assume and do."""

from __future__ import annotations

from weft.jit.ir.record import record


@record(frozen=True)
class Options:
    """`gradients`: gradients may be recorded when the program runs. Then passes keep the order in
    which they are added up, because a sum of floats depends on it. A program that runs without
    gradients (inference) may be optimised with False. `fast_math`: rules that change the last bits
    of results are used as well. The limits bound the growth of programs, not what they mean.
    """

    gradients: bool = True
    fast_math: bool = False
    inline_limit: int = 20_000  # nodes that inlining may add to a graph
    call_size: int = 500  # nodes of a function that several calls share instead of copies
    unroll_trips: int = 8
    unroll_limit: int = 128  # nodes an unrolled loop may have


DEFAULT = Options()
INFERENCE = Options(gradients=False)
