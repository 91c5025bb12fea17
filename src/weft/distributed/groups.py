"""Process groups: which processes there are, and which of them work together."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from weft.distributed.launchers import HINT, Place, launched, started
from weft.distributed.stores import HashStore, Store

P = ParamSpec("P")
T = TypeVar("T")

default_pg_timeout = timedelta(minutes=30)


class Backend(str):
    """The name of a transport. MPI is the one that runs; the others are names that programs say."""

    __slots__ = ()

    GLOO, MPI, NCCL, UCC, XCCL, UNDEFINED = "gloo", "mpi", "nccl", "ucc", "xccl", "undefined"
    default_device_backend_map = {"cpu": MPI}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """Processes that work together. Their order is that of their ranks in the group.

    ranks: their ranks in the world. transport and channel: of MPI; None where this process is the
    only one. store: that of init_process_group.
    """

    def __init__(
        self,
        backend: str = Backend.GLOO,
        name: str = "",
        ranks: Sequence[int] = (0,),
        rank: int = 0,
        transport: Any = None,
        channel: Any = None,
        timeout: timedelta = default_pg_timeout,
        store: Store | None = None,
    ) -> None:
        self.store = store
        self._backend = Backend(backend)
        self.group_name = name
        self.ranks = tuple(ranks)
        self._rank = rank
        self.transport = transport
        self.channel = channel
        self.timeout = timeout
        self._numbers = itertools.count(1)

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the backend."""
        return str(self._backend)

    def count(self) -> int:
        """The number of the next operation of the group: the same in all of its processes."""
        return next(self._numbers)


