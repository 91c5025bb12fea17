"""Writing checkpoints."""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft._C import Tensor
from weft.distributed.checkpoint.files import INDEX, VERSION, folder_of, is_piece, named
from weft.distributed.errors import DistError
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
    for two values of one name and without a folder; TypeError for other values. An error of any
    process, a full disk say, is raised in all: others raise DistError, which names it.

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
    mark = [os.urandom(8).hex()]  # of the files of this checkpoint
    if own is not None:
        broadcast_object_list(mark, group=own, group_src=0)
    written: list[Any] = []
    with _errors_of_any(own):
        folder.mkdir(parents=True, exist_ok=True)
        others = {name: _json_of(name, v) for name, v in values.items() if not is_piece(v)}
        written.append(_write_pieces(values, folder, f"{mark[0]}-{rank}.safetensors", rank, size))
    every = written
    if own is not None:
        every = [None] * size
        all_gather_object(every, written[0], own)
    with _errors_of_any(own):
        if rank == 0:
            _replace_index(folder, _merged(every), others, mark[0])


@contextmanager
def _errors_of_any(own: ProcessGroup | None) -> Iterator[None]:
    """A block that ends when all processes have ended it, with the error of any: the process's own,
    or a DistError that names who had one."""
    error: Exception | None = None
    try:
        yield
    except Exception as raised:
        error = raised
    found: list[Any] = [error and f"{type(error).__name__}: {error}"]
    if own is not None:
        found *= own.size()
        all_gather_object(found, found[0], own)
    if error is not None:
        raise error
    for rank, text in enumerate(found):
        if own is not None and text is not None:
            raise DistError(f"save: rank {own.ranks[rank]} raised {text}")


def _write_pieces(
    values: dict[str, Any], folder: Path, file: str, rank: int, size: int
) -> dict[str, Any]:
    """Writes the shards of this process, and its share of the tensors that all have."""
    pieces, tensors = {}, {}
    whole = sorted(name for name, value in values.items() if isinstance(value, Tensor))
    turn = {name: at % size for at, name in enumerate(whole)}
    for name, value in values.items():
        if is_piece(value) and turn.get(name, rank) == rank:
            shard = value if isinstance(value, Shard) else Shard(value, 0, tuple(value.shape))
            tensors[name] = shard.rows.detach().contiguous()
            kind = {"dtype": str(shard.rows.dtype), "shape": list(shard.shape)}
            pieces[name] = {**kind, "pieces": [{"file": file, "start": shard.start}]}
    if tensors:
        save_file(tensors, folder / file)
    return pieces


def _json_of(name: str, value: Any) -> Any:
    """A value as JSON holds it. TypeError for one that would come back as another."""
    found = list(value) if isinstance(value, tuple) else value
    try:
        is_same = json.loads(json.dumps(found)) == found
    except (TypeError, ValueError):
        is_same = False
    if not is_same:
        raise TypeError(
            f"save: expected values that JSON holds beside tensors, got {name!r} of "
            f"{type(value).__name__}"
        )
    return found


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
    """Makes the new files the checkpoint, and removes those of the one before, and what processes
    left that were killed."""
    text = json.dumps({"version": VERSION, "tensors": tensors, "values": values}, indent=1)
    with replaced_file(folder / INDEX) as file:
        file.write(text.encode())
    for pattern in ("*-*.safetensors", ".*-*.safetensors.*.tmp", f".{INDEX}.*.tmp"):
        for old in folder.glob(pattern):
            if not old.name.startswith(mark):
                old.unlink(missing_ok=True)
