"""Models of folders that have a hubconf.py, and downloads of weights, which are kept in a folder of
the user and checked by the hash in their names."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import types
import urllib.request
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from weft import serialization
from weft._runtime.exports import list_own as _list_own

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
    return serialization.load(str(path), map_location=map_location, weights_only=weights_only)


# ---- models of folders ----


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """What the function `model` of the file hubconf.py of a folder returns, called with the other
    arguments. RuntimeError where the folder has no such function, or what it depends on is missing.

    source: "local"; NotImplementedError for "github", because nothing is downloaded and run.
    trust_repo, force_reload, verbose and skip_validation have no effect on folders.
    """
    for name in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(name, None)
    with _hubconf("load", repo_or_dir, source) as module:
        return _entry(module, model)(*args, **kwargs)


def list(github: str, source: str = "github", **options: Any) -> builtins.list[str]:
    """The names of the functions of a folder's hubconf.py. Options as of `load`."""
    with _hubconf("list", github, source) as module:
        return [name for name, each in vars(module).items() if callable(each) and name[0] != "_"]


def help(github: str, model: str, source: str = "github", **options: Any) -> str | None:
    """The docstring of a function of a folder's hubconf.py. Options as of `load`."""
    with _hubconf("help", github, source) as module:
        text: str | None = _entry(module, model).__doc__
        return text


def _entry(module: Any, model: str) -> Any:
    needed = getattr(module, "dependencies", None) or ()
    missing = [each for each in needed if importlib.util.find_spec(each) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


@contextlib.contextmanager
def _hubconf(caller: str, folder: str, source: str) -> Iterator[Any]:
    """The module of a folder's hubconf.py; what lies beside it can be imported meanwhile."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(
            f"hub.{caller}: expected source='local' and a folder, got {folder!r} of GitHub"
        )
    inside = os.path.expanduser(folder)
    sys.path.insert(0, inside)
    try:
        path = os.path.join(inside, "hubconf.py")
        module = types.ModuleType("hubconf.py")
        SourceFileLoader(module.__name__, path).exec_module(module)
        yield module
    finally:
        sys.path.remove(inside)


_list_own(vars())
