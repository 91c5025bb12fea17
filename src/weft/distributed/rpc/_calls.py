"""Calls of functions in other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.distributed.rpc._agent import UNSET, Agent
from weft.distributed.rpc._link import CALL, NO_KEY, REMOTE
from weft.distributed.rpc.options import WorkerInfo
from weft.distributed.stores import Store
from weft.futures import Future


class Worker:
    """What init_rpc makes."""

    agent: Agent | None = None
    store: Store | None = None


WORKER = Worker()


class Method(str):
    """The name of a method of the reference that stands first among the arguments."""


def current_agent() -> Agent:
    """This worker's side of calls. RuntimeError before init_rpc."""
    if WORKER.agent is None:
        raise RuntimeError("rpc: expected init_rpc to be called first, got no worker")
    return WORKER.agent


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """A worker by its name; this one by default. RuntimeError before init_rpc and for other
    names."""
    agent = current_agent()
    return agent.info if worker_name is None else agent.workers[agent.find(worker_name)]


def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: Any = None,
    kwargs: Any = None,
    timeout: float = UNSET,
) -> Any:
    """What func(*args, **kwargs) returns in another worker.

    `to`: its name, rank or WorkerInfo. func is a function that pickle knows by its name; tensors go
    and come as copies. An error there has the same class here, with its traceback as text.
    RuntimeError after `timeout` seconds (0: never), by default those of init_rpc, and where the
    worker has gone.
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: Any = None,
    kwargs: Any = None,
    timeout: float = UNSET,
) -> Future[Any]:
    """A weft.futures.Future of what rpc_sync returns or raises."""
    agent = current_agent()
    return agent.call(agent.find(to), CALL, _function(func), args, kwargs, NO_KEY, timeout)


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: Any = None,
    kwargs: Any = None,
    timeout: float = UNSET,
) -> Any:
    """A reference (RRef) to what func(*args, **kwargs) returns in another worker, where it stays.
    `to` and func are as of rpc_sync; errors are raised by the reference's to_here."""
    agent = current_agent()
    owner, key = agent.find(to), agent.new_key()
    if owner == agent.info.id:
        agent.values.keep(key)
    made = agent.reference._of(agent, owner, key)
    made._made = agent.call(owner, REMOTE, _function(func), args, kwargs, key, timeout)
    return made


def _function(func: Any) -> Any:
    if not callable(func) and not isinstance(func, Method):
        raise TypeError(f"rpc: expected a function, got {type(func).__name__}")
    return func
