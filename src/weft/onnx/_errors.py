"""What an export may raise."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """A program that cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """Operators that have no mapping to ONNX; the text names all of them, and where they stand."""


class SymbolicValueError(OnnxExporterError):
    """A mapping was given a value that it cannot express."""


class OnnxExporterWarning(UserWarning):
    """An export that may not be what was meant."""
