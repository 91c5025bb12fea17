"""torch.__config__: what was built, and with how many threads it runs."""

from __future__ import annotations

import weft

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The version and the processor's registers that kernels use."""
    return f"weft {weft.__version__}\n  - kernels: {weft._C._isa()}\n"


def parallel_info() -> str:
    """The numbers of threads."""
    return f"weft:\n  get_num_threads() : {weft.get_num_threads()}\n"
