"""weft.jit.load: an archive that PyTorch wrote, as a compiled module."""

from __future__ import annotations

import functools
import io
import os
from typing import Any

from weft._C import Tensor
from weft.jit.archive.cached_programs import programs_of
from weft.jit.archive.classes import Definitions, LoadedModule
from weft.jit.archive.code import CODE, ArchiveCode
from weft.jit.archive.legacy import LIBRARIES, TREE, LegacyModules, get, read_tensors, read_tree
from weft.jit.archive.names import is_known
from weft.jit.archive.objects import build, global_finder
from weft.jit.archive.operators import NEWEST
from weft.jit.archive.unknown import unknown_operators
from weft.jit.cache.cached_programs import CachedPrograms
from weft.jit.ir.literals import own
from weft.jit.script_module import loaded_module
from weft.serialization.errors import LoadError
from weft.serialization.source import Source, open_source
from weft.serialization.storages import MapLocation, located, storages_of
from weft.serialization.unpickle import Unpickler
from weft.serialization.zip_reader import ZipReader

_MAX_PICKLE = 1 << 30


def load(
    f: str | os.PathLike[str] | bytes | Any,
    map_location: MapLocation = None,
    _extra_files: dict[str, Any] | None = None,
) -> Any:
    """The module that `torch.jit.save` wrote, compiled. `f` is a path, a readable binary file, or
    the bytes of one.

    Nothing of the file is executed: its code is compiled as `script` compiles. `map_location`: as
    of `weft.load`; devices that the code or attributes name are mapped as well, but not by a
    function, which is for storages. `_extra_files` maps names of extra records to values, which
    their bytes replace.

    LoadError (a RuntimeError) for files that are damaged or hold what is refused; FrontendError for
    code that is none of TorchScript; OSError where the file cannot be read. Calling an operator
    that weft has not raises NotImplementedError, which names all such operators of the archive.
    """
    with open_source(io.BytesIO(f) if isinstance(f, bytes) else f, "load") as source:
        _refuse_others(source)
        archive = ZipReader(source)
        for name in _extra_files or ():
            assert _extra_files is not None
            record = f"extra/{name}"
            _extra_files[name] = archive.read(record, _MAX_PICKLE) if record in archive else b""
        root, cached = read_root(archive, map_location)
    return loaded_module(root, cached)


def missing_operators(path: str) -> dict[str, str]:
    """The operators that an archive's code names and weft has not, each with the first place."""
    with open_source(path, "load") as source:
        archive = ZipReader(source)
        code = ArchiveCode(archive, LIBRARIES if TREE in archive else CODE)
    return dict(sorted(unknown_operators(code, is_known).items()))


def extra_files(path: str) -> dict[str, bytes]:
    """The user's files in an archive, by name."""
    with open_source(path, "load") as source:
        archive = ZipReader(source)
        found = [name for name in archive.names() if name.startswith("extra/")]
        return {name.removeprefix("extra/"): archive.read(name, _MAX_PICKLE) for name in found}


def read_root(
    archive: ZipReader, map_location: MapLocation
) -> tuple[LoadedModule, CachedPrograms | None]:
    """The module of an archive as Python's object, whose methods nobody has compiled, and where its
    programs are kept on disk."""
    is_legacy = TREE in archive
    constants: list[Any] = []
    code = ArchiveCode(archive, LIBRARIES if is_legacy else CODE)
    device_map = functools.partial(located, map_location)
    definitions = Definitions(code, constants, _version(archive), device_map)
    if is_legacy:
        tree = read_tree(archive)
        constants += read_tensors(tree, archive, map_location)
        has_values = "attributes.pkl" in archive
        values: Any = ()
        if has_values:
            pickle = archive.read("attributes.pkl", _MAX_PICKLE)
            values = _objects(archive, "attributes", pickle, definitions, map_location)
        modules = LegacyModules(archive, definitions, constants, values)
        made = modules.make(get(tree, "mainModule", dict))
        code.parse_all()
        return made, None
    constants_pickle, data = (
        archive.read(f"{record}.pkl", _MAX_PICKLE) for record in ("constants", "data")
    )
    listed = _objects(archive, "constants", constants_pickle, definitions, map_location)
    if not isinstance(listed, (tuple, list)):
        raise LoadError(f"load: expected a tuple of constants, got {type(listed).__name__}")
    constants += [own(each) if isinstance(each, Tensor) else each for each in listed]
    cached = programs_of(definitions, (constants_pickle, data), map_location)
    root = _objects(archive, "data", data, definitions, map_location)
    if not isinstance(root, LoadedModule):
        raise LoadError(f"load: expected a module in the archive, got {type(root).__name__}")
    return root, cached


# What stands at a place of files that are no zip archives, and what those are.
_OTHERS = (
    (4, b"PTMF", "a flatbuffer for mobile; save the module with torch.jit.save"),
    (0, b"PYTORCH1", "one of PyTorch before 1.0; save the module with a later one"),
)


def _refuse_others(source: Source) -> None:
    start = source.read(0, min(source.size, 16))
    for place, mark, what in _OTHERS:
        if start[place : place + len(mark)] == mark:
            raise LoadError(f"load: expected a TorchScript archive as a zip file, got {what}")


def _version(archive: ZipReader) -> int:
    # From version 6 on PyTorch writes it to the first of these.
    records = [name for name in (".data/version", "version") if name in archive]
    text = archive.read(records[0], 64) if records else b"1"
    if not text.strip().isdigit() or not 1 <= int(text) <= NEWEST:
        raise LoadError(f"load: expected an archive of version 1 to {NEWEST}, got {text[:20]!r}")
    return int(text)


def _objects(
    archive: ZipReader, record: str, pickle: bytes, definitions: Definitions,
    map_location: MapLocation,
) -> Any:  # fmt: skip
    """The object of a pickle, `data` or `constants`, with the storages of its folder."""
    storages = storages_of(archive, record, map_location)
    return Unpickler(pickle, global_finder(definitions), storages.persistent, build).load()
