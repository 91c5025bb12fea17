"""Connections of two workers: messages with a head that needs no unpickling."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import NamedTuple

CALL, REMOTE, FETCH, HOLD, DROP, RESULT, ERROR = range(7)
Part = bytes | bytearray | memoryview
Key = tuple[int, int]  # of a value: the rank of the worker that named it, and its number there
NO_KEY: Key = (0, 0)
_HEAD = struct.Struct("<BQQQQ")
_SMALL = 1 << 14  # bytes: copied to go with the head


class Message(NamedTuple):
    """`number` is that of the request, also in its answer. `body`: what stands behind one another
    there; one part in a message that has come."""

    kind: int
    number: int
    key: Key = NO_KEY
    body: Sequence[Part] = ()


class Link:
    """One connection. Several threads may send."""

    def __init__(self, peer: socket.socket) -> None:
        peer.settimeout(None)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = peer
        self._lock = threading.Lock()

    def identified(self, secret: bytes, asks_first: bool) -> bool:
        """Whether both sides know the secret."""
        try:
            with Connection(os.dup(self._peer.fileno())) as connection:
                for asks in (asks_first, not asks_first):
                    (deliver_challenge if asks else answer_challenge)(connection, secret)
        except (AuthenticationError, OSError, EOFError, ValueError):
            self.close()
            return False
        return True

    def send(self, message: Message) -> None:
        """OSError where the other side has gone."""
        size = sum(map(len, message.body))
        parts = (_HEAD.pack(message.kind, message.number, *message.key, size), *message.body)
        with self._lock:
            for part in [b"".join(parts)] if size < _SMALL else parts:
                self._peer.sendall(part)

    def receive(self) -> Message:
        """Waits for a message. OSError or EOFError where the other side has gone."""
        kind, number, *key, size = _HEAD.unpack(self._exactly(_HEAD.size))
        return Message(kind, number, tuple(key), (self._exactly(size),) if size else ())

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            count = self._peer.recv_into(left)
            if not count:
                raise EOFError
            left = left[count:]
        return data

    def close(self) -> None:
        """The other side is told; threads that wait for messages go on."""
        with contextlib.suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()
