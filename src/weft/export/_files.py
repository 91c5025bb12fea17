"""weft.export.save and load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from weft.export._read import read_program
from weft.export._write import records_of
from weft.export.exported_program import ExportedProgram
from weft.serialization.atomic import replaced_file
from weft.serialization.source import open_source
from weft.serialization.zip_reader import ZipReader
from weft.serialization.zip_writer import ZipWriter

_MAX_EXTRA = 1 << 30


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | Any,
    *,
    extra_files: Mapping[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes a program to a path or a writable binary file, for `load` and for PyTorch's.

    `extra_files` are files of the user by name. A path gets its new content when it is complete.
    TypeError for what is no exported program.

    >>> import io
    >>> file = io.BytesIO()
    >>> weft.export.save(weft.export.export(weft.nn.ReLU(), (weft.ones(2),)), file)
    >>> weft.export.load(io.BytesIO(file.getvalue())).module()(weft.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead."
        )
    records = dict(records_of(ep))
    for name, data in (extra_files or {}).items():
        records[f"extra/{name}"] = data.encode() if isinstance(data, str) else bytes(data)
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        with replaced_file(f) as file:
            _write(file, folder if folder.isascii() and folder else "archive", records)
    else:
        _write(f, "archive", records)


def _write(file: Any, folder: str, records: dict[str, Any]) -> None:
    writer = ZipWriter(file, folder)
    for name, data in {**records, "byteorder": b"little", ".data/version": b"3"}.items():
        writer.add(name, data)
    writer.add(".data/serialization_id", writer.checksum().encode())
    writer.close()


def load(
    f: str | os.PathLike[str] | Any,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """The program that `save`, or PyTorch's, wrote to a path or a readable binary file. The values
    of `extra_files` become the texts of the user's files by these names.

    Nothing of the file is executed. LoadError (a RuntimeError) for files that are damaged or hold
    what is refused; NotImplementedError that names the operators that weft has not.
    """
    with open_source(f, "load") as source:
        for name in extra_files or ():
            record, archive = f"extra/{name}", ZipReader(source)
            data = archive.read(record, _MAX_EXTRA) if record in archive else b""
            extra_files[name] = data.decode()  # type: ignore[index]
        return read_program(source)
