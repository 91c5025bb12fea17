"""Stores of weft.distributed: what they hold and wait for, in threads and in processes."""

from __future__ import annotations

import os
import pathlib
import pickle
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libraries import both

import weft
import weft.distributed

SHORT = timedelta(milliseconds=30)
Make = Callable[[Any, Any], Any]
MAKERS: dict[str, Make] = {
    "hash": lambda dist, path: dist.HashStore(),
    "file": lambda dist, path: dist.FileStore(str(path / "store"), 1),
    "tcp": lambda dist, path: dist.TCPStore("localhost", 0, 1, True, timedelta(seconds=30)),
    "prefix": lambda dist, path: dist.PrefixStore("part", dist.HashStore()),
    "prefix_of_tcp": lambda dist, path: dist.PrefixStore(
        "a", dist.PrefixStore("b", dist.TCPStore("localhost", 0, is_master=True))
    ),
}
stores = pytest.mark.parametrize("kind", MAKERS)


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    """What it returns, or the class of its error."""
    try:
        return call(*args)
    except Exception as error:
        return type(error).__name__


SCRIPT: list[tuple[Any, ...]] = [
    ("set", "a", "1"), ("get", "a"), ("set", "b", b"\xff\x00"), ("get", "b"), ("get", "missing"),
    ("add", "n", 5), ("add", "n", -2), ("get", "n"), ("add", "a", 3),
    ("check", ["a", "b"]), ("check", ["a", "missing"]), ("check", []),
    ("wait", ["a", "n"]), ("wait", ["a", "missing"]), ("wait", ["missing"], SHORT / 3),
    ("compare_set", "c", "x", "y"), ("check", ["c"]), ("compare_set", "c", "", "y"),
    ("compare_set", "c", "x", "z"), ("compare_set", "c", "y", "z"), ("get", "c"),
    ("delete_key", "a"), ("check", ["a"]), ("append", "l", "ab"), ("append", "l", "cd"), ("get", "l"),
    ("multi_set", ["m", "ü"], ["1", "ü"]), ("multi_get", ["m", "ü"]), ("multi_get", ["m", "missing"]),
    ("num_keys",), ("set", "", "x"), ("get", ""), ("set", "e", ""), ("get", "e"),
    ("set", "i", 3), ("get", 3), ("wait", "a"), ("add", "n", 1.5),
    ("has_extended_api",), ("barrier", "g", 1),
]  # fmt: skip
QUEUES: list[tuple[Any, ...]] = [
    ("queue_push", "q", "v"), ("queue_push", "q", b"w"), ("queue_len", "q"), ("queue_pop", "q"),
    ("queue_pop", "q", False), ("queue_pop", "q", False), ("queue_pop", "q"), ("queue_len", "none"),
]  # fmt: skip


@pytest.mark.parity
@stores
def test_as_pytorch_does(kind: str, tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    script = SCRIPT if kind == "file" else SCRIPT + QUEUES
    found = []
    for lib in (weft, torch):
        folder = tmp_path / lib.__name__
        folder.mkdir()
        store = MAKERS[kind](lib.distributed, folder)
        store.set_timeout(SHORT)
        assert store.timeout == SHORT
        found.append([outcome(getattr(store, name), *args) for name, *args in script])
    for call, one, other in zip(script, *found):
        if (kind, other) != ("file", "RuntimeError"):  # PyTorch's error of that class alone
            assert one == other, call


@both
@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "file"])
def test_keys_and_clones(lib: Any, kind: str, tmp_path: Any) -> None:
    store = MAKERS[kind](lib.distributed, tmp_path)
    store.multi_set(["a", "b"], ["1", "2"])
    other = store.clone()
    assert type(other) is type(store)
    other.set("c", "3")
    assert sorted(store.list_keys()) == ["a", "b", "c"] and store.get("c") == b"3"


@both
def test_a_part_of_a_store(lib: Any) -> None:
    dist = lib.distributed
    whole = dist.HashStore()
    middle = dist.PrefixStore("b", whole)
    part = dist.PrefixStore("a", middle)
    part.set("x", "1")
    assert whole.list_keys() == ["b/a/x"] and part.list_keys() == ["x"]
    assert type(part.underlying_store) is dist.PrefixStore
    assert type(part._underlying_non_prefix_store) is dist.HashStore
    part.set_timeout(SHORT)
    assert whole.timeout == SHORT