class _Members(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, None before init_process_group."""
        return _State.world


class group(metaclass=_Members):
    """`group.WORLD`: the group of all processes."""


class GroupMember(metaclass=_Members):
    """`GroupMember.NON_GROUP_MEMBER`: what new_group gives a process that is no member."""

    NON_GROUP_MEMBER = -100


class _State:
    world: ProcessGroup | None = None
    made = 0  # groups beside it


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """Whether there is a default group."""
    return _State.world is not None


def is_gloo_available() -> bool:
    """True: programs that say "gloo" mean tensors on the CPU, which MPI moves."""
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def _has_no_transport() -> bool:
    """False: weft has no such transport."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = _has_no_transport


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a group may name this backend without a warning."""
    return backend.lower() == Backend.GLOO or (
        backend.lower() == Backend.MPI and is_mpi_available()
    )


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default group: the processes that one command of MPI started, or this one alone.

    `weft launch -n 4 program.py`, `mpiexec` and `srun` start processes. Without them the world is
    this process: world_size 1 and rank 0 say so, as arguments or as WORLD_SIZE and RANK of the
    environment, or the backend "mpi". backend: None, "mpi", "gloo" or "nccl"; MPI is what runs,
    and for the last two the first process warns of that. timeout: how long operations wait for
    other processes, 30 minutes by default.

    ValueError for a second group, and for numbers that are missing or not the launcher's;
    RuntimeError for other backends, for more processes than one without MPI, and where mpi4py is
    missing or belongs to another MPI than the launcher.

    >>> import weft.distributed as dist
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if _State.world is not None:
        raise ValueError("init_process_group: expected no default group yet, got a second call")
    place = launched()
    own = _own_backend("init_process_group", backend, place)
    limit = default_pg_timeout if timeout is None else timeout
    if place is None and own != Backend.MPI:
        may_ask = store is None and init_method in (None, "env://")
        processes = _number("WORLD_SIZE", world_size, may_ask)
        _check_alone(_number("RANK", rank, may_ask), processes)
    for name, given, found in zip(("rank", "world_size"), (rank, world_size), place or ()):
        if given not in (-1, found):
            raise ValueError(
                f"init_process_group: expected the launcher's {name} {found}, got {given}"
            )
    if place is None or place.size == 1:
        alone = HashStore() if store is None else store
        _State.world = ProcessGroup(own, group_name or "0", timeout=limit, store=alone)
        return
    transport = started(place)
    _State.world = ProcessGroup(
        own,
        group_name or "0",
        *(range(place.size), place.rank, transport, transport.world, limit, store),
    )


def _check_alone(rank: int, world_size: int) -> None:
    if world_size != 1 or rank != 0:
        raise RuntimeError(
            f"init_process_group: expected MPI around a world of {world_size} processes ({HINT}), "
            f"got rank {rank} without it"
        )


def _own_backend(what: str, backend: str | None, place: Place | None = None) -> str:
    """The backend for tensors on the CPU of "mpi", "gloo", "nccl", "cpu:gloo,cuda:nccl" or None.
    Where another one runs the first process says so."""
    if backend is None:
        return Backend.GLOO if place is None else Backend.MPI
    parts = [part.rpartition(":") for part in backend.lower().split(",")]
    names = [name for device, _, name in parts if device in ("", "cpu")]
    for name in (Backend.MPI, Backend.GLOO, Backend.NCCL):
        if name in names:
            is_alone = place is None or place.size == 1
            runs = (Backend.MPI, Backend.GLOO) if is_alone else (Backend.MPI,)
            if name not in runs and (place is None or place.rank == 0):
                warnings.warn(f"{what}: MPI and the CPU run in place of '{name}'", stacklevel=3)
            return name
    raise RuntimeError(f"{what}: expected the backend 'mpi', 'gloo' or 'nccl', got {backend!r}")


def _number(variable: str, given: int, may_ask: bool) -> int:
    if given != -1:
        return given
    if may_ask and variable in os.environ:
        return int(os.environ[variable])
    raise ValueError(
        f"init_process_group: expected {variable.lower()} or the environment variable "
        f"{variable}, got neither; for several processes {HINT}"
    )


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; without an argument, or for the default group, all of them. All of its
    processes call it."""
    found = member("destroy_process_group", group)
    if found is _State.world:
        _State.world = None
    elif found.channel is not None:
        found.channel.free()
        found.channel = None


def member(what: str, group: Any = None) -> ProcessGroup:
    """The group, None for the default one. ValueError without one, or for no member of it."""
    found = _State.world if group is None else group
    if found is None:
        raise ValueError(f"{what}: expected init_process_group to be called before, got no group")
    if not isinstance(found, ProcessGroup):
        raise ValueError(f"{what}: expected a group with this process in it, got {found!r}")
    if found.channel is None and found.size() > 1:
        raise ValueError(f"{what}: expected a group that has not ended, got {found.group_name!r}")
    return found


def by_members(function: Callable[P, T]) -> Callable[P, T]:
    """An operation that does nothing, but for a warning, in a process that is no member of the
    group: programs may call it in all."""
    parameters = list(inspect.signature(function).parameters)
    place = parameters.index("group")

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        group = args[place] if len(args) > place else kwargs.get("group")
        if not _is_outside(group):
            return function(*args, **kwargs)
        warnings.warn(
            f"{function.__name__}: expected a process of the group, got rank {get_rank()}, where "
            "nothing is done",
            stacklevel=2,
        )
        return None  # type: ignore[return-value]

    return called


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some ranks of the world, all by default; NON_GROUP_MEMBER for the others.

    All processes of the world call it, in the same order; with use_local_synchronization the
    members alone, but no process then makes other groups between. ValueError for ranks that the
    world lacks or that come twice.
    """
    world = member("new_group")
    chosen = list(world.ranks if ranks is None else ranks)
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(world.ranks):
        raise ValueError(
            f"new_group: expected different ranks of a world of {world.size()}, got {chosen}"
        )
    chosen = sorted(chosen) if sort_ranks else chosen
    own = world.name() if backend is None else _own_backend("new_group", backend)
    _State.made += 1
    if world.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    channel = world.channel.part(chosen, _State.made % 1024) if len(chosen) > 1 else None
    name = group_desc or str(_State.made)
    place = (chosen, chosen.index(world.rank()), world.transport, channel)
    return ProcessGroup(own, name, *place, world.timeout if timeout is None else timeout)


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Splits the world into groups of group_size neighbours, by default of one machine: the group
    of this process, and all. ValueError where the size does not divide the world's."""
    world = member("new_subgroups", group)
    place = launched()
    size = group_size or (world.size() if place is None else place.local_size)
    if size < 1 or world.size() % size:
        raise ValueError(
            f"new_subgroups: expected a size that divides {world.size()} processes, got {size}"
        )
    starts = range(0, world.size(), size)
    groups = [new_group(list(world.ranks[at : at + size]), timeout, backend) for at in starts]
    return groups[world.rank() // size], groups


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """A group for each list of ranks, of which none is in two: that of this process, None where no
    list has it, and all. ValueError for a rank in two lists."""
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if not ranks_per_subgroup_list or len(set(every)) < len(every):
        raise ValueError(
            "new_subgroups_by_enumeration: expected lists of different ranks, got "
            f"{list(map(list, ranks_per_subgroup_list))}"
        )
    groups = [new_group(list(ranks), timeout, backend) for ranks in ranks_per_subgroup_list]
    own = [group for group in groups if not _is_outside(group)]
    return (own[0] if own else None), groups


def _is_outside(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def get_rank(group: ProcessGroup | None = None) -> int:
    """The rank of this process; -1 where it is no member."""
    return -1 if _is_outside(group) else member("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes; -1 where this one is no member."""
    return -1 if _is_outside(group) else member("get_world_size", group).size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this machine: the launcher's, or LOCAL_RANK. RuntimeError
    without them and without a fallback."""
    place = launched()
    text = os.environ.get("LOCAL_RANK", "" if place is None else str(place.local_rank))
    if not text and fallback_rank is None:
        raise RuntimeError(
            "get_node_local_rank: expected LOCAL_RANK to be set, got neither it nor a launcher"
        )
    return int(text or fallback_rank or 0)


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of the group's backend."""
    return Backend(member("get_backend", group).name())


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The ranks in the world of the members."""
    return list(member("get_process_group_ranks", group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the world of a member. ValueError for a rank that the group lacks."""
    found = member("get_global_rank", group)
    return found.ranks[rank_in("get_global_rank", found, None, group_rank)]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group of a process. ValueError for one that is no member."""
    return rank_in("get_group_rank", member("get_group_rank", group), global_rank)


def rank_in(what: str, group: ProcessGroup, rank: int | None, group_rank: int | None = None) -> int:
    """The rank in the group, of a rank in the world or in the group; 0 without both. ValueError
    for both, and for a rank that the group lacks."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"{what}: expected a rank of the world or of the group, got both")
    known = group.ranks if rank is not None else range(group.size())
    given = rank if rank is not None else group_rank or 0
    if given not in known:
        raise ValueError(f"{what}: expected one of the ranks {list(known)}, got {given}")
    return list(known).index(given)
