"""Values of a worker that references name, here and in other workers."""

from __future__ import annotations

import threading
from typing import Any

from weft.distributed.rpc._link import Key
from weft.futures import Future


class _Value:
    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.count = 1  # of the references that there are


class Values:
    """Each is kept as long as there are references. A reference that travels is counted before it
    is sent, so that no value goes while one is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Key, _Value] = {}

    def __len__(self) -> int:
        return len(self._values)

    def keep(self, key: Key) -> Future[Any]:
        """Makes a value that one reference names; it comes later."""
        with self._lock:
            return self._values.setdefault(key, _Value()).future

    def find(self, key: Key) -> Future[Any] | None:
        """A value; None for one that is gone."""
        with self._lock:
            found = self._values.get(key)
        return None if found is None else found.future

    def get(self, key: Key) -> Future[Any]:
        """A value; RuntimeError for one that is gone is in the Future."""
        found = self.find(key)
        if found is None:
            found = Future()
            text = f"rpc: expected a value that is kept, got number {key[1]} of rank {key[0]}"
            found.set_exception(RuntimeError(text))
        return found

    def hold(self, key: Key) -> None:
        """Counts one more reference."""
        with self._lock:
            if key in self._values:
                self._values[key].count += 1

    def drop(self, key: Key) -> None:
        """Counts one less."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return
            found.count -= 1
            if not found.count:
                del self._values[key]
        del found  # outside of the lock: it may hold references

    def clear(self) -> None:
        """Forgets all."""
        self._values.clear()
