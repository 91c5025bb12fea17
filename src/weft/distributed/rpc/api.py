"""The beginning and the end of a worker."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import ParamSpec, TypeVar

from weft.distributed.errors import DistNetworkError
from weft.distributed.rpc._agent import Agent
from weft.distributed.rpc._calls import WORKER, current_agent
from weft.distributed.rpc._reference import RRef
from weft.distributed.rpc._rendezvous import introduced, meeting
from weft.distributed.rpc.options import BackendType, TensorPipeRpcBackendOptions, WorkerInfo
from weft.distributed.stores import PrefixStore, Store

P = ParamSpec("P")
R = TypeVar("R")
_NAME = re.compile(r"[A-Za-z0-9_:-]{1,127}")
_meetings = itertools.count()  # of this process: workers meet in the same order


def is_available() -> bool:
    """Whether there are calls of other processes: always."""
    return True


def _require_initialized(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator of functions that raise RuntimeError before init_rpc."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        current_agent()
        return function(*args, **kwargs)

    return checked


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: TensorPipeRpcBackendOptions | None = None,
) -> None:
    """Makes this process a worker, which others call by its name, and waits for all of them.

    They meet as rpc_backend_options.init_method says: at MASTER_ADDR and MASTER_PORT, where rank 0
    serves a TCPStore, by default. ValueError for names that are taken or no words, RuntimeError for
    a second worker of a process. A call runs what its caller says; callers show a secret that they
    have from the store, so whoever reaches the store may call, as in PyTorch.

    >>> from weft.distributed import rpc
    >>> rpc.init_rpc("alone", rank=0, world_size=1)
    >>> rpc.rpc_sync("alone", divmod, args=(7, 3))
    (2, 1)
    >>> rpc.shutdown()
    """
    if WORKER.agent is not None:
        raise RuntimeError("init_rpc: expected no worker yet, got a second one of this process")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"init_rpc: expected a name of 1 to 127 letters, digits, '_', '-' or ':', got {name!r}"
        )
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    limit = timedelta(seconds=options.rpc_timeout or 1e9)
    store, rank, world_size, host = meeting(options.init_method, rank, world_size, limit)
    store = PrefixStore(f"rpc/{next(_meetings)}", store)
    store.set_timeout(limit)
    listener = socket.create_server((host, 0), backlog=128)
    all_ = introduced(store, rank, world_size, name, host, listener.getsockname()[1])
    if len(set(all_.names)) < world_size:
        listener.close()
        _leave(store, rank, world_size)
        raise ValueError(f"init_rpc: expected names of their own, got {', '.join(all_.names)}")
    workers = [WorkerInfo(each, number) for number, each in enumerate(all_.names)]
    WORKER.store = store
    WORKER.agent = Agent(
        rank, workers, all_.addresses, listener, all_.secret, options.num_worker_threads,
        options.rpc_timeout, RRef,
    )  # fmt: skip
    _together(store, "init", world_size, 0)


def _together(store: Store, what: str, world_size: int, number: int) -> int:
    """Waits until all workers are here; the sum of their numbers."""
    store.add(f"{what}/sum", number)
    if store.add(f"{what}/count", 1) == world_size:
        store.set(f"{what}/all", "")
    store.wait([f"{what}/all"])
    return store.add(f"{what}/sum", 0)


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """Ends this worker: with graceful=True when all workers call it and no call is under way.
    RuntimeError after `timeout` seconds, 0 for none; does nothing where there is no worker."""
    agent, store = WORKER.agent, WORKER.store
    if agent is None or store is None:
        return
    try:
        if graceful:
            store.set_timeout(timedelta(seconds=timeout or 1e9))
            _wait_for_all(agent, store)
    finally:
        WORKER.agent = WORKER.store = None
        agent.close()


def _wait_for_all(agent: Agent, store: Store) -> None:
    """Until no worker has asked anything since all had their answers: calls may make others."""
    before = -1
    for turn in itertools.count():
        asked = _together(store, f"end/{turn}", len(agent.workers), agent.wait_for_answers())
        if asked == before:
            break
        before = asked
    _leave(store, agent.info.id, len(agent.workers))


def _leave(store: Store, rank: int, world_size: int) -> None:
    """The first worker serves the store: it stays until the others need it no more. What they say
    last it may leave without an answer."""
    with contextlib.suppress(DistNetworkError):
        if store.add("gone", 1) == world_size:
            store.set("all gone", "")
    if rank == 0:
        store.wait(["all gone"])
