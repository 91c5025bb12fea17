"""Files on disk by what they are made from: native code and programs.

They lie in folders of `$WEFT_CACHE`, else of `weft` under `$XDG_CACHE_HOME` or `~/.cache`. A folder
must belong to this user and be open to nobody else, for what lies there is run. A file carries the
digest of its bytes; one that does not fit is dropped.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading

# hashlib loads all of OpenSSL for it, which is a tenth of a first compilation.
try:
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # before Python 3.12
    except ImportError:
        from hashlib import sha256

_DIGEST = 32


def key(*parts: str) -> str:
    """The name of a file: a digest of everything it is made from."""
    total = sha256()
    for part in parts:
        total.update(sha256(part.encode()).digest())
    return total.hexdigest()


class Files:
    """A folder of the cache. `limit`: bytes kept; the oldest files go first."""

    def __init__(self, name: str, limit: int) -> None:
        self.name, self.limit = name, limit

    def folder(self) -> str | None:
        """The folder, made when it is missing; None where there is no safe one."""
        base = os.environ.get("WEFT_CACHE")
        if base == "":
            return None
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        path = os.path.join(base or os.path.join(home, "weft"), self.name)
        try:
            found = os.lstat(path)
        except OSError:
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path, mode=0o700)
                found = os.lstat(path)
            except OSError:
                return None
        is_ours = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
        return path if is_ours and stat.S_ISDIR(found.st_mode) else None

    def load(self, name: str) -> bytes | None:
        """The bytes of that name, or None."""
        path = self.folder()
        if path is None:
            return None
        place = os.path.join(path, name)
        try:
            with open(place, "rb") as file:
                data = file.read()
        except OSError:
            return None
        held = data[_DIGEST:]
        if sha256(held).digest() != data[:_DIGEST]:
            with contextlib.suppress(OSError):
                os.unlink(place)
            return None
        return held

    def save(self, name: str, held: bytes) -> None:
        """Keeps bytes. A full disk or a read-only one loses them, and nothing else."""
        path = self.folder()
        if path is None:
            return
        with contextlib.suppress(OSError):
            temporary = os.path.join(path, f".{os.getpid()}.{threading.get_ident()}")
            try:
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "wb") as file:
                    file.write(sha256(held).digest() + held)
                os.replace(temporary, os.path.join(path, name))
            except OSError:
                os.unlink(temporary)
                raise
            if name.startswith("0"):  # one in sixteen: a look at all files takes time
                self._trim(path)

    def _trim(self, path: str) -> None:
        """Removes the oldest files as long as there is too much."""
        with os.scandir(path) as entries:
            found = [(entry.stat(), entry.path) for entry in entries if entry.is_file()]
        files = sorted((about.st_mtime, about.st_size, file) for about, file in found)
        excess = sum(size for _, size, _ in files) - self.limit
        for _, size, file in files:
            if excess <= 0:
                break
            os.unlink(file)
            excess -= size


NATIVE = Files("native", 256 * 2**20)
PROGRAMS = Files("programs", 64 * 2**20)
