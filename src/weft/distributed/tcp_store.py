"""TCPStore: a store that one process serves and others reach by sockets."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

from weft.distributed.errors import DistNetworkError, DistStoreError
from weft.distributed.stores import HashStore, Store, default_timeout

_LENGTH = struct.Struct("<Q")
_WORKERS = "init/"  # counts those that connected; keys of programs begin with "/"
_ERRORS = {each.__name__: each for each in (DistStoreError, ValueError, RuntimeError)}
_SENSELESS = (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
_PAUSE = 0.01  # seconds between attempts to connect


# Messages: JSON behind its length, bytes in it as {"bytes": text}. Nothing in it is executed. -----


def _send(peer: socket.socket, message: Any) -> None:
    text = json.dumps(message, default=lambda value: {"bytes": value.decode("latin-1")}).encode()
    peer.sendall(_LENGTH.pack(len(text)) + text)


def _receive(peer: socket.socket) -> Any:
    (size,) = _LENGTH.unpack(_exactly(peer, _LENGTH.size))
    return json.loads(
        _exactly(peer, size), object_hook=lambda found: found["bytes"].encode("latin-1")
    )


def _exactly(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = peer.recv(min(size - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the other side closed the connection")
        data += part
    return bytes(data)


# The server ---------------------------------------------------------------------------------------


def _serve(listener: socket.socket, store: HashStore, peers: set[socket.socket]) -> None:
    with contextlib.suppress(OSError):  # the listener is closed
        while True:
            peer, _ = listener.accept()
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peers.add(peer)
            threading.Thread(target=_answer, args=(peer, store, peers), daemon=True).start()


def _answer(peer: socket.socket, store: HashStore, peers: set[socket.socket]) -> None:
    """Does what one client asks for, until it goes or says what is no request."""
    with contextlib.suppress(*_SENSELESS), peer:
        while True:
            operation, args, seconds = _receive(peer)
            try:
                result = store._do(operation, *args, limit=timedelta(seconds=seconds))
                _send(peer, [None, result])
            except (DistStoreError, ValueError) as error:
                _send(peer, [type(error).__name__, str(error)])
    peers.discard(peer)


def _close(listener: socket.socket, peers: set[socket.socket], owner: int) -> None:
    if owner != os.getpid():  # a fork: the connections are its parent's
        return
    for each in (listener, *peers):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


class _Server:
    """Listens at a port until nobody holds it any more."""

    def __init__(self, port: int, descriptor: int | None) -> None:
        if descriptor is not None:
            listener = socket.socket(fileno=descriptor)
        else:
            try:
                listener = socket.create_server(("", port))
            except (OSError, OverflowError) as error:
                raise DistNetworkError(
                    f"TCPStore: expected a port that is free, got {port}: {error}"
                ) from error
        self.port: int = listener.getsockname()[1]
        peers: set[socket.socket] = set()
        threading.Thread(target=_serve, args=(listener, HashStore(), peers), daemon=True).start()
        weakref.finalize(self, _close, listener, peers, os.getpid())


_shared: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()


def _server(port: int, descriptor: int | None, multi_tenant: bool) -> _Server:
    if multi_tenant and port in _shared:
        return _shared[port]
    server = _Server(port, descriptor)
    if multi_tenant:
        _shared[server.port] = server
    return server


# The store ----------------------------------------------------------------------------------------


class TCPStore(Store):
    """A store that the process with is_master=True serves at a port; 0 finds a free one.

    The others connect to it within `timeout` (DistNetworkError), which is also how long operations
    wait for keys. With world_size and wait_for_workers the master waits until that many stores are
    there (DistStoreError). multi_tenant: masters of one process may share a port.
    master_listen_fd: a socket that listens already. use_libuv has no effect.

    Whoever reaches the port can read and write the store, as in PyTorch: it is for networks in
    which all programs are trusted.

    >>> import weft.distributed as dist
    >>> master = dist.TCPStore("localhost", 0, is_master=True)
    >>> worker = dist.TCPStore("localhost", master.port)
    >>> worker.set("loss", "0.5")
    >>> master.get("loss")
    b'0.5'
    """

    libuvBackend = True

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = default_timeout,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self.set_timeout(timeout)
        self._server = _server(port, master_listen_fd, multi_tenant) if is_master else None
        self.host = host_name
        self.port = port if self._server is None else self._server.port
        self._lock = threading.Lock()
        self._peer = self._connected()
        weakref.finalize(self, self._peer.close)
        if world_size is not None and world_size > 0:
            self._raw("add", _WORKERS, 1)
            if is_master and wait_for_workers:
                self._wait_for_workers(world_size)

    def _connected(self) -> socket.socket:
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            left = max(end - time.monotonic(), _PAUSE)
            try:
                peer = socket.create_connection((self.host, self.port), left)
            except OSError as error:
                if time.monotonic() + _PAUSE > end:
                    raise DistNetworkError(
                        f"TCPStore: expected a server at {self.host}:{self.port} within "
                        f"{self._timeout.total_seconds()} s, got {error}"
                    ) from error
                time.sleep(_PAUSE)
            else:
                peer.settimeout(None)  # the server ends what takes too long
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return peer

    def _wait_for_workers(self, world_size: int) -> None:
        end = time.monotonic() + self._timeout.total_seconds()
        while (joined := self._raw("add", _WORKERS, 0)) < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"TCPStore: expected {world_size} workers within "
                    f"{self._timeout.total_seconds()} s, got {joined}"
                )
            time.sleep(_PAUSE)

    def _raw(self, operation: str, *args: Any, limit: timedelta | None = None) -> Any:
        """An operation on the server's keys."""
        limit = self._timeout if limit is None else limit
        try:
            with self._lock:
                _send(self._peer, [operation, args, limit.total_seconds()])
                error, result = _receive(self._peer)
        except OSError as failure:
            raise DistNetworkError(
                f"Store.{operation}: expected an answer of {self.host}:{self.port}, got {failure}"
            ) from failure
        if error is not None:
            raise _ERRORS.get(error, RuntimeError)(result)
        return result

    def _do(self, operation: str, *args: Any, limit: timedelta | None = None) -> Any:
        if args:
            first = args[0]
            whole = [f"/{key}" for key in first] if isinstance(first, list) else f"/{first}"
            args = (whole, *args[1:])
        return self._raw(operation, *args, limit=limit)

    def list_keys(self) -> list[str]:
        """All keys that were set."""
        return [key[1:] for key in self._raw("list_keys") if key.startswith("/")]

    def clone(self) -> TCPStore:
        """Another connection to the same server."""
        other = TCPStore(self.host, self.port, timeout=self._timeout)
        other._server = self._server
        return other

    def __repr__(self) -> str:
        return f"TCPStore({self.host}:{self.port}, is_master={self._server is not None})"
