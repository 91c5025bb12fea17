"""Storages in shared memory, inside one process: moving, views, names, errors."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.multiprocessing as mp
from weft import nn

STRATEGIES = sorted(mp.get_all_sharing_strategies())


@pytest.fixture(params=STRATEGIES)
def strategy(request: Any) -> Iterator[str]:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def test_strategies() -> None:
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(ValueError, match="expected one of file_descriptor, file_system, got 'x'"):
        mp.set_sharing_strategy("x")


def test_moves_and_views_follow(strategy: str) -> None:
    x = weft.arange(24.0).reshape(4, 6)
    view, typed, storage = x[1:3, ::2].t(), x.view(weft.int32), x.untyped_storage()
    before, values = x.data_ptr(), view.tolist()
    assert not x.is_shared() and not storage.is_shared()
    assert x.share_memory_() is x
    assert x.data_ptr() != before
    assert x.is_shared() and view.is_shared() and typed.is_shared() and storage.is_shared()
    assert view.tolist() == values
    x[1, 0] = 50
    assert view[0, 0].item() == 50 and typed[1, 0].view(weft.float32).item() == 50
    assert storage.data_ptr() == x.data_ptr() and x.untyped_storage() is storage
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address


def test_resize_is_refused(strategy: str) -> None:
    x = weft.zeros(4).share_memory_()
    for call in (lambda: x.resize_(100), lambda: x.untyped_storage().resize_(2)):
        with pytest.raises(RuntimeError, match="16 bytes shared by processes, which cannot be"):
            call()
    assert not x.untyped_storage().resizable()
    assert x.resize_(2).tolist() == [0, 0]  # inside the storage


DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"


def test_every_dtype(strategy: str) -> None:
    for dtype in DTYPES.split():
        x = weft.tensor([0, 1, 1]).to(getattr(weft, dtype))
        assert x.share_memory_().tolist() == [0, 1, 1], dtype


def test_without_elements(strategy: str) -> None:
    x = weft.empty(0, 3).share_memory_()
    assert x.is_shared() and x.shape == (0, 3)
    assert weft.UntypedStorage._new_shared(0).is_shared()


def test_memory_of_an_array_moves_away(strategy: str) -> None:
    array = np.ones(3, dtype=np.float32)
    x = weft.from_numpy(array).share_memory_()
    array[0] = 9
    assert x.tolist() == [1, 1, 1]


def test_memory_whose_address_is_held_stays(strategy: str) -> None:
    x = weft.zeros(3)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="share_memory_: expected memory that only tensors use"):
        x.share_memory_()
    del array
    shared = x.share_memory_().numpy()
    shared[0] = 1
    assert x.tolist() == [1, 0, 0]


def test_read_only_stays_read_only(strategy: str) -> None:
    array = np.ones(3)
    array.flags.writeable = False
    x = weft.from_numpy(array).share_memory_()
    with pytest.raises(RuntimeError, match="read-only"):
        x += 1


def test_gradients_and_saved_tensors_survive(strategy: str) -> None:
    x = weft.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.share_memory_()
    y.backward()
    assert x.grad.tolist() == [2, 2, 2] and not x.grad.is_shared()
    x.grad.share_memory_()
    assert x.grad.is_shared()


def test_module(strategy: str) -> None:
    module = nn.BatchNorm1d(3)
    module(weft.randn(4, 3)).sum().backward()
    weight = module.weight
    assert module.share_memory() is module and module.weight is weight
    tensors = [*module.parameters(), *module.buffers(), module.weight.grad]
    assert all(t.is_shared() for t in tensors)


def test_typed_storage_and_new_shared(strategy: str) -> None:
    x = weft.ones(3)
    assert x.storage().share_memory_().is_shared() and x.is_shared()
    storage = weft.UntypedStorage._new_shared(10)
    assert storage.is_shared() and bytes(storage) == bytes(10)


def test_descriptor_of_a_storage() -> None:
    storage = weft.arange(4, dtype=weft.uint8).untyped_storage()
    fd, size = storage._share_fd_cpu_()
    assert size == 4 and os.pread(fd, 4, 0) == bytes(range(4))
    again = weft.UntypedStorage._new_shared_fd_cpu(fd, size)
    assert again is storage
    assert os.pread(fd, 4, 0) == bytes(range(4))  # the caller's descriptor is still open
    with pytest.raises(RuntimeError, match="_share_filename_cpu_: expected a storage of"):
        storage._share_filename_cpu_()


_OTHER_PROCESS = """
import sys, weft
storage = weft.UntypedStorage._new_shared_filename_cpu(
    sys.argv[1].encode(), sys.argv[2].encode(), int(sys.argv[3]))
print(bytes(storage))
storage[0] = 77
"""


def test_name_opens_in_an_unrelated_process() -> None:
    storage = weft.arange(4, dtype=weft.uint8).untyped_storage()
    manager, name, size = storage._share_filename_cpu_()
    assert weft.UntypedStorage._new_shared_filename_cpu(manager, name, size) is storage
    command = [sys.executable, "-c", _OTHER_PROCESS, manager.decode(), name.decode(), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == str(bytes(range(4)))
    assert storage[0] == 77
    with pytest.raises(RuntimeError, match="_share_fd_cpu_: expected a storage with a descriptor"):
        storage._share_fd_cpu_()


def test_name_outlives_the_storage_by_a_ticket() -> None:
    storage = weft.full((3,), 5, dtype=weft.uint8).untyped_storage()
    manager, name, size = storage._share_filename_cpu_()
    storage._shared_incref()
    del storage
    again = weft.UntypedStorage._new_shared_filename_cpu(manager, name, size)
    assert bytes(again) == b"\5\5\5"
    del again
    with pytest.raises(RuntimeError, match=r"which all have freed|has ended or let go"):
        weft.UntypedStorage._new_shared_filename_cpu(manager, name, size)


def test_descriptor_of_another_file_is_refused() -> None:
    """What a sender's descriptor means once it is closed and something else is opened."""
    name = b"/weft_00000000000000010000000000000002_0"
    ends = os.pipe()
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 20)
        for descriptor in (ends[0], file.fileno()):
            manager = f"/proc/{os.getpid()}/fd/{descriptor}".encode()
            with pytest.raises(RuntimeError, match="memory of its tensor, got another file; keep"):
                weft.UntypedStorage._new_shared_filename_cpu(manager, name, 8)
    for end in ends:
        os.close(end)


