"""Reading checkpoints."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributed.checkpoint.files import (
    by_rows,
    file_in,
    folder_of,
    is_piece,
    piece_of,
    read_index,
)
from weft.distributed.fsdp.unit import Shard
from weft.distributed.groups import ProcessGroup
from weft.distributed.tensor import DTensor
from weft.serialization.safetensors import load_file


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Fills the tensors and shards of a state in place, and replaces its other values.

    Processes need not be as many as wrote: each reads the rows that it keeps. An object with a
    state_dict gets what its load_state_dict takes. KeyError for a name that the checkpoint lacks;
    ValueError for another shape and for a damaged index; LoadError for damaged files.
    """
    folder = folder_of("load", checkpoint_id, storage_reader)
    index = read_index(folder)
    opened = functools.cache(lambda name: load_file(file_in(folder, name), mmap=True))
    for key, value in state_dict.items():
        if hasattr(value, "state_dict"):
            inner = value.state_dict()
            _fill(inner, key, index, opened, folder)
            value.load_state_dict(inner)
    plain = {key: value for key, value in state_dict.items() if not hasattr(value, "state_dict")}
    _fill(plain, "", index, opened, folder)
    state_dict.update(plain)


def _fill(state: Any, prefix: str, index: Any, opened: Callable[[Any], Any], folder: Path) -> None:
    """Fills a state whose names begin with a prefix."""
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        name = f"{prefix}.{key}" if prefix else str(key)
        if is_piece(value):
            if name not in index["tensors"]:
                raise KeyError(f"load: expected {name!r} in {folder}, which has no such tensor")
            _fill_tensor(name, value, index["tensors"][name], opened)
        elif isinstance(value, dict | list):
            _fill(value, name, index, opened, folder)
        elif name in index["values"]:
            found = index["values"][name]
            state[key] = tuple(found) if isinstance(value, tuple) else found
        else:
            raise KeyError(f"load: expected {name!r} in {folder}, which has no such value")


def _fill_tensor(name: str, value: Any, entry: Any, opened: Callable[[Any], Any]) -> None:
    if isinstance(value, DTensor):
        rows = by_rows(value)
        _fill_tensor(name, piece_of(rows), entry, opened)
        with no_grad():
            value.detach().copy_(rows)
        return
    shard = value if isinstance(value, Shard) else Shard(value, 0, tuple(value.shape))
    _fill_rows(name, shard, entry, opened)


def _fill_rows(name: str, shard: Shard, entry: Any, opened: Callable[[Any], Any]) -> None:
    if list(shard.shape) != entry["shape"]:
        raise ValueError(
            f"load: expected {name!r} of shape {list(shard.shape)}, got {entry['shape']}"
        )
    rows, missing = shard.rows.detach(), len(shard.rows) if shard.shape else 1
    with no_grad():
        for piece in entry["pieces"]:
            found = opened(piece["file"])[name]
            if not shard.shape:
                rows.copy_(found)
                return
            missing -= _copy_common(rows, shard.start, found, int(piece["start"]))
    if missing:
        raise ValueError(f"load: expected all rows of {name!r}, got {missing} less")


def _copy_common(target: Tensor, start: int, source: Tensor, source_start: int) -> int:
    """Copies the rows that both have; how many."""
    first = max(start, source_start)
    last = min(start + len(target), source_start + len(source))
    if first >= last:
        return 0
    target[first - start : last - start] = source[first - source_start : last - source_start]
    return last - first
