"""A process that is lost while all save: `checkpoint_faults.py FOLDER STAGE SIGNAL HOW`.

Alone, without more words than the folder, it loads the checkpoint and prints what it holds, saves
another one there, and prints how many files the folder then has.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import weft
import weft.distributed as dist
import weft.distributed.checkpoint as checkpoint
from weft.distributed.checkpoint import saving
from weft.distributed.fsdp import Shard
from weft.serialization import atomic

FOLDER = Path(sys.argv[1])
ROWS = 8  # of each process


def state(value: float, me: int, count: int) -> dict[str, Any]:
    """A shard of each process, whole tensors that are written in turns, and a number."""
    shard = Shard(weft.full((ROWS, 3), value), me * ROWS, (count * ROWS, 3))
    return {"shard": shard, "step": value, **{f"x{i}": weft.full((5,), value) for i in range(4)}}


def alone() -> None:
    shape = checkpoint.files.read_index(FOLDER)["tensors"]["shard"]["shape"]
    found = {"shard": weft.zeros(shape), "step": 0.0, **{f"x{i}": weft.zeros(5) for i in range(4)}}
    checkpoint.load(found, checkpoint_id=FOLDER)
    values = {v.item() for t in found.values() if isinstance(t, weft.Tensor) for v in t.flatten()}
    checkpoint.save(found, checkpoint_id=FOLDER)
    print("holds", *sorted(values | {found["step"]}), "files", len(list(FOLDER.iterdir())))


def before(function: Callable[..., Any], call: Callable[[], Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call()
        return function(*args, **kwargs)

    return wrapped


def lost(stage: str, number: int, is_victim: bool) -> None:
    """Has this process be lost at a stage of its next save."""
    if not is_victim:
        return

    def end() -> None:
        # Sent to this thread: another one that took it would stop this one some instructions later.
        signal.pthread_kill(threading.get_ident(), number)

    def at_name(old: Any, new: Any) -> None:  # whole, but not yet under its name
        if (Path(new).name == checkpoint.files.INDEX) == (stage == "index"):
            end()
        rename(old, new)

    rename = os.replace
    if stage == "begin":
        saving.save_file = before(saving.save_file, end)
    elif stage in ("file", "index"):
        atomic.os.replace = at_name
    elif stage == "gather":  # its file is there; others do not know of it
        saving.all_gather_object = before(saving.all_gather_object, end)
    else:  # the index is the new one, and the old files are there
        Path.glob = before(Path.glob, end)  # type: ignore[method-assign]


def together(stage: str, number: str, how: str) -> None:
    seconds = 4 if number == "SIGSTOP" else 100
    dist.init_process_group(timeout=timedelta(seconds=seconds))
    me, count = dist.get_rank(), dist.get_world_size()
    print(f"pid {os.getpid()}", flush=True)
    checkpoint.save(state(1.0, me, count), checkpoint_id=FOLDER)
    victim = 0 if stage in ("index", "removal") else count - 1
    lost(stage, getattr(signal, number), me == victim)
    try:
        if how == "save":
            checkpoint.save(state(2.0, me, count), checkpoint_id=FOLDER)
        else:
            checkpoint.async_save(state(2.0, me, count), checkpoint_id=FOLDER).result(100)
    except Exception as error:
        print(f"rank {me}: {type(error).__name__}: {error}", flush=True)
        raise


if len(sys.argv) == 2:
    alone()
else:
    together(*sys.argv[2:])
