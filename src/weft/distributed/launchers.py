"""What a launcher of MPI tells the processes that it starts, by variables of the environment."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from weft._runtime import lazy

HINT = "start it by `weft launch -n N program.py`"


class Place(NamedTuple):
    """Where a process stands among those that were started together."""

    rank: int
    size: int
    local_rank: int
    local_size: int


# rank, size, rank and size on the same machine; of Open MPI, MPICH and Intel MPI, srun
_VARIABLES = (
    (
        *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        *("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)


def launched(variables: Mapping[str, str] = os.environ) -> Place | None:
    """The place that a launcher of MPI gave this process; None where none started it.

    >>> from weft.distributed.launchers import launched
    >>> launched({"PMI_RANK": "1", "PMI_SIZE": "4"})
    Place(rank=1, size=4, local_rank=1, local_size=4)
    """
    for rank, size, local_rank, local_size in _VARIABLES:
        if rank in variables and size in variables:
            numbers = [int(variables[rank]), int(variables[size])]
            # Without a word on machines all processes are on one.
            for name, otherwise in ((local_rank, numbers[0]), (local_size, numbers[1])):
                first = re.match(r"\d+", variables.get(name, ""))  # srun: "4(x2),3"
                numbers.append(int(first[0]) if first else otherwise)
            return Place(*numbers)
    return None


def name_as_torchrun() -> None:
    """Sets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, which programs written for torchrun
    read, by the launcher's own variables."""
    if (found := launched()) is not None:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        os.environ.update(zip(names, map(str, found)))


def started(place: Place) -> Any:
    """MPI, which the import of mpi4py starts. RuntimeError where that is missing, or belongs to
    another MPI than the launcher."""
    try:
        transport = lazy.value("weft.distributed.mpi", "transport")()
    except ImportError as error:
        raise RuntimeError(
            f"init_process_group: expected mpi4py (pip install weft[mpi]), got {error}"
        ) from error
    if transport.world.size != place.size:
        raise RuntimeError(
            f"init_process_group: expected the launcher of mpi4py's own MPI ({HINT}), got one that "
            f"started {place.size} processes, of which MPI sees {transport.world.size}"
        )
    if is_debugging():  # launchers say which process was killed
        place_text = f"rank {place.rank} is process {os.getpid()} of {os.uname().nodename}"
        print(f"weft.distributed: {place_text}", file=sys.stderr, flush=True)
    return transport


@functools.cache
def is_debugging() -> bool:
    """Whether WEFT_DISTRIBUTED_DEBUG is set, to anything but 0, when the first asks."""
    return os.environ.get("WEFT_DISTRIBUTED_DEBUG", "0") not in ("", "0")
