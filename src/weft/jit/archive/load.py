"""weft.jit.load: an archive that PyTorch wrote, as a compiled module."""

from __future__ import annotations

import os
from typing import Any

from weft.jit.archive.classes import Definitions, LoadedModule
from weft.jit.archive.code import ArchiveCode
from weft.jit.archive.objects import build, global_finder
from weft.jit.script_module import script_module
from weft.serialization.errors import LoadError
from weft.serialization.source import open_source
from weft.serialization.storages import MapLocation, storages_of
from weft.serialization.unpickle import Unpickler
from weft.serialization.zip_reader import ZipReader

_MAX_PICKLE = 1 << 30
_NEWEST = 10


def load(
    f: str | os.PathLike[str] | Any,
    map_location: MapLocation = None,
    _extra_files: dict[str, Any] | None = None,
) -> Any:
    """The module that `torch.jit.save` wrote to a path or a readable binary file, compiled.

    Nothing of the file is executed: its code is compiled as `script` compiles. `map_location`: as
    of `weft.load`. `_extra_files` maps names of extra records to values that they replace.

    LoadError (a RuntimeError) for files that are damaged or hold what is refused; FrontendError for
    code that weft does not have the operators of.
    """
    with open_source(f, "load") as source:
        archive = ZipReader(source)
        version = _version(archive)
        for name in _extra_files or ():
            if f"extra/{name}" in archive:
                assert _extra_files is not None
                _extra_files[name] = archive.read(f"extra/{name}", _MAX_PICKLE)
        constants: list[Any] = []
        definitions = Definitions(ArchiveCode(archive), constants, version)
        constants += _objects(archive, "constants", definitions, map_location)
        root = _objects(archive, "data", definitions, map_location)
    if not isinstance(root, LoadedModule):
        raise LoadError(f"load: expected a module in the archive, got {type(root).__name__}")
    return script_module(root, {})


def _version(archive: ZipReader) -> int:
    text = archive.read("version", 64) if "version" in archive else b"1"
    if not text.strip().isdigit() or not 1 <= int(text) <= _NEWEST:
        raise LoadError(f"load: expected an archive of version 1 to {_NEWEST}, got {text[:20]!r}")
    return int(text)


def _objects(
    archive: ZipReader, record: str, definitions: Definitions, map_location: MapLocation
) -> Any:
    """The object of a pickle, `data` or `constants`, with the storages of its folder."""
    storages = storages_of(archive, record, map_location)
    pickle = archive.read(f"{record}.pkl", _MAX_PICKLE)
    return Unpickler(pickle, global_finder(definitions), storages.persistent, build).load()
