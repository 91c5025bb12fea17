"""weft.profiler under its older name."""

from weft.profiler import record_function

__all__ = ["record_function"]
