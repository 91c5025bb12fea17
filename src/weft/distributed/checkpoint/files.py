"""The folder of a checkpoint: its index, and what a state is as a list of named values.

The index is JSON: of each tensor its dtype, shape and pieces (file, first row), and all values that
are no tensors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributed import tensor as spread
from weft.distributed.fsdp.unit import Shard

INDEX = "index.json"
VERSION = 1


class _Folder:
    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self.path = Path(path)


class FileSystemWriter(_Folder):
    """A folder to write to, where a program says so by `storage_writer`."""


class FileSystemReader(_Folder):
    """A folder to read from, where a program says so by `storage_reader`."""


def folder_of(what: str, checkpoint_id: Any, storage: Any) -> Path:
    """The folder that the arguments name. ValueError for none."""
    if checkpoint_id is None and isinstance(storage, _Folder):
        return storage.path
    if checkpoint_id is None:
        raise ValueError(f"{what}: expected checkpoint_id, the path of a folder, got None")
    return Path(checkpoint_id)


def flattened(state: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts and lists by names: keys with dots between. An object with a
    state_dict counts as that; tuples are leaves."""
    if hasattr(state, "state_dict"):
        state = state.state_dict()
    if isinstance(state, Mapping):
        items = list(state.items())
    elif isinstance(state, list):
        items = list(enumerate(state))
    else:
        yield prefix, state
        return
    for key, value in items:
        yield from flattened(value, f"{prefix}.{key}" if prefix else str(key))


def named(what: str, state: Any) -> dict[str, Any]:
    """The leaves by their names, DTensors as rows. ValueError where two have one name."""
    found: dict[str, Any] = {}
    for name, value in flattened(state):
        if name in found:
            raise ValueError(f"{what}: expected different names, got {name!r} twice")
        is_spread = isinstance(value, spread.DTensor)
        found[name] = piece_of(by_rows(value)) if is_spread else value
    return found


def by_rows(value: spread.DTensor) -> spread.DTensor:
    """A DTensor cut into rows; whole in all processes where it has none, or the mesh is no line."""
    mesh = value.device_mesh
    every: list[spread.Placement] = [spread.Replicate()] * mesh.ndim
    is_cut = mesh.ndim == 1 and value.dim() > 0
    with no_grad():
        return value.detach().redistribute(placements=[spread.Shard(0)] if is_cut else every)


def piece_of(value: spread.DTensor) -> Tensor | Shard:
    """What this process has of a DTensor that was cut into rows."""
    local = value.to_local()
    if not value.placements[0].is_shard():
        return local
    return Shard(local, value._layout.own(0)[0], tuple(value.shape))


def is_piece(value: Any) -> bool:
    """Whether a value has rows in files."""
    return isinstance(value, Tensor | Shard)


def read_index(folder: Path) -> dict[str, Any]:
    """The index of a folder. ValueError where it is none, or of a later version."""
    try:
        index = json.loads((folder / INDEX).read_text())
        tensors, values = index["tensors"], index["values"]
        is_known = index["version"] == VERSION and isinstance(tensors, dict)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"load: expected an index in {folder}, got {error!r}") from None
    if not is_known or not isinstance(values, dict):
        raise ValueError(f"load: expected an index of version {VERSION} in {folder}, got another")
    return index


def file_in(folder: Path, name: Any) -> Path:
    """A file that an index names: it lies in the folder itself."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"load: expected the name of a file, got {name!r}")
    return folder / name
