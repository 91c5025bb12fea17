"""Process groups. Each has one member: this process, or none, where its ranks do not hold 0."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any


class Backend(str):
    """The name of a transport. All of them stand for the one process here."""

    __slots__ = ()

    GLOO, MPI, NCCL, UCC, XCCL, UNDEFINED = "gloo", "mpi", "nccl", "ucc", "xccl", "undefined"

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


class Store:
    """A dictionary of bytes that the processes of a world share."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: str | bytes) -> None:
        """Sets the value of a key."""
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key: str) -> bytes:
        """The value of a key. RuntimeError where nobody has set it, as nobody else will."""
        if key not in self._values:
            raise RuntimeError(f"Store.get: expected a key that is set, got {key!r}")
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter, which begins at 0; the sum."""
        value = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(value).encode()
        return value

    def delete_key(self, key: str) -> bool:
        """Forgets a key; whether it was there."""
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """The number of keys."""
        return len(self._values)


class HashStore(Store):
    """A store for threads of one process."""


class ProcessGroup:
    """A group whose only member is this process."""

    def __init__(self, backend: str = Backend.GLOO, name: str = "") -> None:
        self._backend = Backend(backend)
        self.group_name = name

    def rank(self) -> int:
        """0."""
        return 0

    def size(self) -> int:
        """1."""
        return 1

    def name(self) -> str:
        """The name of the backend."""
        return str(self._backend)


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


def is_available() -> bool:
    """True: groups of one process are."""
    return True


def is_initialized() -> bool:
    """Whether there is a default group."""
    return _State.world is not None


def is_gloo_available() -> bool:
    """True: "gloo" names the transport of tensors on the CPU, of which one process needs none."""
    return True


def _has_no_transport() -> bool:
    """False: this transport needs devices or processes that weft lacks."""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_xccl_available = _has_no_transport


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a group may name this backend."""
    return backend.lower() == Backend.GLOO


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
    """Makes the default group, of this process alone.

    world_size and rank: 1 and 0, given here or, without them, by WORLD_SIZE and RANK of the
    environment. backend: "gloo" or None. ValueError for a second group or a missing number;
    RuntimeError for other backends and for more than one process.
    """
    if _State.world is not None:
        raise ValueError("init_process_group: expected no default group yet, got a second call")
    own = _own_backend("init_process_group", backend)
    may_ask = store is None and init_method in (None, "env://")
    world_size = _number("WORLD_SIZE", world_size, may_ask)
    rank = _number("RANK", rank, may_ask)
    if world_size != 1 or rank != 0:
        raise RuntimeError(
            "init_process_group: expected a world of one process, got rank "
            f"{rank} of {world_size} processes"
        )
    _State.world = ProcessGroup(own, group_name)


def _own_backend(what: str, backend: str | None) -> str:
    """The backend for tensors on the CPU of "gloo", "cpu:gloo,cuda:nccl" or None."""
    for part in (backend or Backend.GLOO).lower().split(","):
        device, _, name = part.rpartition(":")
        if device in ("", "cpu") and name == Backend.GLOO:
            return name
    raise RuntimeError(f"{what}: expected the backend 'gloo', got {backend!r}")


def _number(variable: str, given: int, may_ask: bool) -> int:
    if given != -1:
        return given
    if may_ask and variable in os.environ:
        return int(os.environ[variable])
    raise ValueError(
        f"init_process_group: expected {variable.lower()} or the environment variable "
        f"{variable}, got neither"
    )


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; without an argument, or for the default group, all of them."""
    if member("destroy_process_group", group) is _State.world:
        _State.world = None


def member(what: str, group: Any = None) -> ProcessGroup:
    """The group, None for the default one. ValueError without one, or for no member of it."""
    found = _State.world if group is None else group
    if found is None:
        raise ValueError(f"{what}: expected init_process_group to be called before, got no group")
    if not isinstance(found, ProcessGroup):
        raise ValueError(f"{what}: expected a group with this process in it, got {found!r}")
    return found


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
    """A group of the rank 0, the only one; NON_GROUP_MEMBER for an empty list of ranks."""
    world = member("new_group")
    chosen = [0] if ranks is None else list(ranks)
    if any(rank != 0 for rank in chosen) or len(chosen) > 1:
        raise ValueError(f"new_group: expected ranks of a world of one process, got {chosen}")
    own = world.name() if backend is None else _own_backend("new_group", backend)
    return ProcessGroup(own) if chosen else GroupMember.NON_GROUP_MEMBER


def _is_outside(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def get_rank(group: ProcessGroup | None = None) -> int:
    """0; -1 where this process is no member."""
    return -1 if _is_outside(group) else member("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """1; -1 where this process is no member."""
    return -1 if _is_outside(group) else member("get_world_size", group).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of the group's backend."""
    return Backend(member("get_backend", group).name())


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """[0]."""
    member("get_process_group_ranks", group)
    return [0]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the world of a member."""
    member("get_global_rank", group)
    return only_rank("get_global_rank", group_rank)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group of a process."""
    member("get_group_rank", group)
    return only_rank("get_group_rank", global_rank)


def only_rank(what: str, rank: int | None, group_rank: int | None = None) -> int:
    """0. ValueError for any other rank."""
    for each in (rank, group_rank):
        if each not in (None, 0):
            raise ValueError(f"{what}: expected the rank 0 of a world of one process, got {each}")
    return 0
