"""How code runs: in Python, in a compiled program, or under a trace."""

from __future__ import annotations

from weft import _C


def is_scripting() -> bool:
    """False in Python, True in a program."""
    return False


def is_tracing() -> bool:
    """Whether this thread is taking a trace."""
    return _C._get_tracing_state() is not None


is_scripting.__weft_jit__ = "is_scripting"  # type: ignore[attr-defined]
is_tracing.__weft_jit__ = "is_tracing"  # type: ignore[attr-defined]
