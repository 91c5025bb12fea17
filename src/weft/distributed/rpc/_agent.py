"""A worker's side of calls: it sends requests, answers those of others, and keeps values that
others have references to."""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import math
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from weft.distributed.rpc import _pickles
from weft.distributed.rpc._link import (
    CALL,
    DROP,
    ERROR,
    FETCH,
    HOLD,
    NO_KEY,
    RESULT,
    Key,
    Link,
    Message,
    Part,
)
from weft.distributed.rpc._threads import Threads
from weft.distributed.rpc._values import Values
from weft.distributed.rpc.functions import is_async
from weft.distributed.rpc.options import WorkerInfo
from weft.futures import Future

UNSET = -1.0  # a timeout that is not given


class _Answer(Future[Any]):
    """A Future whose callbacks run in a thread of their own: they may wait for other answers, which
    the thread that sets this one takes."""

    def __init__(self, threads: Threads) -> None:
        super().__init__()
        self._threads = threads

    def add_done_callback(self, callback: Callable[[Future[Any]], None]) -> None:
        """Calls callback(self) when the result is there."""
        super().add_done_callback(lambda done: self._threads.do(lambda: callback(done)))

    def _following(self) -> Future[Any]:
        return _Answer(self._threads)


class Agent:
    """`workers` and `addresses` by rank; `secret`: what all know and nobody else; `timeout` in
    seconds, 0 for none; `reference`: the class of references."""

    def __init__(
        self, rank: int, workers: Sequence[WorkerInfo], addresses: Sequence[tuple[str, int]],
        listener: socket.socket, secret: bytes, threads: int, timeout: float, reference: Any,
    ) -> None:  # fmt: skip
        self.info, self.workers, self._addresses = workers[rank], tuple(workers), addresses
        self.timeout, self.reference, self._secret = timeout, reference, secret
        self._listener = listener
        self._answering = Threads("weft rpc call", threads)
        self._finishing = Threads("weft rpc result", 1 << 30)  # a callback may wait for another
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._pending: dict[int, tuple[Future[Any], int]] = {}  # with the rank that was asked
        self._links: dict[int, Link] = {}
        self._incoming: set[Link] = set()
        self.values = Values()
        # For the thread that tends: when calls end, (when, number, timeout), and when it looks
        # next; references that are gone, None at the end, () to look again.
        self._ends: list[tuple[float, int, float]] = []
        self._next = math.inf
        self._tidings: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.asked = 0
        for run in (self._listen, self._tend):
            threading.Thread(target=run, name="weft rpc", daemon=True).start()

    # Requests -------------------------------------------------------------------------------------

    def find(self, to: Any) -> int:
        """The rank of a worker by its name, rank or WorkerInfo; else RuntimeError."""
        for each in self.workers:
            if to in (each, each.name) or (to == each.id and isinstance(to, int)):
                return each.id
        raise RuntimeError(
            f"rpc: expected one of {', '.join(each.name for each in self.workers)}, got {to!r}"
        )

    def ask(
        self,
        to: int,
        kind: int,
        key: Key = NO_KEY,
        body: Sequence[Part] = (),
        timeout: float = UNSET,
    ) -> Future[Any]:
        """Sends a request; the answer, when it comes."""
        timeout = self.timeout if timeout == UNSET else timeout
        number, future = next(self._numbers), _Answer(self._finishing)
        with self._lock:
            self._pending[number] = future, to
            self.asked += 1
        if timeout > 0:
            self._limit(number, timeout)
        try:
            self._link(to).send(Message(kind, number, key, body))
        except OSError as error:
            self._finish(number, _raising(self._lost(to, error)))
        return future

    def new_key(self) -> Key:
        """A name that no other value has."""
        return self.info.id, next(self._numbers)

    def call(
        self, to: int, kind: int, function: Any, args: Any, kwargs: Any, key: Key, timeout: float
    ) -> Future[Any]:
        """Asks for a call of a function; of a method of a reference, which stands first in `args`,
        by its name."""
        body = _pickles.dumps(self, (function, tuple(args or ()), dict(kwargs or {})))
        return self.ask(to, kind, key, body, timeout)

    def _link(self, to: int) -> Link:
        with self._lock:
            if to not in self._links:
                link = Link(socket.create_connection(self._addresses[to]))
                if not link.identified(self._secret, asks_first=False):
                    raise ConnectionError("another secret")
                self._links[to] = link
                run = threading.Thread(target=self._hear, args=(to, link), daemon=True)
                run.start()
            return self._links[to]

    def _hear(self, to: int, link: Link) -> None:
        """Takes answers of one worker."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                self._take(link.receive())
        error = self._lost(to, "a closed connection")
        with self._lock:
            del self._links[to]  # calls from now on try to connect anew
            link.close()
            lost = [number for number, (_, rank) in self._pending.items() if rank == to]
        for number in lost:
            self._finish(number, _raising(error))

    def _lost(self, to: int, reason: Any) -> RuntimeError:
        return RuntimeError(f"rpc: expected an answer of {self.workers[to]}, got {reason}")

    def _take(self, message: Message) -> None:
        if message.kind == ERROR:
            self._finish(
                message.number, lambda: _raise(_pickles.error_of_parts(self, message.body))
            )
        else:
            body = message.body
            self._finish(message.number, lambda: _pickles.loads(self, body) if body else None)

    def _finish(self, number: int, result: Callable[[], Any]) -> None:
        """Sets a result that comes first; one behind the timeout is too late."""
        with self._lock:
            future, _ = self._pending.get(number, (None, 0))
        if future is not None:
            with contextlib.suppress(RuntimeError):  # it had one
                _settle(future, result)
            with self._lock:
                self._pending.pop(number, None)
                self._idle.notify_all()

    # Answers --------------------------------------------------------------------------------------

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        """Answers one worker. Values that calls will make are there when their messages are."""
        link = Link(peer)
        if not link.identified(self._secret, asks_first=True):
            return
        with self._lock:
            self._incoming.add(link)
        with contextlib.suppress(OSError, EOFError):
            while True:
                self._receive(link, link.receive())
        with self._lock:
            self._incoming.discard(link)

    def _receive(self, link: Link, message: Message) -> None:
        if message.kind == HOLD:
            self.values.hold(message.key)
            link.send(Message(RESULT, message.number))
        elif message.kind == DROP:
            self.values.drop(message.key)
        elif message.kind == FETCH:
            self._answer_later(link, message, self.values.get(message.key))
        else:
            done = self._place(message)
            self._answering.do(functools.partial(self._perform, link, message, done))

    def _place(self, message: Message) -> Future[Any]:
        """Where the result of a call goes: among the values if others will refer to it."""
        if message.kind == CALL:
            return Future()
        if message.key[0] != self.info.id:
            return self.values.keep(message.key)
        return self.values.find(message.key) or Future()  # its own reference may be gone already

    def _perform(self, link: Link, message: Message, done: Future[Any]) -> None:
        """Calls a function. `done`: its result, which is the answer unless it is kept here."""
        answer: Future[Any] = done if message.kind == CALL else done.then(lambda _: None)
        self._answer_later(link, message, answer)
        try:
            function, args, kwargs = _pickles.loads(self, message.body)
            if isinstance(function, str):
                function, args = getattr(args[0].local_value(), function), args[1:]
            result = function(*args, **kwargs)
            if not is_async(function):
                done.set_result(result)
            elif isinstance(result, Future):
                result.add_done_callback(lambda later: _settle(done, later.value))
            else:
                raise RuntimeError(
                    "rpc: expected a weft.futures.Future of a function of async_execution, got "
                    f"{type(result).__name__}"
                )
        except BaseException as error:  # whatever it is, the caller must be told
            done.set_exception(error)

    def _answer_later(self, link: Link, message: Message, future: Future[Any]) -> None:
        future.add_done_callback(lambda done: self._answer(link, message.number, done))

    def _answer(self, link: Link, number: int, done: Future[Any]) -> None:
        try:
            answer = Message(RESULT, number, NO_KEY, _pickles.dumps(self, done.value()))
        except BaseException as error:
            answer = Message(ERROR, number, NO_KEY, _pickles.error_in_parts(self, error))
        with contextlib.suppress(OSError):  # nobody waits any more
            link.send(answer)

    # References -----------------------------------------------------------------------------------

    def hold(self, owner: int, key: Key) -> None:
        """Counts one more reference."""
        if owner == self.info.id:
            self.values.hold(key)
        else:
            self.ask(owner, HOLD, key).wait()

    def forget(self, owner: int, key: Key) -> None:
        """A reference is gone: maybe within anything, even in a thread that has the lock."""
        self._tidings.put((owner, key))

    def _limit(self, number: int, timeout: float) -> None:
        """A call ends with an error after `timeout` seconds."""
        when = time.monotonic() + timeout
        with self._lock:
            self._drop_ends()
            heapq.heappush(self._ends, (when, number, timeout))
            is_sooner = when < self._next
            self._next = min(when, self._next)
        if is_sooner:
            self._tidings.put(())

    def _drop_ends(self) -> None:
        while self._ends and self._ends[0][1] not in self._pending:
            heapq.heappop(self._ends)

    def _tend(self) -> None:
        """Ends calls that take too long, and tells owners of references that are gone."""
        found: Any = ()
        while found is not None:
            if found and found[0] == self.info.id:
                self.values.drop(found[1])
            elif found:
                with contextlib.suppress(OSError):
                    self._link(found[0]).send(Message(DROP, 0, found[1]))
            for number, timeout in self._overdue():
                self._finish(number, _raising(RuntimeError(
                    f"RPC ran for more than set timeout ({timeout * 1000:.0f} ms) and will now be "
                    "marked with an error"
                )))  # fmt: skip
            left = None if math.isinf(self._next) else max(self._next - time.monotonic(), 0)
            try:
                found = self._tidings.get(timeout=left)
            except queue.Empty:
                found = ()

    def _overdue(self) -> list[tuple[int, float]]:
        """Calls that take too long, with their timeouts."""
        now, found = time.monotonic(), []
        with self._lock:
            while self._ends and self._ends[0][0] <= now:
                found.append(heapq.heappop(self._ends)[1:])
            self._drop_ends()
            self._next = self._ends[0][0] if self._ends else math.inf
        return found

    # The end --------------------------------------------------------------------------------------

    def wait_for_answers(self) -> int:
        """Waits until every request has its answer; how many there were so far."""
        with self._idle:
            self._idle.wait_for(lambda: not self._pending)
            return self.asked

    def close(self) -> None:
        """Answers and sends no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            links = (*self._links.values(), *self._incoming)
        for link in links:
            link.close()
        self._tidings.put(None)
        for threads in (self._answering, self._finishing):
            threads.end()
        self.values.clear()


def _settle(future: Future[Any], result: Callable[[], Any]) -> None:
    try:
        value = result()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)


def _raise(error: BaseException) -> Any:
    raise error


def _raising(error: BaseException) -> Callable[[], Any]:
    return lambda: _raise(error)
