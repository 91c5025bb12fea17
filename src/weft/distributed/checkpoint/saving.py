"""Writing checkpoints."""

from __future__ import annotations

import functools
import json
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from weft._C import Tensor
from weft.distributed.checkpoint.files import INDEX, VERSION, folder_of, is_piece, named
from weft.distributed.collectives import barrier
from weft.distributed.fsdp.unit import Shard
from weft.distributed.groups import ProcessGroup, group, is_initialized, member, new_group
from weft.distributed.objects import all_gather_object, broadcast_object_list
from weft.serialization.atomic import replaced_file
from weft.serialization.safetensors import save_file


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Writes a state: nested dicts of tensors, of shards of tensors, and of what JSON holds.

    All processes of the group call it. Tensors that all have are written by one of them; each
    writes its shards. A checkpoint that the folder held stays whole until this one is. ValueError
    for two values of one name and without a folder; TypeError for other values.

    >>> import tempfile
    >>> import weft.distributed.checkpoint as checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"x": weft.ones(2), "step": 3}, checkpoint_id=folder)
    ...     state = {"x": weft.zeros(2), "step": 0}
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'x': tensor([1., 1.]), 'step': 3}
    """
    folder = folder_of("save", checkpoint_id, storage_writer)
    _write(named("save", state_dict), folder, _group(process_group, no_dist))


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    **options: Any,
) -> Future[None]:
    """Copies a state and writes the copy on another thread, while the program goes on. The future
    is done when the checkpoint is whole, and raises what went wrong; wait for it before the next
    save."""
    folder = folder_of("async_save", checkpoint_id, storage_writer)
    values = {name: _copied(value) for name, value in named("async_save", state_dict).items()}
    own = _group(process_group, no_dist)
    own = own if own is None or own.size() == 1 else _apart(own)
    future: Future[None] = Future()

    def write() -> None:
        try:
            _write(values, folder, own)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    threading.Thread(target=write).start()
    return future


@functools.cache
def _apart(of: ProcessGroup) -> ProcessGroup:
    """A group of the same processes whose messages do not meet the program's."""
    return new_group(list(of.ranks), sort_ranks=False)


def _copied(value: Any) -> Any:
    if isinstance(value, Shard):
        return value._replace(rows=value.rows.detach().clone())
    return value.detach().clone() if isinstance(value, Tensor) else value


def _group(process_group: ProcessGroup | None, no_dist: bool) -> ProcessGroup | None:
    """The group that writes; None for this process alone."""
    if no_dist or (process_group is None and not is_initialized()):
        return None
    return member("save", process_group or group.WORLD)


def _write(values: dict[str, Any], folder: Path, own: ProcessGroup | None) -> None:
    rank, size = (0, 1) if own is None else (own.rank(), own.size())
    folder.mkdir(parents=True, exist_ok=True)
    mark = [os.urandom(8).hex()]  # of the files of this checkpoint
    if own is not None:
        broadcast_object_list(mark, group=own, group_src=0)
    file = f"{mark[0]}-{rank}.safetensors"
    pieces, tensors = {}, {}
    whole = sorted(name for name, value in values.items() if isinstance(value, Tensor))
    for name, value in values.items():
        if isinstance(value, Tensor) and whole.index(name) % size != rank:
            continue
        if is_piece(value):
            shard = value if isinstance(value, Shard) else Shard(value, 0, tuple(value.shape))
            tensors[name] = shard.rows.detach().contiguous()
            kind = {"dtype": str(shard.rows.dtype), "shape": list(shard.shape)}
            pieces[name] = {**kind, "pieces": [{"file": file, "start": shard.start}]}
    if tensors:
        save_file(tensors, folder / file)
    every: list[Any] = [pieces]
    if own is not None:
        every = [None] * size
        all_gather_object(every, pieces, own)
    if rank == 0:
        others = {name: value for name, value in values.items() if not is_piece(value)}
        _replace_index(folder, _merged(every), others, mark[0])
    if own is not None:
        barrier(own)


def _merged(every: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pieces in every:
        for name, entry in pieces.items():
            if name in found:
                found[name]["pieces"] += entry["pieces"]
            else:
                found[name] = entry
    return found


def _replace_index(folder: Path, tensors: Any, values: dict[str, Any], mark: str) -> None:
    """Makes the new files the checkpoint, and removes those of the one before."""
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    text = json.dumps({"version": VERSION, "tensors": tensors, "values": values}, indent=1)
    if json.loads(text)["values"] != values:
        raise TypeError("save: expected values that JSON holds beside tensors, got others")
    with replaced_file(folder / INDEX) as file:
        file.write(text.encode())
    for old in folder.glob("*-*.safetensors"):
        if not old.name.startswith(mark):
            old.unlink(missing_ok=True)
