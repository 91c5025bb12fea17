"""Runs kernels from Python: compiled in memory by llvmlite, called on NumPy arrays."""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

try:
    importlib.import_module("weft")
except ImportError:  # not built: the kernel language needs no extension
    package = types.ModuleType("weft")
    package.__path__ = [str(Path(__file__).resolve().parent.parent / "src" / "weft")]
    sys.modules["weft"] = package

import llvmlite.binding as llvm

from weft._kernels import aot, target
from weft._kernels.expr import Value, computing, source
from weft._kernels.kernel import FIRST_ATTRIBUTE, Kernel, attribute_scalars
from weft._kernels.lower import Function, module_text
from weft._kernels.trace import Program, trace
from weft._kernels.types import BOOL, F32, F64, I64, DType, dtype

NUMPY = {
    "Bool": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32,
    "I64": np.int64, "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "F16": np.uint16,
    "BF16": np.uint16, "F32": np.float32, "F64": np.float64,
    "C64": np.complex64, "C128": np.complex128, "F8E4M3FN": np.uint8, "C32": np.uint32,
}  # fmt: skip

_HOST = {
    "v2": "sse4.2", "v3": "avx2", "v4": "avx512f",
}  # fmt: skip


def supported_isas() -> list[str]:
    """The instruction sets this machine can run."""
    if not target.is_x86():
        return ["v2"]
    features = llvm.get_host_cpu_features()
    return [isa for isa, feature in _HOST.items() if features.get(feature)]


class Compiled:
    """Kernels in memory; `run` calls one on arrays (written operands first)."""

    def __init__(self, kernels: dict[str, Kernel], isa: str):
        self.kernels = kernels
        sys.setrecursionlimit(20_000)
        level = target.targets([isa])[0]
        text = module_text(
            {f"kernel_{n}": Function(k, level) for n, k in kernels.items()},
            llvm.get_process_triple(),
        )
        aot.target_machine(level)  # initialises LLVM
        # Large code model: the C library may lie far away from memory made here.
        host = llvm.Target.from_triple(llvm.get_process_triple())
        machine = host.create_target_machine(
            cpu=level.cpu, features=level.features, opt=2, codemodel="jitdefault"
        )
        module = llvm.parse_assembly(text.replace("define hidden", "define"))
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def function(self, name: str) -> Callable[..., None]:
        address = self._engine.get_function_address(f"kernel_{name}")
        pointer = ctypes.c_void_p
        return ctypes.CFUNCTYPE(None, pointer, ctypes.c_int64, pointer)(address)

    def run(self, name: str, operands: Sequence[np.ndarray], n: int, scalars: bytes = b"") -> None:
        addresses = (ctypes.c_void_p * max(1, len(operands)))(*(a.ctypes.data for a in operands))
        padded = ctypes.create_string_buffer(scalars + bytes(16), len(scalars) + 16)
        self.function(name)(addresses, n, padded)


def slots(*values: Any, length: int = 0, position: int = 0) -> bytes:
    """Scalar slots of a call: row length, position, then NumPy scalars."""
    parts = [struct.pack("q", length), struct.pack("q", position)]
    parts += [np.asarray(v).tobytes() for v in values]
    return b"".join(p.ljust(16, b"\0") for p in parts)


def pointwise(
    body: Callable[..., Value], inputs: Sequence[DType], attributes: Sequence[DType] = ()
) -> Kernel:
    """The kernel of a body: operands are the output, then the inputs."""
    values = [source("input", i, d) for i, d in enumerate(inputs)]
    values += [source("attribute", i, d) for i, d in enumerate(attributes)]
    with computing(inputs[0]):
        result = body(*values)
    outputs = list(result) if isinstance(result, tuple) else [result]
    reads = {("input", i): len(outputs) + i for i in range(len(inputs))}
    types_ = [v.dtype for v in outputs] + list(inputs)
    return Kernel(types_, outputs, reads, attribute_scalars(outputs, len(attributes)))


def apply(compiled: Compiled, name: str, *inputs: np.ndarray, scalars: bytes = b"") -> np.ndarray:
    """Runs a pointwise kernel with one output on arrays of one length."""
    out = np.empty(inputs[0].shape, NUMPY[compiled.kernels[name].operands[0].name])
    compiled.run(name, [out, *map(np.ascontiguousarray, inputs)], inputs[0].size, scalars)
    return out


__all__ = [
    "BOOL", "F32", "F64", "FIRST_ATTRIBUTE", "I64", "NUMPY", "Compiled", "DType", "Program",
    "apply", "dtype", "pointwise", "slots", "supported_isas", "trace",
]  # fmt: skip
