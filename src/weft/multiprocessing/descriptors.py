"""Descriptors of storages, from process to process over a Unix socket.

Who sends a storage offers it under a random key; one thread gives its descriptor to whoever of the
same user asks with that key, once. The offer keeps the storage alive until then. The socket's
address is abstract: there is no file that a killed process could leave behind.
"""

from __future__ import annotations

import os
import resource
import secrets
import selectors
import socket
import struct
import threading
import time
from multiprocessing import util
from typing import Any

from weft import _C
from weft._C import Tensor

_KEY_BYTES = 16
_FOUND, _UNKNOWN = b"+", b"-"
_PATIENCE = 60  # seconds; a sender that is stopped answers nothing
_CREDENTIALS = struct.Struct("3i")


class SenderGone(RuntimeError):
    """The process that offered a storage has ended."""


class _Server:
    """The thread of one process that hands out what was offered."""

    def __init__(self) -> None:
        self.offers: dict[bytes, Tensor] = {}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.address = f"\0weft-{os.getpid()}-{secrets.token_hex(8)}".encode()
        self.listener.bind(self.address)
        self.listener.listen(1024)
        self.listener.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.stopping = False
        self.thread = threading.Thread(target=self.run, name="weft-descriptors", daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.stopping:
            for key, _ in self.selector.select():
                found: Any = key.fileobj
                try:
                    if found is self.listener:
                        self.accept()
                    else:
                        self.answer(found)
                except OSError:
                    if self.stopping:
                        return
                    if found is self.listener:
                        time.sleep(0.05)  # no descriptor is free at the moment
                    else:
                        self.drop(found)

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(raw)[1] not in (os.geteuid(), 0):
            connection.close()
            return
        connection.setblocking(False)
        self.selector.register(connection, selectors.EVENT_READ)

    def answer(self, connection: socket.socket) -> None:
        key = connection.recv(_KEY_BYTES)
        if not key:
            self.drop(connection)
            return
        tensor = self.offers.get(key)
        if tensor is None:
            connection.send(_UNKNOWN)
            return
        try:
            socket.send_fds(connection, [_FOUND], [_C._shared_place(tensor)[0]])
        finally:
            self.offers.pop(key, None)  # not sooner: a process that ends waits for this

    def drop(self, connection: socket.socket) -> None:
        self.selector.unregister(connection)
        connection.close()

    def stop(self) -> None:
        """At the end of the process."""
        self.stopping = True
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self.thread.join(1)
        self.close()

    def close(self) -> None:
        """In a child of fork: its copies of the parent's sockets must not outlive the parent."""
        for key in list(self.selector.get_map().values()):
            connection: Any = key.fileobj
            connection.close()
        self.selector.close()


_lock = threading.Lock()  # guards the making of the server
_server: _Server | None = None
_asking = threading.Lock()  # guards the connections
_connections: dict[bytes, socket.socket] = {}
_MOST_CONNECTIONS = 16
_end_is_known = False


def offer(tensor: Tensor) -> tuple[bytes, bytes]:
    """Address and key under which another process fetches the storage's descriptor, once."""
    global _server
    with _lock:
        if _server is None:
            _close_at_end()
            _server = _Server()
        key = secrets.token_bytes(_KEY_BYTES)
        _server.offers[key] = tensor
        return _server.address, key


def fetch(address: bytes, key: bytes, sender: int) -> int:
    """The descriptor; the caller owns it. RuntimeError where the sender has it no more."""
    if _server is not None and _server.address == address:
        tensor = _server.offers.pop(key, None)
        if tensor is None:
            raise _used(sender)
        return os.dup(_C._shared_place(tensor)[0])
    with _asking:
        try:
            return _ask(address, key, sender)
        except (BlockingIOError, TimeoutError) as error:
            raise RuntimeError(
                f"receive: expected process {sender} to hand over its tensor, got no answer within "
                f"{_PATIENCE} seconds"
            ) from error
        except ConnectionError as error:
            raise SenderGone(
                f"receive: expected process {sender} to hold the memory of its tensor, got one "
                "that has ended; keep the sender alive until the tensor has arrived"
            ) from error


def _ask(address: bytes, key: bytes, sender: int) -> int:
    connection = _connection(address)
    try:
        connection.sendall(key)
        answer, descriptors, _, _ = socket.recv_fds(connection, len(_FOUND), 1)
        if not answer:
            raise ConnectionResetError
    except BaseException:
        _forget(address)  # an answer that comes later belongs to nobody
        raise
    if answer == _UNKNOWN:
        raise _used(sender)
    if not descriptors:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise RuntimeError(
            f"receive: expected a free file descriptor for a tensor, got none of the {limit} that "
            "this process may have (ulimit -n); raise the limit, or call "
            "set_sharing_strategy('file_system') in the sender"
        )
    return descriptors[0]


def _used(sender: int) -> RuntimeError:
    return RuntimeError(
        f"receive: expected a tensor that process {sender} has offered, got one that has arrived "
        "before; every pickle of a shared tensor can be loaded once"
    )


def _connection(address: bytes) -> socket.socket:
    found = _connections.get(address)
    if found is None:
        if len(_connections) >= _MOST_CONNECTIONS:
            _forget(next(iter(_connections)))
        _close_at_end()
        found = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Not settimeout: it would refuse to wait for a place in the listener's queue.
        patience = struct.pack("ll", _PATIENCE, 0)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        try:
            found.connect(address)
        except BaseException:
            found.close()
            raise
        _connections[address] = found
    return found


def _forget(address: bytes) -> None:
    connection = _connections.pop(address, None)
    if connection is not None:
        connection.close()


def _close_at_end() -> None:
    """After the children have been waited for and receivers have fetched what is under way."""
    global _end_is_known
    if not _end_is_known:
        _end_is_known = True
        util.Finalize(None, _close, exitpriority=-2000)


def _close() -> None:
    global _server
    server, _server = _server, None
    if server is not None:
        server.stop()
    for address in list(_connections):
        _forget(address)


def _after_fork() -> None:
    """A child has neither the thread nor a right to the parent's sockets."""
    global _server, _lock, _asking, _end_is_known
    _lock, _asking, _end_is_known = threading.Lock(), threading.Lock(), False
    server, _server = _server, None
    if server is not None:
        server.close()
    for address in list(_connections):
        _forget(address)


os.register_at_fork(after_in_child=_after_fork)


def waiting() -> int:
    """How many storages are offered and not fetched yet."""
    server: Any = _server
    return 0 if server is None else len(server.offers)
