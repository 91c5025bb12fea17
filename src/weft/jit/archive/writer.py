"""weft.jit.save: compiled modules and functions as archives that PyTorch loads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from weft.jit.archive.autocasts import refuse_questions
from weft.jit.archive.collect import Collector
from weft.jit.archive.cycles import refuse_cycles
from weft.jit.archive.debug import origins_of
from weft.jit.archive.definitions import files_of
from weft.jit.archive.pickler import ArchivePickler, type_of_object
from weft.jit.archive.printer import Program, joined
from weft.jit.execution import LOCK
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.ir import Function
from weft.jit.ir import types as ty
from weft.jit.module_methods import compile_postponed
from weft.jit.script_function import ScriptFunction
from weft.serialization.atomic import replaced_file
from weft.serialization.zip_writer import ZipWriter

Records = dict[str, Any]  # bytes or buffers by their names in the archive


def save(
    m: Any,
    f: str | os.PathLike[str] | Any,
    _extra_files: Mapping[str, str | bytes] | None = None,
    *,
    _records: Callable[[list[Any]], Records] | None = None,
) -> None:
    """Writes a compiled module or function to a path or a writable binary file, for
    `weft.jit.load` and `torch.jit.load`; a function is the forward of a module there.

    `_extra_files` are files of the user by name. `_records` gives further records, which loading
    passes over, for the bytes of the storages data/0, data/1, ... A path gets its new content when
    it is complete.
    The same program always gives the same bytes.

    TypeError for what is not compiled; RuntimeError that names all that archives cannot hold.

    >>> import io, weft
    >>> file = io.BytesIO()
    >>> weft.jit.save(weft.jit.script(weft.nn.ReLU()), file)
    >>> weft.jit.load(io.BytesIO(file.getvalue()))(weft.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    extra = {
        f"extra/{name}": data.encode() if isinstance(data, str) else bytes(data)
        for name, data in (_extra_files or {}).items()
    }
    with LOCK:
        own, storages = _records_of(_module(m))
        records = {**extra, **own, **(_records(storages) if _records else {})}
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        with replaced_file(f) as file:
            _write(file, folder if folder.isascii() and folder else "archive", records)
    elif hasattr(f, "write"):
        _write(f, "archive", records)
    else:
        raise TypeError(f"save: expected a path or a writable file, got {type(f).__name__}")


def _module(program: Any) -> Any:
    """A module; of a function one whose forward it is."""
    if hasattr(program, "_jit_info"):
        if isinstance(program._jit_info, ModuleInfo):
            compile_postponed(program._jit_info)
        return program
    if not isinstance(program, ScriptFunction):
        raise TypeError(
            f"save: expected a compiled module or function, got {type(program).__name__}"
        )
    function = program.function
    made = ty.ClassType("__torch__.PlaceholderModule", {"training": ty.Attribute(ty.BOOL)})
    made.is_module = True
    graph = function.graph.copy()
    graph.block.insert_param(0, made, "self")
    names = ["self", *function.arg_names]
    made.methods["forward"] = Function(f"{made.name}.forward", graph, names, function.defaults)
    return SimpleNamespace(_jit_info=SimpleNamespace(type=made), training=True)


def _records_of(module: Any) -> tuple[Records, list[Any]]:
    """What an archive of a module holds, and its storages."""
    root = type_of_object(module, ty.NONE)
    collector = Collector()
    _collect_modules(collector, module, root)
    program = Program(collector)
    code = files_of(program)
    refuse_cycles(collector, program.refuse)
    refuse_questions(collector.definitions, program.refuse)
    if program.refused:
        refused = ", ".join(program.refused)
        raise RuntimeError(f"save: expected a program that archives can hold, got {refused}")
    pickler, constants = ArchivePickler(program.names), ArchivePickler(program.names)
    data = pickler.dump_typed(module, root)
    tensors = tuple(program.constants.tensors)
    listed = constants.dump_typed(tensors, ty.TupleType((ty.TENSOR,) * len(tensors)))
    tables = {f"{path}.debug_pkl": origins_of(lines) for path, lines in code.items()}
    records = {
        **{f"data/{key}": memoryview(each) for key, each in enumerate(pickler.storages)},
        "data.pkl": data,
        **{path: joined(lines).encode() for path, lines in code.items()},
        **{path: table for path, table in tables.items() if table is not None},
        **{f"constants/{key}": memoryview(each) for key, each in enumerate(constants.storages)},
        "constants.pkl": listed,
        "version": f"{program.version}\n".encode(),
        "byteorder": b"little",
    }
    return records, pickler.storages


def _collect_modules(collector: Collector, module: Any, type: ty.Type) -> None:
    """The classes of all modules, and of objects that stand behind interfaces."""
    held = type_of_object(module, type)
    collector.type(held)
    for name, attribute in held.attributes.items():
        is_module = attribute.kind == "module" and attribute.type is not ty.NONE
        if is_module or isinstance(attribute.type, ty.InterfaceType):
            _collect_modules(collector, getattr(module, name), attribute.type)


def _write(file: Any, folder: str, records: Records) -> None:
    archive = ZipWriter(file, folder)
    for name, data in records.items():
        archive.add(name, data, compressed=name.endswith((".py", ".debug_pkl")))
    archive.add(".data/serialization_id", archive.checksum().encode())
    archive.close()
