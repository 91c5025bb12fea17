"""Files as memory: from_file shared and private, read-only files, checkpoints mapped without copying."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.serialization import safetensors

MiB = 1 << 20
NOBODY = 65534


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user for whom the bits of a file count: they do not for the superuser."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only_file(tmp_path: Path) -> Path:
    """Eight floats that only may be read, where anybody finds them."""
    path = tmp_path / "fixed"
    path.write_bytes(bytes(memoryview(weft.arange(8.0))))
    path.chmod(0o444)
    for folder in path.parents:
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o111)
    return path


# ---- from_file ----


def test_shared_writes_reach_the_file_and_everybody(tmp_path: Path) -> None:
    path = tmp_path / "x"
    x = weft.from_file(path, shared=True, size=4, dtype=weft.int32)
    assert x.tolist() == [0, 0, 0, 0] and path.stat().st_size == 16
    y = weft.from_file(str(path), True, 2, dtype=weft.int32)
    x[0] = 7
    x[1:].fill_(-1)
    assert y.tolist() == [7, -1]
    y.add_(1)
    assert x.tolist() == [8, 0, -1, -1]
    assert path.read_bytes() == bytes(memoryview(x))
    assert x.is_shared() and not x.is_read_only()
    assert x.untyped_storage().filename == str(path)


def test_shared_extends_and_never_shortens(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\x01\x02")
    assert weft.from_file(path, True, 6, dtype=weft.uint8).tolist() == [1, 2, 0, 0, 0, 0]
    assert weft.from_file(path, True, 1, dtype=weft.uint8).tolist() == [1]
    assert path.stat().st_size == 6


def test_private_writes_stay(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(16)))
    for shared in (None, False):
        x = weft.from_file(path, shared, size=16, dtype=weft.uint8)
        x.zero_()
        assert path.read_bytes() == bytes(range(16))
        assert not x.is_read_only() and x.untyped_storage().filename is None
    assert weft.from_file(path, size=2).dtype is weft.get_default_dtype()
    assert weft.from_file(path, size=2, requires_grad=True).requires_grad
    assert weft.from_file(path).shape == (0,)


def test_from_file_errors(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345678")

    def refused(message: str, *args: Any, kind: type = RuntimeError, **kwargs: Any) -> None:
        with pytest.raises(kind, match=message):
            weft.from_file(*args, **kwargs)

    refused("from_file: expected a file of at least 12 bytes, got '.*x' of 8", path, size=3)
    refused("expected a file that can be read, got '.*no': No such file", tmp_path / "no", size=1)
    refused("expected a file that can be written, got '.*': No such", tmp_path / "a/b", True, 1)
    refused("expected a regular file, got", tmp_path, size=1)
    refused("expected at least 0 elements, got -1", path, size=-1)
    refused("expected sizes whose bytes fit in 64 bits", path, size=2**62)
    refused("expected a path without null bytes", f"{path}\0y", size=1)
    refused("expected device 'cpu', got 'meta'", path, size=1, device="meta")
    refused("files cannot be pinned", path, size=1, pin_memory=True)
    refused("'size' of type int, got float", path, size=1.0, kind=TypeError)
    refused("'dtype' of type dtype", path, size=1, dtype="float32", kind=TypeError)
    refused("expected room for", path, True, 2**61 - 1, dtype=weft.float32)
    assert path.read_bytes() == b"12345678"


def test_a_mapped_file_may_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    x = weft.from_file(path, shared=True, size=1000)
    os.unlink(path)
    x.fill_(2)
    part = x[10:20]
    del x
    assert part.tolist() == [2.0] * 10


def test_a_mapped_file_cannot_be_resized(tmp_path: Path) -> None:
    x = weft.from_file(tmp_path / "x", shared=True, size=4)
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="memory of this process"):
        x.resize_(8)


def test_untyped_storage_from_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    shared = weft.UntypedStorage.from_file(path, True, 4)
    shared[1] = 9
    private = weft.UntypedStorage.from_file(path, nbytes=4)
    private[0] = 1
    assert shared.tolist() == [0, 9, 0, 0] and private.tolist() == [1, 9, 0, 0]
    assert shared.is_shared() and shared.filename == str(path) and private.filename is None
    with pytest.raises(RuntimeError, match="at least 0 bytes"):
        weft.UntypedStorage.from_file(path, nbytes=-1)


# ---- read-only files ----

WRITES: dict[str, Callable[[weft.Tensor], Any]] = {
    "fill_": lambda x: x.fill_(1),
    "zero_": lambda x: x.zero_(),
    "add_": lambda x: x.add_(1),
    "mul_ of a view": lambda x: x[2:].view(2, 3).t().mul_(2),
    "copy_": lambda x: x.copy_(weft.ones(8)),
    "index": lambda x: x.__setitem__(0, 5.0),
    "mask": lambda x: x.__setitem__(x > 3, 0.0),
    "out": lambda x: weft.add(weft.ones(8), 1, out=x),
    "random": lambda x: x.normal_(),
    "scatter_": lambda x: x.scatter_(0, weft.tensor([1]), 3.0),
    "relu_": lambda x: weft.relu_(x),
    "foreach": lambda x: weft._foreach_add_([x], 1.0),
    "storage": lambda x: x.untyped_storage().fill_(0),
    "resize": lambda x: x.resize_(20),
    "numpy": lambda x: x.numpy().__setitem__(0, 5.0),
    "bytes": lambda x: x.view(weft.uint8).fill_(0),
    "script": lambda x: _scripted(x),
    "optimizer": lambda x: _step(x),
}


@weft.jit.script
def _scripted(x: weft.Tensor) -> weft.Tensor:
    return x.add_(1).mul_(2)


def _step(x: weft.Tensor) -> None:
    x.grad = weft.ones(8)
    weft.optim.SGD([x.requires_grad_()], lr=0.1).step()


@pytest.mark.parametrize("name", WRITES)
def test_a_read_only_file_refuses_every_write(read_only_file: Path, name: str) -> None:
    with without_rights():
        x = weft.from_file(read_only_file, shared=True, size=8)
    assert x.is_read_only() and x.is_shared()
    with pytest.raises((RuntimeError, ValueError), match=r"read-only|memory of this process"):
        WRITES[name](x)
    assert x.tolist() == list(range(8)) and (x + 1).sum().item() == 36


def test_a_read_only_file_is_not_extended(read_only_file: Path) -> None:
    with without_rights(), pytest.raises(RuntimeError, match=r"of 32, which is read-only"):
        weft.from_file(read_only_file, shared=True, size=9)
    with without_rights():
        private = weft.from_file(read_only_file, size=8).fill_(1)
    assert private.sum().item() == 8 and len(read_only_file.read_bytes()) == 32


# ---- checkpoints ----


def save_pt(path: Path, tensors: dict[str, weft.Tensor]) -> None:
    weft.save(tensors, path)


def save_safetensors(path: Path, tensors: dict[str, weft.Tensor]) -> None:
    safetensors.save_file(tensors, path)


LOADERS: dict[str, tuple[Any, str]] = {
    "pt": (save_pt, "weft.load(path, mmap=True)"),
    "safetensors": (save_safetensors, "weft.serialization.safetensors.load_file(path, mmap=True)"),
}

# A process that maps a checkpoint, reads all of it, and waits to be looked at.
READER = """
import sys, weft, weft.serialization.safetensors
path = sys.argv[1]
loaded = {load}
total = sum(x.double().sum().item() if x.dtype != weft.uint8 else x[::4096].sum().item()
            for x in loaded.values())
