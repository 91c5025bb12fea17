"""Kernels ahead of time: from table rows to object files.

Kernels that come out as the same text share one symbol: `add` of int32 and of uint32, the sums of
all rows that sum. The kernels lie in shards, and there is an object of each shard for each
instruction set. A row's shard is told by its name alone, so that a changed row changes one shard
and a new row moves no other.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from . import convert
from .emit import ISAS, Source, SymbolSet
from .kernel import Kernel
from .lower import Function, module_text
from .target import AARCH64, Target, is_aarch64, linux_triple, targets
from .trace import Program, trace
from .types import DTYPES, DType

# Rows share a shard by chance; this many make each one a second's work for LLVM at most.
ROW_SHARDS = 32
CONVERSIONS = "conversions"
FOLDER = "kernels"  # of the objects
SHARDS = (*(f"rows_{i:02}" for i in range(ROW_SHARDS)), CONVERSIONS)

_initialized = False


def target_machine(target: Target) -> llvm.TargetMachine:
    """The code generator for one instruction set: position independent, no IR passes needed."""
    global _initialized
    if not _initialized:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _initialized = True
    return llvm.Target.from_triple(triple_of(target)).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default"
    )


def triple_of(target: Target) -> str:
    """The triple of this process, where it can run the target's code; Linux's in a cross build."""
    is_own = (target == AARCH64) == is_aarch64()
    return llvm.get_process_triple() if is_own else linux_triple(target)


@dataclass
class Job:
    """Everything to compile: kernels by symbol, and which symbol serves what.

    A kernel is there as its function for the reference target; `shards` has the symbols of each
    shard. A kernel that rows of several shards share is in that of the row that came first.
    """

    kernels: dict[str, Function] = field(default_factory=dict)
    shards: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SHARDS})
    symbols: dict[str, dict[tuple[int, str], SymbolSet]] = field(default_factory=dict)
    conversions: dict[tuple[DType, DType], str] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    _known: dict[str, str] = field(default_factory=dict)

    def add(self, row: Any) -> None:
        """All kernels of one table row. Raises ValueError where the body makes no program."""
        program, shard = trace(row), shard_of(row)
        found: dict[tuple[int, str], SymbolSet] = {}
        for d, traced in program.traced.items():
            for i, step in enumerate(traced.steps):
                for role, kernel in step.kernels.items():
                    place = (
                        "" if len(traced.steps) == 1 and role == "horizontal" else f"{i}{role[0]}_"
                    )
                    symbol = self._symbol(f"weft_k_{row.id}_{place}{d}", kernel, shard)
                    found.setdefault((i, role), {})[d] = symbol
        for d, kernel in program.narrow.items():
            symbol = self._symbol(f"weft_k_{row.id}_{d}", kernel, shard)
            found[0, "horizontal"][d] = symbol
        self.programs.append(program)
        self.symbols[row.id] = found

    def add_conversions(self) -> None:
        """The conversions between all pairs of dtypes."""
        for to in DTYPES:
            for old in DTYPES:
                symbol = f"weft_k_convert_{to}_{old}"
                kernel = convert.kernel(to, old)
                self.conversions[to, old] = self._symbol(symbol, kernel, CONVERSIONS)

    def _symbol(self, wanted: str, kernel: Kernel, shard: str) -> str:
        """`wanted`, or the symbol of an equal kernel: the text for one target tells."""
        function = Function(kernel, _REFERENCE)
        symbol = self._known.setdefault(function.text, wanted)
        if symbol == wanted:
            self.kernels[wanted] = function
            self.shards[shard].append(wanted)
        return symbol

    def module(self, shard: str, target: Target, triple: str) -> str:
        """The LLVM module with the kernels of a shard for one instruction set."""
        functions = {f"{s}_{target.name}": self._function(s, target) for s in self.shards[shard]}
        return module_text(functions, triple)

    def _function(self, symbol: str, target: Target) -> Function:
        known = self.kernels[symbol]
        return known if target == _REFERENCE else Function(known.kernel, target)

    def source(self, isas: list[str]) -> str:
        """tile_ops.cpp for objects of these instruction sets; the others use the best one below."""
        names: dict[str, str] = {}
        given = dict(zip(isas, targets(isas), strict=False))
        best = given.get(AARCH64.name)
        for isa in ISAS:
            best = given.get(isa, best)
            if best is not None:
                names[isa] = best.name
        source = Source(names)
        for program in self.programs:
            source.add(program, self.symbols[program.row.id])
        return source.text(self.conversions)


def shard_of(row: Any) -> str:
    """The shard of a row's kernels."""
    return SHARDS[zlib.crc32(row.id.encode()) % ROW_SHARDS]


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
    """The files of all shards, relative to the folder of outputs."""
    return [object_name(shard, target) for target in targets(isas) for shard in SHARDS]


def object_name(shard: str, target: Target) -> str:
    return f"{FOLDER}/{shard}_{target.name}.o"


_job: Job | None = None  # what forked workers see


def _update(task: tuple[Path, str, Target]) -> str | None:
    """Compiles one object if its text is not that of the file. Returns the name of what it wrote.

    The digest beside the object is missing while the object is written.
    """
    out, shard, target = task
    assert _job is not None
    name = object_name(shard, target)
    path, beside = out / name, out / f"{name}.digest"
    text = _job.module(shard, target, triple_of(target))
    current = digest(repr(target).encode(), text.encode())
    if path.exists() and beside.exists() and beside.read_text() == current:
        return None
    beside.unlink(missing_ok=True)
    path.write_bytes(compile_object(text, target))
    beside.write_text(current)
    return name


def update_objects(work: Job, out: Path, isas: list[str], processes: int) -> list[str]:
    """Brings the objects below `out` up to date, in parallel where the system can fork.

    Returns the names of those that it wrote. Objects of shards that are no more are removed.
    """
    global _job
    _job = work
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    names = object_names(isas)
    for path in folder.iterdir():
        if f"{FOLDER}/{path.name.removesuffix('.digest')}" not in names:
            path.unlink()
    tasks = [(out, shard, target) for shard in SHARDS for target in targets(isas)]
    if processes > 1 and "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            written = pool.map(_update, tasks, chunksize=1)
    else:
        written = [_update(task) for task in tasks]
    return [name for name in written if name is not None]


def digest(*parts: bytes) -> str:
    """A fingerprint of everything the outputs depend on."""
    total = hashlib.sha256(
        llvm.get_process_triple().encode() + repr(llvm.llvm_version_info).encode()
    )
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()