def test_freed_with_the_last_tensor(strategy: str) -> None:
    before = weft._C._shared_count()
    tensors = [weft.zeros(10).share_memory_() for _ in range(5)]
    views = [t[2:] for t in tensors]
    assert weft._C._shared_count() == before + 5
    del tensors
    assert weft._C._shared_count() == before + 5
    del views
    assert weft._C._shared_count() == before


def test_nothing_has_a_name_in_a_file_system(strategy: str) -> None:
    before = set(os.listdir("/dev/shm"))
    x = weft.zeros(1000).share_memory_()
    assert not {n for n in set(os.listdir("/dev/shm")) - before if "weft" in n}
    assert x.is_shared()


# ---- limits, each in a process of its own ----


def run(program: str, **options: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.strip()


def test_descriptors_run_short() -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    text = run(
        "import weft\n"
        "kept = [weft.full((2,), i).share_memory_() for i in range(3000)]\n"
        "assert all(t.tolist() == [i, i] for i, t in enumerate(kept))\n"
        "print([weft._C._shared_place(kept[i])[4] for i in (0, -1)])",
        preexec_fn=few,
    )
    assert text == "[False, True]"


_FULL = """
import os
os.environ["WEFT_SHARED_MEMORY_DIR"] = {folder!r}
import weft, weft.multiprocessing
weft.multiprocessing.set_sharing_strategy({strategy!r})
for make in (lambda n: weft.ones(n, dtype=weft.uint8).share_memory_(),
             weft.UntypedStorage._new_shared):
    kept = [make(1 << 20)]
    try:
        while True:
            kept.append(make(1 << 20))
    except RuntimeError as error:
        assert len(kept) >= 2, len(kept)
        print(error)
    del kept
    make(1 << 20)
print(os.listdir({folder!r}))
"""


# Mounts that nobody else sees; others than root may make them where they may be root for themselves.
_OWN_MOUNTS = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]


@functools.cache
def _may_mount() -> bool:
    mount = [*_OWN_MOUNTS, "mount", "-t", "tmpfs", "none", "/dev/shm"]
    try:
        return subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


may_mount = pytest.mark.skipif(not _may_mount(), reason="may not mount, not even for itself")


def run_mounted(folder: str, size: str, program: str) -> str:
    """The output of a program that sees a small file system at a folder."""
    inside = f'mount -t tmpfs -o size={size} none {folder} && exec "$0" -c "$1"'
    command = [*_OWN_MOUNTS, "sh", "-c", inside, sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.strip()


@may_mount
def test_full_file_system_raises(tmp_path: Any, strategy: str) -> None:
    program = _FULL.format(strategy=strategy, folder=str(tmp_path))
    *lines, left = run_mounted(str(tmp_path), "4m", program).splitlines()
    assert len(lines) == 2 and left == "[]"
    for line, op in zip(lines, ("share_memory_", "_new_shared")):
        assert line.startswith(f"{op}: expected room for 1048576 bytes of shared memory, got ")
        assert f"free of 4194304 in {tmp_path}; enlarge that file system" in line


_SMALL_SHM = """
import os, weft, weft.multiprocessing as mp
room = os.statvfs("/dev/shm")
assert room.f_blocks * room.f_frsize <= 1 << 20, room
kept = [weft.ones(1 << 20).share_memory_() for _ in range(4)]
queue, values = mp.SimpleQueue(), mp.Array("d", 1 << 18)
queue.put(kept[0])
values[-1] = 1.0
assert queue.get().sum() == 1 << 20 and values[-1] == 1.0
print(os.listdir("/dev/shm"))
"""


@may_mount
def test_a_small_dev_shm_does_not_matter() -> None:
    """As in a container: PyTorch ends by SIGBUS there."""
    assert run_mounted("/dev/shm", "1m", _SMALL_SHM) == "[]"


def test_limit_of_file_sizes_raises(strategy: str) -> None:
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    text = run(
        "import weft\n"
        f"weft.multiprocessing.set_sharing_strategy({strategy!r})\n"
        "try: weft.ones(1 << 20).share_memory_()\n"
        "except RuntimeError as error: print(error)\n"
        # Arenas are full sooner: then the next one is begun.
        "for _ in range(20): weft.ones(1 << 16).share_memory_()",
        preexec_fn=small,
    )
    assert "expected files of 4194304 bytes to be allowed, got at most 1048576 (ulimit -f)" in text


def test_more_than_the_machine_has_raises(strategy: str) -> None:
    with pytest.raises(weft.OutOfMemoryError, match="what the machine has left"):
        weft.UntypedStorage._new_shared(1 << 50)


def test_limit_of_address_space_raises() -> None:
    text = run(
        "import resource, weft, weft.multiprocessing\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)\n"
        "try: kept = [weft.UntypedStorage._new_shared(8 << 20) for _ in range(20)]\n"
        "except RuntimeError as error: print(error)"
    )
    assert "expected to map 8388608 bytes of shared memory" in text and "ulimit -v" in text
