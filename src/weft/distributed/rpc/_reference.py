"""References to values of other workers."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from weft.distributed.rpc import _calls
from weft.distributed.rpc._agent import UNSET
from weft.distributed.rpc._link import FETCH, Key
from weft.distributed.rpc.options import WorkerInfo
from weft.futures import Future

if TYPE_CHECKING:
    from weft.distributed.rpc._agent import Agent

T = TypeVar("T")


class RRef(Generic[T]):
    """A value of a worker, its owner, which keeps it as long as some worker has a reference.

    RRef(value) refers to one of this worker; `remote` makes one of another. References are
    arguments and results of calls; RuntimeError where they are pickled otherwise. `type_hint` has
    no effect.

    >>> from weft.distributed import rpc
    >>> rpc.init_rpc("alone", rank=0, world_size=1)
    >>> rref = rpc.remote("alone", max, args=(2, 3))
    >>> rref.to_here(), rref.owner_name()
    (3, 'alone')
    >>> rpc.RRef([1, 2]).rpc_sync().index(2)
    1
    >>> rpc.shutdown()
    """

    _agent: Agent
    _owner: int
    _key: Key
    _made: Future[Any] | None = None  # the answer of the worker that makes the value

    def __init__(self, value: T, type_hint: Any = None) -> None:
        agent = _calls.current_agent()
        key = agent.new_key()
        agent.values.keep(key).set_result(value)
        self._name(agent, agent.info.id, key)

    @classmethod
    def _of(cls, agent: Agent, owner: int, key: Key) -> RRef[Any]:
        """A reference that has been counted."""
        made = cls.__new__(cls)
        made._name(agent, owner, key)
        return made

    def _name(self, agent: Agent, owner: int, key: Key) -> None:
        self._agent, self._owner, self._key = agent, owner, key
        weakref.finalize(self, agent.forget, owner, key).atexit = False

    def owner(self) -> WorkerInfo:
        """The worker that has the value."""
        return self._agent.workers[self._owner]

    def owner_name(self) -> str:
        """The name of the worker that has the value."""
        return self.owner().name

    def is_owner(self) -> bool:
        """Whether that is this worker."""
        return self._owner == self._agent.info.id

    def confirmed_by_owner(self) -> bool:
        """Whether the owner is known to have the value."""
        return self._made is None or self._made.done()

    def local_value(self) -> T:
        """The value, at its owner; RuntimeError elsewhere."""
        if not self.is_owner():
            raise RuntimeError(
                f"RRef.local_value: expected to be called by {self.owner()}, got "
                f"{self._agent.info}; to_here() copies the value"
            )
        return self._agent.values.get(self._key).wait()

    def to_here(self, timeout: float = UNSET) -> T:
        """The value: at its owner itself, elsewhere a copy, when it is there. An error of the
        function that should have made it is raised. RuntimeError after `timeout` seconds."""
        if self.is_owner():
            return self.local_value()
        return self._agent.ask(self._owner, FETCH, self._key, timeout=timeout).wait()

    def rpc_sync(self, timeout: float = UNSET) -> Any:
        """An object whose methods are those of the value, called at its owner; they return the
        results."""
        return _Methods(self, _calls.rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET) -> Any:
        """The same, with a Future of each result."""
        return _Methods(self, _calls.rpc_async, timeout)

    def remote(self, timeout: float = UNSET) -> Any:
        """The same, with a reference to each result."""
        return _Methods(self, _calls.remote, timeout)

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("RRef: expected to be pickled by calls of weft.distributed.rpc only")

    def __repr__(self) -> str:
        what = "Owner" if self.is_owner() else "User"
        return f"{what}RRef(owner={self.owner_name()}, id={self._key[0]}.{self._key[1]})"


class _Methods:
    def __init__(self, reference: RRef[Any], call: Callable[..., Any], timeout: float) -> None:
        self._reference, self._call, self._timeout = reference, call, timeout

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(self._invoke, name)

    def _invoke(self, name: str, *args: Any, **kwargs: Any) -> Any:
        owner = self._reference.owner()
        method = _calls.Method(name)
        return self._call(owner, method, (self._reference, *args), kwargs, timeout=self._timeout)
