"""Compiled images on disk, by content and processor.

The folder is `$WEFT_CACHE`, else `weft` under `$XDG_CACHE_HOME` or `~/.cache`. It must belong to
this user and be writable by nobody else, for what lies there is run. An image carries the digest
of its bytes; one that does not fit is dropped.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import threading
from typing import Any

_DIGEST = 32
LIMIT = 256 * 2**20  # bytes kept; the oldest go first


def _function() -> Any:
    """SHA-256. hashlib loads all of OpenSSL for it, which is a tenth of a first compilation."""
    for name in ("_sha2", "_sha256"):  # of Python 3.12, and before
        with contextlib.suppress(ImportError):
            return importlib.import_module(name).sha256
    return importlib.import_module("hashlib").sha256


sha256 = _function()


def folder() -> str | None:
    """The folder, made when it is missing; None where there is no safe one."""
    base = os.environ.get("WEFT_CACHE")
    if base == "":
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(base or os.path.join(home, "weft"), "native")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, mode=0o700)
        found = os.stat(path)
    except OSError:
        return None
    private = found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return path if private and stat.S_ISDIR(found.st_mode) else None


def key(*parts: str) -> str:
    """The name of an image: a digest of everything it is made from."""
    total = sha256()
    for part in parts:
        total.update(sha256(part.encode()).digest())
    return total.hexdigest()


def load(name: str) -> bytes | None:
    """The image of that name, or None."""
    path = folder()
    if path is None:
        return None
    place = os.path.join(path, name)
    try:
        with open(place, "rb") as file:
            data = file.read()
    except OSError:
        return None
    image = data[_DIGEST:]
    if sha256(image).digest() != data[:_DIGEST]:
        with contextlib.suppress(OSError):
            os.unlink(place)
        return None
    return image


def save(name: str, image: bytes) -> None:
    """Keeps an image. A full disk or a read-only one loses it, and nothing else."""
    path = folder()
    if path is None:
        return
    with contextlib.suppress(OSError):
        temporary = os.path.join(path, f".{os.getpid()}.{threading.get_ident()}")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(sha256(image).digest() + image)
            os.replace(temporary, os.path.join(path, name))
        except OSError:
            os.unlink(temporary)
            raise
        _trim(path)


def _trim(path: str) -> None:
    """Removes the oldest images as long as there is too much."""
    with os.scandir(path) as entries:
        found = [(entry.stat(), entry.path) for entry in entries if entry.is_file()]
    files = sorted((about.st_mtime, about.st_size, file) for about, file in found)
    excess = sum(size for _, size, _ in files) - LIMIT
    for _, size, file in files:
        if excess <= 0:
            break
        os.unlink(file)
        excess -= size
