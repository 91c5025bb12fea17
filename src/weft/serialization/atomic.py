"""Writing a file so that its name always means a whole one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def replaced_file(path: Any) -> Iterator[Any]:
    """A binary file that takes the name `path` when the block ends without an exception.

    Until then it is another file of the same folder, so a reader, a failing write or a loss of
    power finds the old content or the new, never a part. The old permissions stay, a symbolic link
    stays one, and what is no regular file (a pipe, a device) is written directly.

    >>> import os, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x")
    ...     with replaced_file(path) as file:
    ...         _ = file.write(b"new")
    ...     path.read_bytes(), os.listdir(folder)
    (b'new', ['x'])
    """
    target = os.path.realpath(os.fspath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    folder, name = os.path.split(target)
    other = os.path.join(folder, f".{name[:200]}.{os.urandom(4).hex()}.tmp")
    handle = os.open(
        other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
    )
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        if mode is not None:
            os.chmod(other, stat.S_IMODE(mode))
        os.replace(other, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(other)
        raise
    _sync_folder(folder)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """Makes the new name last, where the system can: some cannot open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
