"""Kernels ahead of time: from table rows to one object file per instruction set.

Kernels that come out as the same text share one symbol: `add` of int32 and of uint32, the sums of
all rows that sum.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm

from . import convert
from .emit import ISAS, Source, SymbolSet, header
from .kernel import Kernel
from .lower import Function, module_text
from .target import Target, is_x86, targets
from .trace import Program, trace
from .types import DTYPES, DType

_initialized = False


def target_machine(target: Target) -> llvm.TargetMachine:
    """The code generator for one instruction set: position independent, no IR passes needed."""
    global _initialized
    if not _initialized:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _initialized = True
    triple = llvm.Target.from_triple(llvm.get_process_triple())
    return triple.create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default"
    )


@dataclass
class Job:
    """Everything to compile: kernels by symbol, and which symbol serves what."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    symbols: dict[str, dict[tuple[int, str], SymbolSet]] = field(default_factory=dict)
    conversions: dict[tuple[DType, DType], str] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    _known: dict[str, str] = field(default_factory=dict)

    def add(self, row: Any) -> None:
        """All kernels of one table row. Raises ValueError where the body makes no program."""
        program = trace(row)
        found: dict[tuple[int, str], SymbolSet] = {}
        for d, traced in program.traced.items():
            for i, step in enumerate(traced.steps):
                for role, kernel in step.kernels.items():
                    place = (
                        "" if len(traced.steps) == 1 and role == "horizontal" else f"{i}{role[0]}_"
                    )
                    symbol = self._symbol(f"weft_k_{row.id}_{place}{d}", kernel)
                    found.setdefault((i, role), {})[d] = symbol
        self.programs.append(program)
        self.symbols[row.id] = found

    def add_conversions(self) -> None:
        """The conversions between all pairs of dtypes."""
        for to in DTYPES:
            for old in DTYPES:
                symbol = f"weft_k_convert_{to}_{old}"
                self.conversions[to, old] = self._symbol(symbol, convert.kernel(to, old))

    def _symbol(self, wanted: str, kernel: Kernel) -> str:
        """`wanted`, or the symbol of an equal kernel: the text for one target tells."""
        text = Function(kernel, _REFERENCE).text
        symbol = self._known.setdefault(text, wanted)
        if symbol == wanted:
            self.kernels[wanted] = kernel
        return symbol

    def module(self, target: Target, triple: str) -> str:
        """The LLVM module with every kernel for one instruction set."""
        functions = {f"{s}_{target.name}": Function(k, target) for s, k in self.kernels.items()}
        return module_text(functions, triple)

    def source(self, isas: list[str]) -> str:
        """tile_ops.cpp for objects of these instruction sets; the others use the best one below."""
        names: dict[str, str] = {}
        best = None
        for isa in ISAS:
            best = targets([isa])[0].name if isa in isas or not is_x86() else best
            if best is not None:
                names[isa] = best
        source = Source(names)
        for program in self.programs:
            source.add(program, self.symbols[program.row.id])
        return source.text(self.conversions)

    def header(self) -> str:
        """tile_ops.h."""
        return header(self.programs)


# Any target will do to compare kernels, as long as it expands nothing the others keep apart.
_REFERENCE = targets(["v4"])[0]


def job(rows: Iterable[Any]) -> Job:
    """The job for all rows that have kernels, and the conversions."""
    sys.setrecursionlimit(max(20_000, sys.getrecursionlimit()))
    result = Job()
    for row in rows:
        if row.kind in ("pointwise", "reduce", "rowwise"):
            result.add(row)
    result.add_conversions()
    return result


def compile_object(text: str, target: Target) -> bytes:
    """An object file of a module's text."""
    machine = target_machine(target)
    module = llvm.parse_assembly(text)
    return machine.emit_object(module)


def object_names(isas: list[str]) -> list[str]:
    return [f"kernels_{t.name}.o" for t in targets(isas)]


_job: Job | None = None  # what forked workers see


def _compile(target: Target) -> bytes:
    assert _job is not None
    return compile_object(_job.module(target, llvm.get_process_triple()), target)


def compile_all(work: Job, isas: list[str], processes: int) -> dict[str, bytes]:
    """The objects by file name, in parallel where the system can fork."""
    global _job
    _job = work
    wanted = targets(isas)
    if processes > 1 and "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(min(processes, len(wanted))) as pool:
            objects = pool.map(_compile, wanted, chunksize=1)
    else:
        objects = [_compile(t) for t in wanted]
    return {f"kernels_{t.name}.o": o for t, o in zip(wanted, objects)}


def digest(*parts: bytes) -> str:
    """A fingerprint of everything the outputs depend on."""
    total = hashlib.sha256(
        llvm.get_process_triple().encode() + repr(llvm.llvm_version_info).encode()
    )
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()
