"""What stores hold, and what they do to it: the operations of weft.distributed.stores by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any


class Table:
    """Values by key, and queues. Whoever shares one has a lock around `missing` and `perform`."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}

    def missing(self, operation: str, args: Sequence[Any]) -> list[str]:
        """The keys that an operation has to wait for."""
        if operation == "get":
            return [args[0]] if args[0] not in self.values else []
        if operation in ("multi_get", "wait"):
            return [key for key in args[0] if not self._has(key, operation == "wait")]
        if operation == "queue_pop" and args[1]:
            return [] if self._queues.get(args[0]) else [args[0]]
        return []

    def _has(self, key: str, queues_too: bool) -> bool:
        return key in self.values or (queues_too and bool(self._queues.get(key)))

    def perform(self, operation: str, args: Sequence[Any]) -> Any:
        """The result of an operation that has nothing to wait for."""
        return _OPERATIONS[operation](self, *args)

    def _add(self, key: str, amount: int) -> int:
        before = self.values.get(key, b"0")
        try:
            value = int(before) + amount
        except ValueError:
            raise ValueError(f"Store.add: expected a number at {key!r}, got {before!r}") from None
        self.values[key] = str(value).encode()
        return value

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        if key not in self.values and expected:
            return expected
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return self.values[key]

    def _append(self, key: str, value: bytes) -> None:
        self.values[key] = self.values.get(key, b"") + value

    def _multi_set(self, keys: Sequence[str], values: Sequence[bytes]) -> None:
        self.values.update(zip(keys, values))

    def _queue_push(self, key: str, value: bytes) -> None:
        self._queues.setdefault(key, deque()).append(value)

    def _queue_pop(self, key: str, block: bool) -> bytes | None:
        queue = self._queues.get(key)
        return queue.popleft() if queue else None

    def _check(self, keys: Sequence[str]) -> bool:
        return all(self._has(key, True) for key in keys)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "set": lambda table, key, value: table.values.__setitem__(key, value),
    "get": lambda table, key: table.values[key],
    "add": Table._add,
    "append": Table._append,
    "compare_set": Table._compare_set,
    "delete_key": lambda table, key: table.values.pop(key, None) is not None,
    "check": Table._check,
    "wait": lambda table, keys: None,
    "multi_get": lambda table, keys: [table.values[key] for key in keys],
    "multi_set": Table._multi_set,
    "num_keys": lambda table: len(table.values),
    "list_keys": lambda table: list(table.values),
    "queue_push": Table._queue_push,
    "queue_pop": Table._queue_pop,
    "queue_len": lambda table, key: len(table._queues.get(key, ())),
}
