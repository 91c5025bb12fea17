"""A channel: messages, and descriptors beside them, through a pair of sockets."""

from __future__ import annotations

import array
import contextlib
import os
import resource
import select
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

_HEADER = struct.Struct("<BqQQ")  # kind, number, bytes of the body, bytes of the extra
_CHUNK = 1 << 16  # more would be mapped anew for every call
_MOST_DESCRIPTORS = 16
_DESCRIPTOR_SPACE = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_MOST_PIECES = 64


class Message(NamedTuple):
    """What one side tells the other."""

    kind: int
    number: int
    body: memoryview
    extra: memoryview


class Closed(Exception):
    """The other side has gone."""


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends; whatever process has one may make a Channel of it."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


class Channel:
    """One end. One thread at a time."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()
        self._ended = False
        self.descriptors: deque[int] = deque()

    def fileno(self) -> int:
        """Of the socket, to be waited for."""
        return self._socket.fileno()

    # ---- sending ----

    def send(
        self,
        kind: int,
        number: int,
        body: bytes = b"",
        extra: Sequence[Any] = (),
        descriptors: Sequence[int] = (),
    ) -> None:
        """Sends a message, waiting for room; Closed when nobody will read it."""
        pieces = [memoryview(piece).cast("B") for piece in extra]
        header = _HEADER.pack(kind, number, len(body), sum(map(len, pieces)))
        pieces = [memoryview(header + body), *pieces]
        if len(pieces) > _MOST_PIECES:
            pieces = [memoryview(b"".join(pieces))]
        self._flush(pieces, list(descriptors))

    def _flush(self, pieces: list[memoryview], descriptors: list[int]) -> None:
        while pieces:
            now, descriptors = descriptors[:_MOST_DESCRIPTORS], descriptors[_MOST_DESCRIPTORS:]
            # With descriptors left, one byte carries these: they must not come after the message.
            chunk = [pieces[0][:1]] if descriptors else pieces
            sent = self._send_some(chunk, now)
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if sent:
                pieces[0] = pieces[0][sent:]

    def _send_some(self, pieces: list[memoryview], descriptors: list[int]) -> int:
        control = []
        if descriptors:
            packed = array.array("i", descriptors)
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)]
        while True:
            try:
                return self._socket.sendmsg(pieces, control, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait_for_room()
            except OSError as error:
                raise Closed from error

    def _wait_for_room(self) -> None:
        # Reads meanwhile: the other side may be waiting for room as well.
        poller = select.poll()
        poller.register(self._socket, select.POLLIN | select.POLLOUT)
        events = poller.poll()[0][1]
        if events & select.POLLIN and not self._ended:
            self._read(0)

    # ---- receiving ----

    def receive(self) -> Message:
        """The next message, waiting for it; Closed at the end."""
        while (message := self._next()) is None:
            self._read(0)
        return message

    def has_begun(self) -> bool:
        """Whether bytes of a message are here, perhaps all of it."""
        return bool(self._buffer)

    def receive_now(self) -> Message | None:
        """The next message if all of it is there; Closed at the end."""
        while (message := self._next()) is None:
            try:
                self._read(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
        return message

    def _next(self) -> Message | None:
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            return None
        kind, number, body, extra = _HEADER.unpack_from(buffer)
        middle = _HEADER.size + body
        end = middle + extra
        if len(buffer) < end:
            return None
        if len(buffer) == end:
            self._buffer = bytearray()
        else:
            buffer, self._buffer = buffer[:end], buffer[end:]
        view = memoryview(buffer)
        return Message(kind, number, view[_HEADER.size : middle], view[middle:])

    def _read(self, flags: int) -> None:
        if self._ended:
            raise Closed
        try:
            data, control, told, _ = self._socket.recvmsg(
                _CHUNK, _DESCRIPTOR_SPACE, flags | _CLOSE_ON_EXEC
            )
        except BlockingIOError:
            raise
        except OSError:  # reset by the other side, or closed on this one
            data, control, told = b"", [], 0
        if told & socket.MSG_CTRUNC:
            self._ended = True  # what is in the messages from here on is lost
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            raise RuntimeError(
                "DataLoader: expected a free file descriptor for the memory of a batch, got none "
                f"of the {limit} that this process may have (ulimit -n)"
            )
        for level, kind, packed in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(packed[: len(packed) - len(packed) % received.itemsize])
                self.descriptors.extend(received)
        self._buffer += data
        if not data:
            self._ended = True
            raise Closed

    # ---- ending ----

    def close(self) -> None:
        """Ends it for both sides, whoever else has a copy of the socket."""
        with contextlib.suppress(OSError):  # where the other side was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self.forget()

    def forget(self) -> None:
        """Closes this process's copy of the socket only."""
        self._socket.close()
        while self.descriptors:
            os.close(self.descriptors.popleft())
