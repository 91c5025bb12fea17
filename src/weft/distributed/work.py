"""Operations that are under way."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from weft.distributed.errors import DistBackendError
from weft.distributed.watch import Waiting
from weft.futures import Future

if TYPE_CHECKING:
    from weft.distributed.groups import ProcessGroup

# The thread that polls takes little of a processor from the program that computes. A poll may move
# no more than 8 KiB (weft.distributed.pace).
_BURST = 8  # polls
_REST = 0.0001  # seconds between bursts


class Work:
    """An operation of a group. It ends in `wait`, or before that while other Python code runs.

    requests: those of MPI, none where one process is all there is. finish: called once they are
    complete, by the thread that finds them so. result: the tensors that the operation fills.
    """

    def __init__(
        self,
        what: str,
        group: ProcessGroup,
        requests: Sequence[Any] = (),
        result: Sequence[Any] = (),
        finish: Callable[[], None] | None = None,
        kept: Any = None,
        peers: Sequence[int] | None = None,
    ) -> None:
        self._group, self._requests, self._result = group, list(requests), list(result)
        self._finish, self._kept = finish, kept  # what MPI reads and writes has to live until then
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._future: _FutureOfWork | None = None
        self._done = False
        self._statuses = group.transport.statuses(self._requests) if self._requests else []
        number = group.count() if peers is None else -1
        ranks = tuple(group.ranks if peers is None else peers)
        self._waiting = Waiting(what, group.group_name, number, ranks)
        if not self._requests:
            self.poll()

    def poll(self) -> bool:
        """Whether the operation has ended. Lets it make progress."""
        if self._done or not self._lock.acquire(blocking=False):
            return self._done
        try:
            if not self._done and self._is_complete():
                if self._finish is not None and self._error is None:
                    self._finish()
                self._kept = self._finish = None
                self._requests.clear()
                self._done = True
        except DistBackendError as error:
            self._error = DistBackendError(f"{self._waiting.what}: {error}")
            self._done = True
        except Exception as error:
            self._error, self._done = error, True
        finally:
            self._lock.release()
        if self._done:
            progress.forget(self)
            if self._future is not None:
                self._settle(self._future)
        return self._done

    def _is_complete(self) -> bool:
        return not self._requests or self._group.transport.test_all(self._requests, self._statuses)

    @property
    def source(self) -> int:
        """The rank in the world that sent what was received."""
        return self._group.ranks[self._statuses[0].Get_source()]

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True when the operation has ended.

        DistBackendError where MPI reports an error or another process sends another size, and after
        the timeout, by default the group's: it names the ranks that are missing. A world with such
        an error is lost.
        """
        limit = self._group.timeout if timeout is None else timeout
        if not self.poll():
            self._group.transport.watch.wait(self.poll, self._waiting, limit.total_seconds())
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the operation has ended."""
        return self.poll()

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self.poll() and self._error is None

    def exception(self) -> Exception | None:
        """The error with which it ended."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that it fills."""
        return self._result

    def get_future(self) -> Future[Any]:
        """A future of the result. Somebody has to wait for it, or for this."""
        if self._future is None:
            self._future = future = _FutureOfWork(self)
            if self.poll():
                self._settle(future)
            else:
                progress.add(self)
        return self._future

    def _settle(self, future: Future[Any]) -> None:
        with self._lock:
            if not future.done():
                if self._error is None:
                    future.set_result(self._result)
                else:
                    future.set_exception(self._error)


class _FutureOfWork(Future[Any]):
    """The result of an operation. Waiting for it has the operation's timeout and errors."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def _following(self) -> Future[Any]:
        return _FutureOfWork(self._work)

    def wait(self) -> Any:
        self._work.wait()
        return super().wait()


class Progress:
    """A thread that polls what is under way, so that it ends while the program computes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._works: set[Work] = set()  # changed by single calls, between which others may come
        self._thread: threading.Thread | None = None

    def add(self, work: Work) -> None:
        """Polls this operation too, until it has ended."""
        with self._changed:
            self._works.add(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
                atexit.register(self._stop, self._thread)
            self._changed.notify()

    def forget(self, work: Work) -> None:
        """Lets go of an operation that has ended, and so of its tensors, of whatever thread."""
        self._works.discard(work)

    def _run(self) -> None:
        while self._thread is not None:
            with self._changed:
                if not self._works:
                    self._changed.wait(1.0)
            for _ in range(_BURST):
                self._poll()
            time.sleep(_REST)

    def _poll(self) -> None:
        for work in list(self._works):
            work.poll()

    def _stop(self, thread: threading.Thread) -> None:
        """Before MPI ends."""
        with self._changed:
            self._thread = None
            self._works.clear()
            self._changed.notify()
        thread.join()


progress = Progress()
