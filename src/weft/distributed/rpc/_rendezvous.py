"""How workers find each other: a store, and where each of them listens."""

from __future__ import annotations

import json
import os
import secrets
import socket
import warnings
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from weft.distributed.file_store import FileStore
from weft.distributed.launchers import name_as_torchrun
from weft.distributed.stores import Store
from weft.distributed.tcp_store import TCPStore


class Meeting(NamedTuple):
    """A store that all workers see, and who one is among them. `host`: its name for the others."""

    store: Store
    rank: int
    world_size: int
    host: str


def meeting(method: str, rank: int, world_size: int | None, timeout: timedelta) -> Meeting:
    """By env:// (MASTER_ADDR and MASTER_PORT), tcp://host:port or file:///path. Rank and size that
    are not given stand behind "?" or in RANK and WORLD_SIZE. ValueError where something is missing;
    a program of one worker needs no address."""
    name_as_torchrun()
    parts = urlsplit(method)
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    rank = rank if rank >= 0 else int(given.get("rank", _variable("RANK")))
    if world_size is None:
        world_size = int(given.get("world_size", _variable("WORLD_SIZE")))
    if not 0 <= rank < world_size:
        raise ValueError(f"init_rpc: expected a rank below {world_size}, got {rank}")
    if parts.scheme == "file":
        return Meeting(FileStore(parts.path, world_size), rank, world_size, _own_name())
    if parts.scheme == "tcp" and parts.hostname and parts.port is not None:
        host, port = parts.hostname, parts.port
    elif parts.scheme == "env":
        alone = world_size == 1 and "MASTER_ADDR" not in os.environ
        host = "localhost" if alone else _variable("MASTER_ADDR")
        port = 0 if alone else int(_variable("MASTER_PORT"))
    else:
        raise ValueError(
            f"init_rpc: expected env://, tcp://host:port or file:///path, got {method}"
        )
    store = TCPStore(host, port, world_size, rank == 0, timeout)
    with socket.create_connection((host, store.port)) as probe:
        own = probe.getsockname()[0]
    return Meeting(store, rank, world_size, own)


def _own_name() -> str:
    """This machine's name; where that is no address, as in many containers, its own alone."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        warnings.warn(
            f"init_rpc: expected an address of this machine's name, {name}, got none: workers of "
            "other machines cannot reach this one",
            stacklevel=4,
        )
        return "localhost"
    return name


def _variable(name: str) -> str:
    if name not in os.environ:
        raise ValueError(f"init_rpc: expected {name} in the environment, got none")
    return os.environ[name]


class Introduced(NamedTuple):
    """Names and addresses by rank, and what only these workers know."""

    names: list[str]
    addresses: list[tuple[str, int]]
    secret: bytes


def introduced(
    store: Store, rank: int, world_size: int, name: str, host: str, port: int
) -> Introduced:
    """Tells the others a name and an address, and waits for theirs."""
    if rank == 0:
        store.set("secret", secrets.token_hex(32))
    store.set(f"worker/{rank}", json.dumps([name, host, port]))
    found = [json.loads(store.get(f"worker/{each}")) for each in range(world_size)]
    names, addresses = [each[0] for each in found], [(each[1], each[2]) for each in found]
    return Introduced(names, addresses, store.get("secret"))
