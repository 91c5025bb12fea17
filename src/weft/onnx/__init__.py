"""Exports to ONNX: `export(model, args, f)`. Needs the package onnx (`pip install weft[onnx]`).

A model is traced, or is a program of weft.jit, and run once on symbols: its operators become nodes
by one table (`_table.py`), which `register_custom_op_symbolic` adds to.
"""

from weft.onnx._custom import register_custom_op_symbolic, unregister_custom_op_symbolic
from weft.onnx._errors import (
    OnnxExporterError,
    OnnxExporterWarning,
    SymbolicValueError,
    UnsupportedOperatorError,
)
from weft.onnx._export import export
from weft.onnx._program import ONNXProgram
from weft.onnx._state import OperatorExportTypes, TrainingMode, is_in_onnx_export

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OnnxExporterWarning",
    "OperatorExportTypes",
    "SymbolicValueError",
    "TrainingMode",
    "UnsupportedOperatorError",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]
