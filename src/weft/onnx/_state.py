"""What programs ask while a model is exported, and how it may be; needs no package."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager


class TrainingMode(enum.Enum):
    """In which mode the modules of a model are exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What operators become; weft knows ONNX's alone."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_depth = 0


@contextmanager
def exporting() -> Iterator[None]:
    """Within, is_in_onnx_export() is True."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: what modules ask that do something else then.

    >>> weft.onnx.is_in_onnx_export()
    False
    """
    return _depth > 0
