"""Stores: small dictionaries that processes or threads share, to find and wait for each other.

Keys are strings, values bytes. HashStore is for threads, FileStore and TCPStore for processes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from weft.distributed._table import Table
from weft.distributed.errors import DistStoreError, QueueEmptyError

default_timeout = timedelta(seconds=300)


class Store:
    """What all stores do. A class of a program may derive from it and write its own methods.

    Whatever needs keys that are not there yet waits for them: DistStoreError after `timeout`.
    Keys of other types than str, and values that are neither str nor bytes, raise TypeError.

    >>> import weft.distributed as dist
    >>> store = dist.HashStore()
    >>> store.set("name", "weft")
    >>> store.get("name"), store.add("count", 2), store.check(["count", "other"])
    (b'weft', 2, False)
    """

    _timeout = default_timeout

    def _do(self, operation: str, *args: Any, limit: timedelta | None = None) -> Any:
        """An operation of a Table. `limit` in place of the timeout."""
        raise RuntimeError(
            f"{type(self).__name__}.{operation}: expected a method of its own, got none"
        )

    @property
    def timeout(self) -> timedelta:
        """How long operations wait for keys, 300 s by default."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long operations wait for keys."""
        self._timeout = _duration(timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Sets the value of a key."""
        self._do("set", _name(key), _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, as soon as there is one."""
        return self._do("get", _name(key))

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter, which begins at 0; the sum. ValueError where it is no number."""
        if not isinstance(amount, int):
            raise TypeError(f"Store.add: expected an int, got {type(amount).__name__}")
        return self._do("add", _name(key), amount)

    def append(self, key: str, value: str | bytes) -> None:
        """Appends to the value of a key, which begins empty."""
        self._do("append", _name(key), _bytes(value))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Sets the value to `desired` where it is `expected` (empty: or there is none); the value
        afterwards, or `expected` where there is none."""
        return self._do("compare_set", _name(key), _bytes(expected), _bytes(desired))

    def delete_key(self, key: str) -> bool:
        """Forgets a key; whether it was there."""
        return self._do("delete_key", _name(key))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these keys have values now."""
        return self._do("check", _names(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all of these keys have values."""
        self._do("wait", _names(keys), limit=None if timeout is None else _duration(timeout))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, as soon as all are there."""
        return self._do("multi_get", _names(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Sets several keys at once. DistStoreError for another number of values."""
        if len(keys) != len(values):
            raise DistStoreError(
                f"Store.multi_set: expected a value for each of {len(keys)} keys, got {len(values)}"
            )
        self._do("multi_set", _names(keys), [_bytes(value) for value in values])

    def num_keys(self) -> int:
        """The number of keys; a TCPStore counts its own one of waiting for workers."""
        return self._do("num_keys")

    def list_keys(self) -> list[str]:
        """All keys, in no order."""
        return self._do("list_keys")

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at the end of a queue."""
        self._do("queue_push", _name(key), _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first value of a queue. An empty one is waited for, or raises QueueEmptyError
        with block=False."""
        value = self._do("queue_pop", _name(key), bool(block))
        if value is None:
            raise QueueEmptyError(
                f"Store.queue_pop: expected a value in {key!r}, got an empty queue"
            )
        return value

    def queue_len(self, key: str) -> int:
        """The length of a queue."""
        return self._do("queue_len", _name(key))

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until world_size callers have called it with this key, which may be used again."""
        turn, place = divmod(self.add(f"{key}/num_members", 1) - 1, world_size)
        if place == world_size - 1:
            self.set(f"{key}/round_{turn}", "")
        self.wait([f"{key}/round_{turn}"], timeout)

    def has_extended_api(self) -> bool:
        """Whether append, multi_get and multi_set are one operation each."""
        return True

    def clone(self) -> Store:
        """Another store of the same values, for another thread."""
        raise NotImplementedError(
            f"{type(self).__name__}.clone: expected a method of its own, got none"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"pickle: expected an object without memory or sockets of its own, got a "
            f"{type(self).__name__}"
        )


class HashStore(Store):
    """A store for the threads of one process.

    >>> import weft.distributed as dist
    >>> store = dist.HashStore()
    >>> store.compare_set("leader", "", "a"), store.compare_set("leader", "", "b")
    (b'a', b'a')
    """

    def __init__(self) -> None:
        self._table = Table()
        self._changed = threading.Condition()

    def _do(self, operation: str, *args: Any, limit: timedelta | None = None) -> Any:
        limit = self._timeout if limit is None else limit
        with self._changed:
            if not self._changed.wait_for(
                lambda: not self._table.missing(operation, args), limit.total_seconds()
            ):
                raise too_late(operation, self._table.missing(operation, args), limit)
            result = self._table.perform(operation, args)
            self._changed.notify_all()
        return result

    def clone(self) -> HashStore:
        """Another store of the same values."""
        other = HashStore()
        other._table, other._changed, other._timeout = self._table, self._changed, self._timeout
        return other


class PrefixStore(Store):
    """The part of another store whose keys begin with a prefix, which its user does not see.

    >>> import weft.distributed as dist
    >>> store = dist.HashStore()
    >>> dist.PrefixStore("worker", store).set("rank", "1")
    >>> store.get("worker/rank")
    b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore: expected a store, got {type(store).__name__}")
        self._prefix = _name(prefix) + "/"
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The store that it is a part of."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        """How long the underlying store waits."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long the underlying store waits."""
        self._store.set_timeout(timeout)

    def _do(self, operation: str, *args: Any, limit: timedelta | None = None) -> Any:
        if args:
            first = args[0]
            key = first if isinstance(first, list) else [first]
            whole = [self._prefix + each for each in key]
            args = (whole if isinstance(first, list) else whole[0], *args[1:])
        args = args if limit is None else (*args, limit)
        return getattr(self._store, operation)(*args)

    def list_keys(self) -> list[str]:
        """The keys that begin with the prefix, without it."""
        keys = self._store.list_keys()
        return [key[len(self._prefix) :] for key in keys if key.startswith(self._prefix)]

    def has_extended_api(self) -> bool:
        """What the underlying store says."""
        return self._store.has_extended_api()

    def clone(self) -> PrefixStore:
        """The same part of a clone of the underlying store."""
        return PrefixStore(self._prefix[:-1], self._store.clone())


def too_late(operation: str, missing: Sequence[str], limit: timedelta) -> DistStoreError:
    """The error of an operation that waited in vain."""
    return DistStoreError(
        f"Store.{operation}: expected every key to have a value within {limit.total_seconds()} s, "
        f"got none for {', '.join(map(repr, missing))}"
    )


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"Store: expected a str as key, got {type(key).__name__}")
    return key


def _names(keys: Any) -> list[str]:
    if isinstance(keys, str):
        raise TypeError("Store: expected a list of keys, got a str")
    return [_name(key) for key in keys]


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"Store: expected a str or bytes as value, got {type(value).__name__}")
    return value.encode() if isinstance(value, str) else bytes(value)


def _duration(value: Any) -> timedelta:
    if not isinstance(value, timedelta):
        raise TypeError(f"Store: expected a timedelta, got {type(value).__name__}")
    return value
