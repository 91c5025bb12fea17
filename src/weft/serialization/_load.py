"""load: what save (PyTorch's or ours) wrote."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from typing import Any

from weft._runtime import lazy
from weft.serialization.errors import LoadError
from weft.serialization.globals import find_global, find_own_global, set_state
from weft.serialization.legacy import START, load_legacy
from weft.serialization.source import Source, open_source
from weft.serialization.storages import MapLocation, storages_of
from weft.serialization.unpickle import Unpickler
from weft.serialization.zip_reader import ZipReader

archives = lazy.module("weft.jit.archive.load")

_MAX_PICKLE = 1 << 30


def load(
    f: str | os.PathLike[str] | Any,
    map_location: MapLocation = None,
    pickle_module: None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    encoding: str | None = None,
) -> Any:
    """The object that `save` of weft or of PyTorch wrote to a path or a readable binary file.

    Loading executes nothing: a pickle may hold tensors, parameters, dicts, lists, tuples, sets,
    numbers, strings, bytes, dtypes, devices and sizes; with `weights_only=False` layers of the
    library, arrays and numbers of NumPy, and queues, dates, paths and namespaces of Python too.
    Classes and functions of a program are refused by their names unless it allows them
    (`serialization.add_safe_globals`).
    Tensors that shared memory when they were saved share it again.

    `map_location` says where storages saved on other devices go: a device, a dict from names to
    names, or a function (storage as a uint8 tensor, name) -> such a tensor or None. With
    `mmap=True` (paths only) tensors are made over the mapped file: nothing is read until it is
    used, and writing to them changes private copies of pages, never the file.

    `encoding` is that of text which Python 2 wrote ("latin1", "bytes" to leave it as it is, as
    pickle.load's); by default UTF-8, or Latin-1 where it is not that.

    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 in the environment makes `weights_only` False where it is
    not given; TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 makes it True always.

    Of a TorchScript archive it gives the module's state dict, which PyTorch's load does not; what
    the archive's program does is for `weft.jit.load`.

    LoadError (a RuntimeError and pickle.UnpicklingError) for files that are damaged, of another
    kind, or hold what is refused; OSError where the file cannot be read; LookupError for an
    unknown encoding.

    >>> import io, weft
    >>> file = io.BytesIO()
    >>> weft.save({"weight": weft.arange(3), "epoch": 7}, file)
    >>> _ = file.seek(0)
    >>> weft.load(file)
    {'weight': tensor([0, 1, 2]), 'epoch': 7}
    """
    if pickle_module is not None:
        raise TypeError("load: expected pickle_module=None, got another unpickler")
    if encoding is not None and encoding != "bytes":
        codecs.lookup(encoding)
    find = find_global if _only_weights(weights_only) else find_own_global
    with open_source(f, "load", mapped=bool(mmap)) as source:
        start = source.read(0, min(len(START), source.size))
        if start[:4] in (b"PK\3\4", b"PK\5\6"):
            return _load_zip(ZipReader(source), map_location, bool(mmap), find, encoding)
        if start == START:
            return load_legacy(source, map_location, find, encoding)
        raise LoadError(_other_kind(source, start))


def _only_weights(asked: bool | None) -> bool:
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    only, also = (os.environ.get(n, "0").lower() in ("1", "y", "yes", "true") for n in names)
    if only and also:
        raise RuntimeError(f"load: expected one of {' and '.join(names)}, got both")
    return only or (not also if asked is None else asked)


def _load_zip(
    archive: ZipReader,
    map_location: MapLocation,
    mapped: bool,
    find: Callable[[str, str], Any],
    encoding: str | None,
) -> Any:
    if "constants.pkl" in archive or "model.json" in archive:
        if mapped:
            raise LoadError(
                "load: expected a file of save with mmap=True, got a TorchScript archive"
            )
        return archives.read_root(archive, map_location)[0].state_dict()
    storages = storages_of(archive, "data", map_location, mapped)
    pickle = archive.read("data.pkl", _MAX_PICKLE)
    return Unpickler(pickle, find, storages.persistent, set_state, encoding).load()


def _other_kind(source: Source, start: bytes) -> str:
    expected = "load: expected a file of save (a zip archive)"
    if source.size == 0:
        return f"{expected}, got an empty file"
    if start[8:9] == b"{":
        return f"{expected}, got what looks like safetensors; use serialization.safetensors"
    if start[:1] == b"\x80":
        return f"{expected}, got a plain pickle"
    return f"{expected}, got one that begins with {start!r}"