print(total, {{x.data_ptr() for x in loaded.values()}}, flush=True)
sys.stdin.readline()
"""


def maps_of(pid: int, path: Path) -> list[dict[str, int]]:
    """The mappings of a file in a process: where they lie, and their counts in KiB."""
    found: list[dict[str, int]] = []
    mine = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first = line.split()[0]
        if not first.endswith(":"):
            mine = line.endswith(str(path))
            if mine:
                begin, end = (int(place, 16) for place in first.split("-"))
                found.append({"begin": begin, "end": end})
        elif mine and line.endswith("kB"):
            found[-1][first[:-1]] = int(line.split()[1])
    return found


@contextmanager
def reader(load: str, path: Path) -> Iterator[tuple[Any, str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", READER.format(load=load), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        yield child, child.stdout.readline()
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("kind", LOADERS)
def test_two_processes_share_the_pages_of_a_checkpoint(tmp_path: Path, kind: str) -> None:
    save, load = LOADERS[kind]
    path = tmp_path / "checkpoint"
    save(path, {"a": weft.arange(8 * MiB).to(weft.int8), "b": weft.ones(2 * MiB)})
    size = path.stat().st_size >> 10  # KiB
    with reader(load, path) as (one, told), reader(load, path) as (two, _):
        pointers = [int(word) for word in told[told.index("{") + 1 : -2].split(",")]
        total = 0
        for child in (one, two):
            (area,) = maps_of(child.pid, path)
            total += area["Pss"]
            assert area["Rss"] > size * 3 // 4  # all of it was read,
            assert area["Private_Dirty"] < 256  # nothing copied,
        assert total < size * 5 // 4  # and both have the same pages
        (area,) = maps_of(one.pid, path)
        assert len(pointers) == 2
        assert all(area["begin"] <= pointer < area["end"] for pointer in pointers)


@pytest.mark.parametrize("kind", LOADERS)
def test_a_mapped_checkpoint_cut_short_is_refused_when_opened(tmp_path: Path, kind: str) -> None:
    save, load = LOADERS[kind]
    path = tmp_path / "checkpoint"
    save(path, {"a": weft.arange(10000.0)})
    whole = path.read_bytes()
    opened = {"path": path, "weft": weft}
    for cut in (0, 1, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(weft.serialization.LoadError, match="expected"):
            eval(load, opened)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        eval(load, opened)


def test_a_shared_mapping_is_seen_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "x"
    x = weft.from_file(path, shared=True, size=3)
    code = "import sys, weft; weft.from_file(sys.argv[1], shared=True, size=3).add_(2)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=120)
    assert x.tolist() == [2.0, 2.0, 2.0]


# ---- as PyTorch ----


@pytest.mark.parity
def test_from_file_as_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for library in (torch, weft):
        path = tmp_path / library.__name__
        x = library.from_file(str(path), shared=True, size=4, dtype=library.int16)
        x[1] = 5
        library.from_file(str(path), True, 7, dtype=library.int16)[6] = 3
        y = library.from_file(str(path), shared=False, size=2, dtype=library.int16).fill_(9)
        shorter = library.from_file(str(path), shared=True, size=1, dtype=library.uint8)
        results.append((x.tolist(), y.tolist(), shorter.tolist(), path.read_bytes()))
        results[-1] += (x.is_shared(), x[1:].is_shared(), x.clone().is_shared())
        with pytest.raises(RuntimeError):
            library.from_file(str(path), size=100)
        with pytest.raises(RuntimeError):
            library.from_file(str(tmp_path / "none"), size=1)
    assert results[0] == results[1]
    assert not y.is_shared()  # PyTorch says that it is: but what is written to it stays here
