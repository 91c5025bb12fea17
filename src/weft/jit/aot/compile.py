"""weft.jit.aot_compile: a compiled module or function as one file that libweft runs.

The file is a zip archive of stored records, so tensors are mapped where they lie:

    weft/version     the version of this layout, in digits
    weft/inference   the program for calls that record no gradient, and of the state
    weft/gradients   the program for calls that do; without it the first is for both
    weft/tensors     the constants of both programs, as layouts over storages
    weft/x86-64, ... machine code for a machine, where it was asked for
    weft/packed, weft/packed/0, ...
                     weights as the kernels read them, where they were asked for
    weft/inference.operators, weft/gradients.operators
                     the schemas of operators that the host registers, where there are some:
                     then the version is 2, and 3 where an exception leaves contexts of objects
    data/0, ...      the bytes of the storages
    extra/...        files of the user

An archive of TorchScript may have such records too; both then name the same storages.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit.aot.machine_code import check_targets, machine_code, requests_of
from weft.jit.aot.packed import packed_weights
from weft.jit.aot.state import state_functions
from weft.jit.archive.writer import save
from weft.jit.codegen import lower_program
from weft.jit.codegen.program import ProgramData
from weft.jit.codegen.tables import Writer
from weft.jit.execution import LOCK
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types import modules
from weft.jit.ir import Function
from weft.jit.ir import types as ty
from weft.jit.module_methods import compiled_method, compiled_methods
from weft.jit.passes.gradients import may_start
from weft.jit.passes.options import DEFAULT, INFERENCE, Options
from weft.jit.pipeline import optimize
from weft.jit.script_function import ScriptFunction
from weft.jit.script_module import RecursiveScriptModule
from weft.library._operator import Operator
from weft.serialization.atomic import replaced_file
from weft.serialization.zip_writer import ZipWriter

VERSION, WITH_OPERATORS, WITH_CONTEXTS = 1, 2, 3
_LEVEL = 2


def aot_compile(
    program: RecursiveScriptModule | ScriptFunction | Mapping[str, ScriptFunction],
    f: str | os.PathLike[str],
    methods: Sequence[str] = (),
    examples: Sequence[tuple[Any, ...]] = (),
    targets: Sequence[str] = ("x86-64-v3", "x86-64-v4"),
    archive: bool = False,
    packed: bool = False,
    extra_files: Mapping[str, str | bytes] | None = None,
) -> None:
    """Compiles a scripted, traced or loaded program into a file for libweft, `weft.h` and
    `weft exec`. Functions by their names are one file, in which all can be called.

    The file holds forward, the methods that are exported or were called, and `methods`; for
    modules also their state, with which it can be trained. With `examples`, arguments of forward,
    it holds machine code of what they need fused, for each of `targets`: x86-64-v2, x86-64-v3,
    x86-64-v4, aarch64. Results do not depend on it. With `packed` it holds the weights that the
    examples need once more, as the kernels read them: the first call of a program that loads it
    is as fast as the later ones. With `archive` the file is an archive too, as
    `weft.jit.save` writes it, for `weft.jit.load` and `torch.jit.load`; both share the tensors.
    `extra_files` are files of the user by name, which hosts read by `weft_module_record`.

    Operators of weft.library are called by their names: the host registers them by
    `weft_register_operator`, or the process in Python that runs the file has them.

    NotImplementedError for programs that call other Python functions, and for attributes that a
    file cannot hold; ValueError for unknown targets, and for `packed` without examples.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "linear.weft")
    ...     aot_compile(weft.jit.script(weft.nn.Linear(2, 3)), path)
    ...     path.stat().st_size > 0
    True
    """
    check_targets(targets)
    if packed and not examples:
        raise ValueError("aot_compile: expected examples with packed=True, got none")
    write = partial(_write_archive if archive else _write, program, f, methods, extra_files or {})
    write({})
    if examples:
        records = packed_weights(os.fspath(f), examples) if packed else {}
        write(records | machine_code(requests_of(os.fspath(f), examples), targets))


def _records(program: Any, methods: Sequence[str], storages: list[Tensor]) -> dict[str, Any]:
    """The records of the file by their names, but for `storages`, which it has."""
    entries, state, classes = _parts(program, methods)
    tensors = TensorTable(storages)
    records: dict[str, Any] = {"weft/version": b""}
    # Functions have one program for both: it is half as large.
    first = DEFAULT if isinstance(program, Mapping) else INFERENCE
    optimized = [_optimized(entry, first) for entry in entries]
    version, made = _program("weft/inference", tensors, optimized + state, classes, first)
    records |= made
    if first is INFERENCE:
        optimized = [_optimized(entry, DEFAULT) for entry in entries]
        other, made = _program("weft/gradients", tensors, optimized, classes, DEFAULT)
        records |= made
        version = max(version, other)
    records["weft/version"] = str(version).encode()
    records["weft/tensors"] = tensors.encode()
    for index, storage in enumerate(tensors.storages[len(storages) :], len(storages)):
        records[f"data/{index}"] = storage.numpy()
    return records


def _write(
    program: Any, f: Any, methods: Sequence[str], extra: Mapping[str, Any], more: dict[str, Any]
) -> None:
    with LOCK:
        records = _records(program, methods, [])
    named = {f"extra/{name}": data for name, data in extra.items()}
    with replaced_file(f) as file:
        archive = ZipWriter(file, "archive")
        for name, data in (records | more | named).items():
            archive.add(name, data.encode() if isinstance(data, str) else data)
        archive.close()


def _write_archive(
    program: Any, f: Any, methods: Sequence[str], extra: Mapping[str, Any], more: dict[str, Any]
) -> None:
    def records_of(storages: list[Tensor]) -> dict[str, Any]:
        return _records(program, methods, storages) | more

    save(program, f, extra, _records=records_of)


def _parts(
    program: Any, methods: Sequence[str]
) -> tuple[list[Function], list[Function], list[ty.ClassType]]:
    """What can be called, by its name in the file; what makes and reads the state; classes."""
    if isinstance(program, ScriptFunction):
        return [_renamed(program.function, "forward")], [], []
    if isinstance(program, Mapping):
        return [_renamed(each.function, name) for name, each in program.items()], [], []
    if not isinstance(program, RecursiveScriptModule):
        raise TypeError(
            "aot_compile: expected a compiled module or function, got "
            f"{type(program).__name__}; compile it by weft.jit.script"
        )
    info = program._jit_info
    exported = modules.exported(info.python_class)
    names = {"forward", *methods, *info.defined, *compiled_methods(info)}
    names |= {name for name in exported if info.find(name) is not MISSING}  # unless frozen
    hooked = "__hooked__" if info.hooks or info.pre_hooks else "forward"
    sources = {name: hooked if name == "forward" else name for name in names - {"__hooked__"}}
    entries = [
        _renamed(compiled_method(info, source).function, name)
        for name, source in sorted(sources.items())
    ]
    classes = sorted(modules.classes_below(info), key=lambda each: each.name)
    return entries, state_functions(program), [info.type, *classes]


def _renamed(function: Function, name: str) -> Function:
    return Function(name, function.graph, function.arg_names, function.defaults, function.doc)


def _optimized(function: Function, options: Options) -> Function:
    """The function for a program. One that starts gradients by itself is the same in both."""
    return optimize(function, _LEVEL, DEFAULT if may_start(function.graph) else options)


def _program(
    record: str,
    tensors: TensorTable,
    functions: list[Function],
    classes: Iterable[ty.ClassType],
    options: Options,
) -> tuple[int, dict[str, bytes]]:
    """The version that the program needs, and its records: the numbers of its tensors, then its
    bytes; beside it the schemas of the operators that it calls by name."""
    gradients = options.gradients or any(may_start(each.graph) for each in functions)
    data = lower_program(functions, classes, gradients)
    operators = _operators(data)
    program = data.encode()
    out = Writer()
    out.u32(len(data.tables.inputs))
    out.u32(*[tensors.add(value) for value in data.tables.inputs])
    records, version = {record: bytes(out.bytes) + program}, VERSION
    if operators:
        version = WITH_OPERATORS
        texts = [str(each.schema).encode() for each in operators]
        listed = b"".join(struct.pack("<I", len(text)) + text for text in texts)
        records[f"{record}.operators"] = struct.pack("<I", len(texts)) + listed
    if any(code.name == "enter_context" for each in data.functions for code in each.code):
        version = WITH_CONTEXTS
    return version, records


def _operators(data: ProgramData) -> list[Operator]:
    """The operators of programs behind what it calls. NotImplementedError where that is Python
    otherwise."""
    found = [getattr(each, "__self__", None) for each in data.callables]
    functions = [f for f, each in zip(data.callables, found) if not isinstance(each, Operator)]
    if functions:
        names = sorted({getattr(each, "__qualname__", repr(each)) for each in functions})
        raise NotImplementedError(
            f"aot_compile: expected a program without Python, got calls of {', '.join(names)}"
        )
    return [each for each in found if isinstance(each, Operator)]


class TensorTable:
    """Tensors as layouts over storages. Those that share memory share it in the file."""

    def __init__(self, storages: Iterable[Tensor] = ()) -> None:
        self.storages = list(storages)  # uint8, all bytes of a storage
        self._tensors: list[Tensor] = []
        self._layouts: list[bytes] = []
        self._known: dict[int, int] = {}
        self._storage_index = {each.data_ptr(): i for i, each in enumerate(self.storages)}

    def add(self, tensor: Any) -> int:
        """The place of a tensor."""
        if not isinstance(tensor, Tensor):
            raise NotImplementedError(
                "aot_compile: expected constants that a file can hold, got a "
                f"{type(tensor).__name__}"
            )
        if id(tensor) not in self._known:
            self._known[id(tensor)] = len(self._tensors)
            self._tensors.append(tensor)
            self._layouts.append(self._layout(tensor))
        return self._known[id(tensor)]

    def _layout(self, tensor: Tensor) -> bytes:
        dtype = str(tensor.dtype).rpartition(".")[2].encode()
        head = struct.pack("<I", len(dtype)) + dtype
        sizes, strides = tensor.size(), tensor.stride()
        numbers = [tensor.storage_offset(), *sizes, *strides]
        fixed = self._storage(tensor), tensor.requires_grad, len(sizes)
        return head + struct.pack(f"<IBI{len(numbers)}q", *fixed, *numbers)

    def _storage(self, tensor: Tensor) -> int:
        storage = tensor.detach().untyped_storage()
        key = storage.data_ptr() or -1 - id(tensor)  # empty ones share nothing
        if key not in self._storage_index:
            self._storage_index[key] = len(self.storages)
            whole = _C.empty(0, dtype=_C.uint8).set_(storage, 0, (storage.nbytes(),))
            self.storages.append(whole)
        return self._storage_index[key]

    def encode(self) -> bytes:
        """The sizes of the storages, then the tensors."""
        count = len(self.storages)
        sizes = struct.pack(f"<I{count}Q", count, *(each.numel() for each in self.storages))
        return sizes + struct.pack("<I", len(self._layouts)) + b"".join(self._layouts)