@both
def test_a_store_of_the_program(lib: Any) -> None:
    class Own(lib.distributed.Store):
        def __init__(self) -> None:
            super().__init__()
            self.held: dict[str, Any] = {}

        def set(self, key: str, value: Any) -> None:
            self.held[key] = value

        def get(self, key: str) -> Any:
            return self.held[key]

    part = lib.distributed.PrefixStore("p", own := Own())
    part.set("key", "value")
    assert part.get("key") in ("value", b"value") and list(own.held) == ["p/key"]
    with pytest.raises(RuntimeError):
        lib.distributed.Store().set("a", "b")


@stores
def test_what_another_thread_sets_is_waited_for(kind: str, tmp_path: Any) -> None:
    store = MAKERS[kind](weft.distributed, tmp_path)
    other = store.clone()
    thread = threading.Thread(target=lambda: other.set("late", other.get("early")))
    thread.start()
    store.set("early", "yes")
    assert store.get("late") == b"yes"
    thread.join()
    assert store.add("together", 1) == 1 and other.add("together", 1) == 2


@stores
def test_barriers_may_be_used_again(kind: str, tmp_path: Any) -> None:
    store = MAKERS[kind](weft.distributed, tmp_path)
    order: list[int] = []

    def run(own: Any) -> None:
        for turn in range(3):
            order.append(turn)
            own.barrier("all", 3)

    threads = [threading.Thread(target=run, args=(store.clone(),)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert order == [0, 0, 0, 1, 1, 1, 2, 2, 2]


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "late": (
        lambda s: s.wait(["a", "b"], SHORT), weft.distributed.DistStoreError,
        r"Store.wait: expected every key to have a value within 0.03 s, got none for '/?a', '/?b'",
    ),
    "number": (
        lambda s: (s.set("a", "x"), s.add("a", 1)), ValueError,
        "Store.add: expected a number at '/?a', got b'x'",
    ),
    "amount": (lambda s: s.add("a", 1.5), TypeError, "Store.add: expected an int, got float"),
    "value": (lambda s: s.set("a", 1), TypeError, "Store: expected a str or bytes as value, got int"),
    "key": (lambda s: s.get(1), TypeError, "Store: expected a str as key, got int"),
    "keys": (lambda s: s.wait("a"), TypeError, "Store: expected a list of keys, got a str"),
    "limit": (lambda s: s.set_timeout(3), TypeError, "Store: expected a timedelta, got int"),
    "values": (
        lambda s: s.multi_set(["a"], []), weft.distributed.DistStoreError,
        "Store.multi_set: expected a value for each of 1 keys, got 0",
    ),
    "pickle": (pickle.dumps, TypeError, "pickle: expected an object without memory or sockets"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_why(name: str, kind: str, tmp_path: Any) -> None:
    call, error, text = ERRORS[name]
    store = MAKERS[kind](weft.distributed, tmp_path)
    with pytest.raises(error, match=text):
        call(store)
    store.set("after", "1")
    assert store.get("after") == b"1"


_SIZES = st.integers(-20, 40)
_RECORDS = st.tuples(_SIZES, _SIZES, st.binary(max_size=20)).map(
    lambda drawn: struct.pack("<iq", *drawn[:2]) + drawn[2]
)


@given(st.one_of(st.binary(max_size=60), st.lists(_RECORDS, max_size=4).map(b"".join)))
def test_a_file_that_no_store_wrote(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "store")
        path.write_bytes(content)
        try:
            store = weft.distributed.FileStore(str(path))
        except weft.distributed.DistStoreError as error:
            assert str(path) in str(error) and path.read_bytes() == content
        else:
            store.set("key", "value")
            assert weft.distributed.FileStore(str(path)).get("key") == b"value"


def test_a_file_has_no_queues(tmp_path: Any) -> None:
    store = MAKERS["file"](weft.distributed, tmp_path)
    with pytest.raises(NotImplementedError, match=r"Store\.queue_push: expected a store that has"):
        store.queue_push("a", "b")


@both
def test_a_file_goes_with_the_last_of_its_stores(lib: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "store")
    one = lib.distributed.FileStore(path, 2)
    other = lib.distributed.FileStore(path, 2)
    one.set("a", "1")
    assert one.path == path and other.get("a") == b"1"
    del one
    assert os.path.exists(path)
    del other
    assert not os.path.exists(path)


WORKER = """
import sys
from datetime import timedelta
import weft.distributed as dist
kind, place, rank = sys.argv[1:]
limit = timedelta(seconds=60)
store = dist.FileStore(place, 3) if kind == "file" else dist.TCPStore("localhost", int(place), 3, False, limit)
for i in range(20):
    store.add("sum", 1)
    store.append("text", rank)
store.barrier("end", 3, limit)
print(store.get("sum").decode(), len(store.get("text")), store.compare_set("first", "", rank).decode())
"""


@pytest.mark.parametrize("kind", ["file", "tcp"])
def test_processes(kind: str, tmp_path: Any) -> None:
    dist, limit = weft.distributed, timedelta(seconds=60)
    place = str(tmp_path / "store")
    if kind == "tcp":
        store = dist.TCPStore("localhost", 0, 3, True, limit, wait_for_workers=False)
        place = str(store.port)
    else:
        store = dist.FileStore(place, 3)
    runs = [
        subprocess.Popen([sys.executable, "-c", WORKER, kind, place, rank], stdout=subprocess.PIPE)
        for rank in "12"
    ]
    store.barrier("end", 3, limit)
    said = {run.communicate()[0].decode().strip() for run in runs}
    first = store.get("first").decode()
    assert said == {f"40 40 {first}"} and first in "12"


NETWORK: dict[str, tuple[Callable[[Any, int], Any], str]] = {
    "no_server": (lambda d, port: d.TCPStore("localhost", 1, timeout=SHORT), "DistNetworkError"),
    "port_in_use": (lambda d, port: d.TCPStore("localhost", port, 1, True), "DistNetworkError"),
    "workers": (
        lambda d, port: d.TCPStore("localhost", 0, 2, True, timedelta(seconds=0.2)),
        "DistStoreError",
    ),
}


@both
@pytest.mark.parametrize("name", NETWORK)
def test_errors_of_connections(lib: Any, name: str) -> None:
    master = lib.distributed.TCPStore("localhost", 0, 1, True)
    call, error = NETWORK[name]
    with pytest.raises(getattr(lib.distributed, error)):
        call(lib.distributed, master.port)


def test_the_server_goes_with_its_store() -> None:
    dist = weft.distributed
    master = dist.TCPStore("localhost", 0, is_master=True)
    worker = dist.TCPStore("localhost", master.port)
    again = dist.TCPStore("localhost", 0, is_master=True, multi_tenant=True)
    shared = dist.TCPStore("localhost", again.port, is_master=True, multi_tenant=True)
    again.set("a", "1")
    del again
    assert shared.get("a") == b"1"
    del master
    with pytest.raises(dist.DistNetworkError, match="expected an answer of localhost"):
        worker.set("a", "1")


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<Q", 4) + b"[[[[",
        struct.pack("<Q", 13) + b'["set", [], 1]'[:13],
        struct.pack("<Q", 15) + b'["none", [], 1]',
        struct.pack("<Q", 16) + b'["get", [{}], 1]',
        struct.pack("<Q", 22) + b'["wait", [[1, {}]], 0]',
        struct.pack("<Q", 4) + b"null",
    ],
)
def test_senseless_messages_end_their_connection_only(data: bytes) -> None:
    master = weft.distributed.TCPStore("localhost", 0, is_master=True)
    with socket.create_connection(("localhost", master.port)) as peer:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(1000):
            pass
    master.set("a", "1")
    assert master.get("a") == b"1"


@both
@pytest.mark.parametrize("kind", MAKERS)
def test_groups_of_one_take_any_store(lib: Any, kind: str, tmp_path: Any) -> None:
    dist = lib.distributed
    store = MAKERS[kind](dist, tmp_path)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        x = lib.ones(2)
        dist.all_reduce(x)
        found = dist.distributed_c10d._get_default_store()
        found.set("after", "1")
        assert x.tolist() == [1, 1] and found.get("after") == b"1"
    finally:
        dist.destroy_process_group()
