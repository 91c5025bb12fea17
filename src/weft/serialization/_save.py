"""save: tensors, containers and objects into PyTorch's .pt files."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

from weft.serialization.atomic import replaced_file
from weft.serialization.legacy_writer import legacy_pieces
from weft.serialization.pickle_writer import PickleWriter
from weft.serialization.zip_writer import ZipWriter


def save(
    obj: Any,
    f: str | os.PathLike[str] | Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes an object to a path or a writable binary file, for `load` of weft and of PyTorch.

    The object may be made of tensors, parameters, dicts, lists, tuples, sets, numbers, strings,
    bytes, dtypes, devices and sizes; `load` gives them back as they are. Modules, optimizers,
    NumPy arrays and other objects are written as pickle would, layers under PyTorch's names; who
    loads them has to allow their classes. TypeError names what cannot be pickled.

    Tensors that share memory share one record: all of their storage is written, so clone() a small
    view of a large tensor first.

    pickle_protocol: nothing; it is 2. _use_new_zipfile_serialization=False writes the format from
    before PyTorch 1.6. ValueError for another pickle_module than the standard library's.

    A path gets its new content all at once when it is complete: until then, and if saving fails,
    the old file stays whole. The same object always gives the same bytes.

    >>> import io, weft
    >>> file = io.BytesIO()
    >>> weft.save([weft.ones(2), {"lr": 0.1}], file)
    >>> weft.load(io.BytesIO(file.getvalue()))
    [tensor([1., 1.]), {'lr': 0.1}]
    """
    if pickle_module not in (None, pickle):
        raise ValueError(f"save: expected the standard library's pickle, got {pickle_module!r}")
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        write = _writer(obj, folder, _use_new_zipfile_serialization)
        with replaced_file(f) as file:
            write(file)
    elif hasattr(f, "write"):
        _writer(obj, "archive", _use_new_zipfile_serialization)(f)
        if hasattr(f, "flush"):  # somebody may read the file by its name
            f.flush()
    else:
        raise TypeError(f"save: expected a path or a writable file, got {type(f).__name__}")


def _writer(obj: Any, folder: str, as_zip: bool) -> Callable[[Any], None]:
    """What writes an object, pickled already, to a file."""
    if not as_zip:
        pieces = legacy_pieces(obj)

        def write(file: Any) -> None:
            for each in pieces:
                file.write(each)

        return write
    made = PickleWriter()
    content = made.dump(obj)
    name = folder if folder.isascii() and folder else "archive"
    return lambda file: _write(file, name, content, made.storages)


def _write(file: Any, folder: str, content: bytes, storages: list[Any]) -> None:
    archive = ZipWriter(file, folder)
    archive.add("data.pkl", content)
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", b"64")
    archive.add("byteorder", b"little")
    for key, storage in enumerate(storages):
        archive.add(f"data/{key}", memoryview(storage))
    archive.add("version", b"3\n")
    archive.add(".data/serialization_id", archive.checksum().encode())
    archive.close()
