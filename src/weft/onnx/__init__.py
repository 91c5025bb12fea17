"""Exports to ONNX: `export(model, args, f)`. Needs the package onnx (`pip install weft[onnx]`).

A model is traced, or is a program of weft.jit, and run once on symbols: its operators become nodes
by one table (`_table.py`), which `register_custom_op_symbolic` adds to.
"""

from weft._runtime.exports import list_exports as _list_exports
from weft.onnx._export import export as export
from weft.onnx._program import ONNXProgram as ONNXProgram
from weft.onnx._state import OnnxExporterError as OnnxExporterError
from weft.onnx._state import OnnxExporterWarning as OnnxExporterWarning
from weft.onnx._state import OperatorExportTypes as OperatorExportTypes
from weft.onnx._state import SymbolicValueError as SymbolicValueError
from weft.onnx._state import TrainingMode as TrainingMode
from weft.onnx._state import UnsupportedOperatorError as UnsupportedOperatorError
from weft.onnx._state import is_in_onnx_export as is_in_onnx_export
from weft.onnx._state import register_custom_op_symbolic as register_custom_op_symbolic
from weft.onnx._state import unregister_custom_op_symbolic as unregister_custom_op_symbolic

_list_exports(vars())
