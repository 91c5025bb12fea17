"""Downloads of weights, kept in a folder of the user and checked by the hash in their names."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from weft.serialization import load

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_BLOCK = 1 << 20
_chosen: str | None = None


def _get_torch_home() -> str:
    """$TORCH_HOME, or `torch` in the user's folder of caches."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of downloads: `hub` in $TORCH_HOME unless set_dir named another one."""
    return os.path.join(_get_torch_home(), "hub") if _chosen is None else _chosen


def set_dir(d: str | os.PathLike[str]) -> None:
    """Names the folder of downloads."""
    global _chosen
    _chosen = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Copies what is at an address into a file, which appears when it is complete.

    hash_prefix: the beginning of the SHA-256 in hexadecimal digits; RuntimeError where it differs.
    progress has no effect. OSError where the address cannot be read.
    """
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "weft.hub"})
    with urllib.request.urlopen(request) as source:
        handle, partial = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                while block := source.read(_BLOCK):
                    digest.update(block)
                    file.write(block)
            if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(
                    f"download_url_to_file: expected a SHA-256 that begins with {hash_prefix!r}, "
                    f"got {digest.hexdigest()!r}"
                )
            os.replace(partial, target)
        finally:
            Path(partial).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What weft.load reads of the file at an address, which is downloaded once.

    check_hash: the name of the file ends with the beginning of its SHA-256, as in
    `resnet18-f37072fd.pth`; RuntimeError where the content has another one.
    """
    folder = Path(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = folder / name
    if not path.exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(path), found[1] if found else None, progress)
    return load(str(path), map_location=map_location, weights_only=weights_only)
