"""DataLoader with worker processes: order, seeds, transport, errors, and how everything ends."""

from __future__ import annotations

import contextlib
import doctest
import errno
import gc
import importlib
import multiprocessing
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
    buffer_pool,
    default_collate,
    get_worker_info,
)

# Of fork, since Python 3.12.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
LIMIT = 60  # seconds for one test; none takes more than a few on an idle machine


@pytest.fixture(autouse=True)
def hard_limit() -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"a test of data loading took more than {LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    multiprocessing.set_start_method("fork", force=True)  # the data sets here cannot be pickled
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Items(Dataset[Any]):
    """Whatever a list holds; functions are called, in the worker."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, index: Any) -> Any:
        item = self.items[index]
        return item() if callable(item) else item

    def __len__(self) -> int:
        return len(self.items)


class Stream(IterableDataset[Any]):
    """Worker i gives lengths[i] samples."""

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        assert info is not None
        return ((info.id, i) for i in range(self.lengths[info.id]))


def load(items: Any, num_workers: int = 1, **options: Any) -> list[Any]:
    """One epoch; batches are lists unless collate_fn says otherwise."""
    options.setdefault("collate_fn", list)
    return list(DataLoader(Items(items), num_workers=num_workers, **options))


# ---- the same batches as without workers, and as PyTorch's ----


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"shuffle": True}], ids=str)
def test_workers_change_nothing(workers: int, options: dict[str, Any]) -> None:
    epochs = []
    for count in (0, workers):
        weft.manual_seed(3)
        loader = DataLoader(range(23), batch_size=4, num_workers=count, **options)
        epochs.append([batch.tolist() for _ in range(2) for batch in loader])
        assert len(epochs[-1]) == 2 * len(loader)
    assert epochs[0] == epochs[1]


def random_numbers(lib: Any, options: dict[str, Any]) -> list[Any]:
    data = lib.utils.data

    class Drawn(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> tuple[Any, ...]:
            info = data.get_worker_info()
            numbers = random.random(), float(np.random.rand()), lib.rand(1).item()
            seeds = info.seed, lib.initial_seed(), info.id, info.num_workers
            return index, lib.get_num_threads(), *seeds, *numbers

    options = dict(options)
    lib.manual_seed(7)
    if "generator" in options:
        options["generator"] = lib.Generator().manual_seed(3)
    if "weights" in options:
        options["sampler"] = data.WeightedRandomSampler(options.pop("weights"), 9)
    loader = data.DataLoader(Drawn(), num_workers=2, collate_fn=list, **options)
    return [batch for _ in range(2) for batch in loader] + [lib.rand(1).item()]


@pytest.mark.parity
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"generator": 3},
        {"shuffle": True},
        {"shuffle": True, "generator": 3, "batch_size": 4},
        {"shuffle": True, "persistent_workers": True},
        {"weights": [1.0, 2.0, 3.0, 0.0, 1.0, 1.0]},
    ],
    ids=str,
)
def test_order_and_random_numbers_equal_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    assert random_numbers(weft, options) == random_numbers(torch, options)


def test_numpy_is_seeded_when_it_is_imported(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """if True:
        import sys, weft
        from weft.utils.data import DataLoader, Dataset

        class Drawn(Dataset):
            def __len__(self):
                return 2
            def __getitem__(self, index):
                imported = "numpy" in sys.modules
                import numpy as np
                return imported, np.random.rand()

        if __name__ == "__main__":
            if "numpy" in sys.argv:
                import numpy
            weft.manual_seed(1)
            options = {"num_workers": 2, "multiprocessing_context": "fork"}
            print(list(DataLoader(Drawn(), collate_fn=list, **options)))
        """
    )
    said = [
        subprocess.run([sys.executable, program, *more], capture_output=True, text=True, check=True)
        for more in ([], ["numpy"])
    ]
    late, early = (result.stdout for result in said)
    assert "False" in late and "True" in early and late.replace("False", "True") == early


def stream_epochs(lib: Any, lengths: tuple[int, ...], options: dict[str, Any]) -> list[Any]:
    class Same(lib.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[Any]:
            info = lib.utils.data.get_worker_info()
            return ((info.id, i) for i in range(lengths[info.id]))

    loader = lib.utils.data.DataLoader(Same(), num_workers=len(lengths), collate_fn=list, **options)
    return [list(loader), list(loader)]


@pytest.mark.parity
@pytest.mark.parametrize("lengths", [(3, 7), (7, 3), (0, 4), (4, 0, 9)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 2},
        {"batch_size": 2, "drop_last": True, "prefetch_factor": 1},
        {"batch_size": None, "prefetch_factor": 3, "persistent_workers": True},
    ],
    ids=str,
)
def test_streams_equal_torch(lengths: tuple[int, ...], options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    assert stream_epochs(weft, lengths, options) == stream_epochs(torch, lengths, options)


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"drop_last": True}, {"seed": 3}])
def test_distributed_sampler_equals_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    for size, replicas in ((5, 2), (1, 5), (12, 4)):
        for rank in range(replicas):
            found = []
            for kind in (DistributedSampler, torch.utils.data.DistributedSampler):
                sampler = kind(range(size), replicas, rank, **options)
                first = list(sampler)
                sampler.set_epoch(2)
                found.append((first, list(sampler), len(sampler)))
            assert found[0] == found[1]


def test_uneven_streams() -> None:
    batches = list(DataLoader(Stream(3, 5), batch_size=2, num_workers=2, collate_fn=list))
    assert batches == [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(0, 2)], [(1, 2), (1, 3)], [(1, 4)]]


class Long(Stream):
    def __len__(self) -> int:
        return 2


def test_streams_that_tell_a_wrong_length() -> None:
    loader = DataLoader(Long(3), num_workers=1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2 .* but 3 samples have been fetched"):
        list(loader)


# ---- workers ----


def test_what_a_worker_knows() -> None:
    assert get_worker_info() is None

    def look() -> Any:
        info = get_worker_info()
        assert info is not None
        return info.id, info.num_workers, info.dataset[2], info.seed == weft.initial_seed(), started

    started = []
    result = load([look, look, 7], 2, worker_init_fn=started.append, batch_sampler=[[0], [1]])
    assert result == [[(0, 2, 7, True, [0])], [(1, 2, 7, True, [1])]]
    assert get_worker_info() is None and started == []


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_other_start_methods(context: str) -> None:
    data = TensorDataset(weft.arange(6.0), weft.arange(6))
    loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context=context)
    assert [[t.tolist() for t in batch] for batch in loader] == [
        [[0.0, 1.0, 2.0, 3.0], [0, 1, 2, 3]],
        [[4.0, 5.0], [4, 5]],
    ]


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_what_cannot_be_pickled_for_a_start_method(context: str) -> None:
    """As everything local under Python 3.14's default: the error says what takes it."""
    loader = DataLoader(Items([1]), collate_fn=lambda batch: batch, num_workers=1,
                        multiprocessing_context=context)  # fmt: skip
    with pytest.raises((AttributeError, pickle.PicklingError)) as caught:
        list(loader)
    notes = getattr(caught.value, "__notes__", [])
    assert sys.version_info < (3, 11) or "multiprocessing_context='fork' takes" in notes[-1]


def test_persistent_workers_stay() -> None:
    loader = DataLoader(range(20), num_workers=2, persistent_workers=True)
    epochs, workers = [], set()
    for _ in range(3):
        iterator: Any = iter(loader)
        workers.add(tuple(process.pid for process in iterator._workers))
        epochs.append([batch.item() for batch in iterator])
    assert epochs == [list(range(20))] * 3 and len(workers) == 1
    for number, _ in enumerate(loader):  # what is still under way is not seen in the next epoch
        if number == 4:
            break
    assert [batch.item() for batch in loader] == list(range(20))


def test_persistent_workers_end_with_their_iterator() -> None:
    iterator: Any = iter(DataLoader(range(20), num_workers=2, persistent_workers=True))
    next(iterator)
    workers = iterator._workers
    gc.disable()
    try:
        del iterator
        for worker in workers:
            worker.join(30)
            assert not worker.is_alive()
    finally:
        gc.enable()


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_workers_are_so_many_batches_ahead(factor: int) -> None:
    loaded = weft.zeros(2, 40, dtype=weft.int64).share_memory_()  # by worker and sample

    class Counted(Dataset[int]):
        def __len__(self) -> int:
            return 40

        def __getitem__(self, index: int) -> int:
            info = get_worker_info()
            assert info is not None
            loaded[info.id, index] += 1
            return index

    def wait_for(count: int) -> None:
        end = time.monotonic() + 40
        while loaded.sum().item() < count:
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(0.2)  # more would come now
        assert loaded.sum().item() == count

    iterator = iter(DataLoader(Counted(), batch_size=2, num_workers=2, prefetch_factor=factor))
    wait_for(2 * 2 * factor)
    next(iterator)
    wait_for(2 * 2 * factor + 2)
    assert sum(1 for _ in iterator) == 19
    assert loaded.sum(0).tolist() == [1] * 40


def test_order_of_arrival() -> None:
    go = multiprocessing.Event()
    late = [(lambda text=text: go.wait(60) and text) for text in ("slow", "c")]
    items: list[Any] = [late[0], "a", "b", late[1], "d"]
    ready = []
    options: dict[str, Any] = {"num_workers": 2, "batch_size": None, "collate_fn": str}
    for item in DataLoader(Items(items), in_order=False, **options):
        ready.append(item)
        go.set()  # the slow one comes when another has come
        time.sleep(0.3)  # all answers are there: two of them are read at once
    ordered = load(items, 2, batch_size=None, collate_fn=str)
    assert ordered == ["slow", "a", "b", "c", "d"]
    assert sorted(ready) == sorted(ordered) and ready[0] != "slow"


# ---- transport ----

Point = namedtuple("Point", "x y")
BIG = 20_000  # floats: more than goes through the socket

BATCHES: dict[str, Any] = {
    "nothing": None,
    "plain": {"a": [1, 2.5, "text", b"bytes", None, (True, 1j)], "p": Point(1, "y")},
    "tensor": weft.arange(6.0).view(2, 3),
    "no tensors": [],
    "empty": [weft.empty(0), weft.empty(3, 0, dtype=weft.int64)],
    "empty beside a big one": [weft.empty(0, 2), weft.arange(BIG), weft.empty(0)],
    "scalar": {"s": weft.tensor(3, dtype=weft.int8)},
    "half": (weft.arange(5).to(weft.bfloat16), weft.arange(5).to(weft.float16)),
    "complex": weft.tensor([1 + 2j, 3j]),
    "strided": weft.arange(12).view(3, 4)[:, ::2],
    "backwards": weft.arange(7)[::-1],
    "broadcast": weft.arange(3).expand(4, 3),
    "big": Point(weft.arange(BIG), weft.ones(3)),
    "big permuted": weft.arange(BIG).view(100, 200).t(),
    "big strided": weft.arange(3 * BIG).view(-1, 3)[:, 1],
    "long text": "x" * 200_000,
    "long text and tensors": ["y" * 200_000, weft.arange(BIG), weft.ones(2)],
    "many": [weft.full((3,), i) for i in range(2000)],
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, weft.Tensor):
        dense = a.stride() == b.stride() or not a.t().is_contiguous()
        return a.dtype is b.dtype and a.shape == b.shape and bool((a == b).all()) and dense
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.fixture(scope="module")
def arrived() -> dict[str, Any]:
    batches = load(list(BATCHES.values()), 2, batch_size=None, collate_fn=lambda batch: batch)
    return dict(zip(BATCHES, batches))


@pytest.mark.parametrize("name", BATCHES)
def test_batches_arrive_as_they_were(name: str, arrived: dict[str, Any]) -> None:
    assert same(BATCHES[name], arrived[name])


def test_what_arrives_can_be_written_and_kept(tmp_path: Path) -> None:
    for batch in load([weft.zeros(4), weft.zeros(BIG)], batch_size=None, collate_fn=lambda b: b):
        batch += 1
        assert batch.untyped_storage().nbytes() == batch.nbytes  # saving saves no neighbours
        weft.save(batch, tmp_path / "batch.pt")
        assert weft.load(tmp_path / "batch.pt").sum() == batch.numel()


def test_batches_in_shared_memory_say_so() -> None:
    big, small = load([weft.zeros(BIG), weft.zeros(4)], batch_size=None, collate_fn=lambda b: b)
    assert big.is_shared() and big[1:].is_shared() and not big.clone().is_shared()
    assert not small.is_shared()  # it came through the socket
    child = os.fork()
    if child == 0:
        big[7] = 3
        os._exit(0)
    os.waitpid(child, 0)
    assert big[7].item() == 3
    with pytest.raises(RuntimeError, match="shared by processes, which cannot be resized"):
        big.untyped_storage().resize_(4)


def test_a_batch_goes_on_through_a_queue() -> None:
    """Its buffer stays with the loader; what is sent gets memory of its own that both ends share."""
    import weft.multiprocessing as mp

    queue, back = mp.SimpleQueue(), mp.SimpleQueue()

    def add(count: int) -> None:
        for _ in range(count):
            queue.get().add_(1)
            back.put(None)

    child = mp.get_context("fork").Process(target=add, args=(20,))
    child.start()
    for number, batch in enumerate(DataLoader(images(20), num_workers=1)):
        values = batch[0, :3].tolist()
        queue.put(batch)
        back.get()
        assert values == [number] * 3 and batch[0, -1].item() == number + 1
    child.join()


@pytest.mark.parity
def test_is_shared_equals_torch() -> None:
    torch = pytest.importorskip("torch")

    def states(lib: Any) -> list[Any]:
        class Nested(lib.utils.data.Dataset):  # type: ignore[misc, name-defined]
            def __len__(self) -> int:
                return 4

            def __getitem__(self, index: int) -> Any:
                return {"x": lib.ones(BIG), "more": (index, lib.zeros(2), [0.5])}

        found = []
        for workers in (0, 1):
            for batch in lib.utils.data.DataLoader(Nested(), batch_size=2, num_workers=workers):
                tensors = batch["x"], batch["x"][0], *batch["more"][:2], batch["more"][2][0]
                found.append([tensor.is_shared() for tensor in tensors])
        return found

    assert states(weft) == states(torch) == [[False] * 5] * 2 + [[True] * 5] * 2


def test_leaves_keep_asking_for_gradients() -> None:
    (leaf,) = load([weft.ones(3, requires_grad=True)], batch_size=None, collate_fn=lambda b: b)
    assert leaf.requires_grad and leaf.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("size", [4, BIG])
def test_the_same_tensor_twice_stays_one(size: int, kind: Any) -> None:
    x = weft.ones(size)
    (batch,) = load([kind([x, x])], batch_size=None, collate_fn=lambda b: b)
    assert batch[0] is batch[1]


def images(count: int) -> Dataset[Any]:
    return Items([lambda i=i: weft.full((BIG,), float(i)) for i in range(count)])


def test_memory_of_dropped_batches_is_used_again() -> None:
    loader = DataLoader(images(60), batch_size=2, num_workers=1)
    addresses = set()
    for number, batch in enumerate(loader):
        assert batch[:, -1].tolist() == [2.0 * number, 2 * number + 1]
        addresses.add(batch.data_ptr())
        del batch
    assert len(addresses) <= 6  # two ahead, one here, and some change while sizes are learned


def test_memory_of_many_dropped_batches_is_given_back() -> None:
    pool = buffer_pool.BufferPool(spare=2)
    held = []
    for _ in range(6):
        held.append(pool.empty((BIG,), weft.float32))
        pool.finish(), pool.sent()
    held.clear()
    for buffer in pool._buffers:  # as the parent does when its tensors die
        weft._C._mark_shared_buffer(buffer.bytes, 0)
    assert pool.empty((BIG,), weft.float32) is not None
    told, dropped, _ = pool.finish()
    assert len(pool._buffers) == 3 and len(dropped) == 3 and told[0][0] not in dropped


def test_loading_in_a_thread() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(load(range(9), 2, batch_size=4)))
    thread.start()
    thread.join(40)
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


@pytest.mark.parametrize("most", [buffer_pool.MOST_BUFFERS, 3])
def test_kept_batches_are_not_overwritten(most: int, monkeypatch: Any) -> None:
    # Beyond it batches go through the socket.
    monkeypatch.setattr(buffer_pool, "MOST_BUFFERS", most)
    batches = list(DataLoader(images(40), batch_size=2, num_workers=2))
    views = [batch[1:].view(-1).numpy() for batch in batches]
    saved = [(batch * 1).sum() for batch in batches[::2]]
    del batches
    list(DataLoader(images(20), batch_size=2, num_workers=1))
    assert [view[7] for view in views] == [2.0 * i + 1 for i in range(20)]
    assert len(saved) == 10


def test_a_child_that_looks_at_a_batch_keeps_it() -> None:
    iterator = iter(DataLoader(images(80), batch_size=2, num_workers=1))
    batch = next(iterator)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        os._exit(0 if batch[:, -1].tolist() == [0.0, 1.0] else 1)
    del batch
    assert sum(1 for _ in iterator) == 39
    os.write(writing, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(reading), os.close(writing)


def test_what_a_worker_keeps_is_not_overwritten() -> None:
    kept: list[Any] = []

    def collate(samples: list[Any]) -> Any:
        batch = default_collate(samples)
        kept.append(batch)
        return [batch, all(bool((old == old[0, 0]).all()) for old in kept)]

    data = Items([lambda i=i: weft.full((BIG,), float(i // 2)) for i in range(40)])
    loader = DataLoader(data, batch_size=2, num_workers=1, collate_fn=collate)
    assert all(fine for _, fine in loader)


def test_workers_may_ask_for_shared_memory() -> None:
    """A batch is there already as it is made; moving it would take the buffer away."""

    def collate(samples: list[Any]) -> Any:
        batch = default_collate(samples)
        before = batch.data_ptr()
        return batch.share_memory_(), before == batch.data_ptr()

    data = Items([lambda i=i: weft.full((BIG,), float(i)) for i in range(20)])
    for number, (batch, stayed) in enumerate(DataLoader(data, num_workers=1, collate_fn=collate)):
        assert stayed and batch.is_shared() and batch[0, ::999].tolist() == [number] * 21


def test_descriptors_do_not_pile_up() -> None:
    loader = DataLoader(images(40), batch_size=2, num_workers=1, persistent_workers=True)
    before = None
    for _ in range(3):
        kept = list(loader)
        count = len(os.listdir("/proc/self/fd"))
        assert before is None or count <= before
        before = count
        assert len(kept) == 20


# ---- errors ----


def test_no_memory_for_a_batch() -> None:
    def limit(worker: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))

    told = r"shared memory: expected files of \d+ bytes to be allowed, got at most 16384"
    with pytest.raises(RuntimeError, match=told):
        list(DataLoader(images(2), num_workers=1, worker_init_fn=limit))


def test_no_descriptor_for_a_batch() -> None:
    iterator = iter(DataLoader(images(4), num_workers=1))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(RuntimeError, match=r"got none of the 3 that .* \(ulimit -n\)"):
            next(iterator)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_no_descriptor_for_a_worker() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, before[1]))  # a worker takes three
    told = r"to start 40 workers, got \d+ of them and no more file descriptors than the 60 that ulimit -n allows"
    try:
        with pytest.raises(OSError, match=told) as raised:
            list(DataLoader(range(40), num_workers=40))
        assert raised.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    del raised
    gc.collect()
    assert multiprocessing.active_children() == []
    assert len(os.listdir("/proc/self/fd")) <= used + 2  # the standard library leaves one pipe


class TwoArguments(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a, b)


def raises(error: BaseException) -> Any:
    def item() -> None:
        raise error

    return item


class Unknown(Exception):
    pass


@pytest.mark.parametrize(
    "error, kind",
    [
        (ValueError("odd one"), ValueError),
        (KeyError("odd one"), KeyError),
        (IndexError("odd one"), IndexError),
        (Unknown("odd one"), Unknown),
        (TwoArguments(1, 2), RuntimeError),
        (
            type("Inner", (Exception,), {"__qualname__": "f.<locals>.Inner"})("odd one"),
            RuntimeError,
        ),
        (StopIteration("odd one"), RuntimeError),  # not a silent end of the epoch
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_errors_of_workers_keep_class_and_traceback(error: Any, kind: type) -> None:
    iterator = iter(DataLoader(Items([raises(error), 7]), num_workers=2))
    with pytest.raises(kind) as caught:
        next(iterator)
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\n")
    assert "Original Traceback (most recent call last):" in text and "raise error" in text
    assert next(iterator).tolist() == [7]  # the workers go on


def test_errors_of_starting() -> None:
    def init(worker: int) -> None:
        raise LookupError(f"no file for {worker}")

    with pytest.raises(LookupError, match="no file for 0"):
        load([1], worker_init_fn=init)
    kinds = (AttributeError, pickle.PicklingError)  # the latter from Python 3.14 on
    with pytest.raises(kinds, match=r"Can't (pickle|get) local object"):
        load([lambda: lambda: 1])
    with pytest.raises(RuntimeError, match="expected a leaf tensor"):
        load([weft.ones(2, requires_grad=True) * 2])
    with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
        load([lambda: load([1])])


@pytest.mark.parametrize(
    "end, told",
    [
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"signal: Killed \(SIGKILL\)"),
        (lambda: os.kill(os.getpid(), signal.SIGUSR1), r"\(SIGUSR1\)"),
        (lambda: sys.exit(4), r"exit code 4\nIts last error:\nTraceback[\s\S]*SystemExit: 4"),
        (raises(KeyboardInterrupt()), r"Its last error:\n[\s\S]*KeyboardInterrupt"),
    ],
    ids=["_exit", "SIGKILL", "SIGUSR1", "sys.exit", "KeyboardInterrupt"],
)
def test_a_dead_worker_is_told_of(end: Any, told: str, capfd: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: [\s\S]*" + told,
    ):
        load([end])
    assert capfd.readouterr().err == ""


def test_a_dead_worker_is_told_of_while_others_are_waited_for() -> None:
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="exit code 5"):
        load([lambda: time.sleep(30), lambda: os._exit(5)], 2)
    assert time.monotonic() - start < 25


def test_timeout() -> None:
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        load([lambda: time.sleep(3)], timeout=0.5)


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
    ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
    ({"num_workers": 1, "prefetch_factor": -1}, ValueError, "prefetch_factor option should be"),
    ({"num_workers": 1, "prefetch_factor": 0}, ValueError, "prefetch_factor option should be"),
    ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process"),
    ({"num_workers": 1, "multiprocessing_context": "x"}, ValueError, "a valid start method in"),
    ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "a valid context object or"),
    ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
    ({"batch_sampler": [[1]], "shuffle": True}, ValueError, "batch_sampler option is mutually"),
    ({"sampler": [1], "shuffle": True}, ValueError, "sampler option is mutually exclusive"),
]


@pytest.mark.parametrize("options, kind, text", OPTIONS, ids=lambda value: str(value)[:40])
def test_arguments(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        DataLoader(range(3), **options)


def test_attributes() -> None:
    loader = DataLoader(range(3), num_workers=1)
    assert loader.prefetch_factor == 2
    for name in ("batch_size", "dataset", "sampler", "drop_last"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
            setattr(loader, name, None)
    loader.num_workers = 0
    with pytest.warns(UserWarning, match="no accelerator is found"):
        list(DataLoader(range(3), pin_memory=True))
    with pytest.raises(ValueError, match="expected timeout=0 with num_workers=0"):
        iter(DataLoader(range(3), timeout=1))


# ---- the house ----


@pytest.mark.parametrize(
    "name", ["collate", "dataloader", "dataset", "distributed", "shared", "worker"]
)
def test_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"weft.utils.data.{name}"))
    assert results.attempted and not results.failed


def test_processes_are_imported_late() -> None:
    code = "import sys, weft; assert not {'multiprocessing', 'weft.utils.data'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- how it ends ----


def state(pid: int) -> tuple[str, int]:
    """State and process group; Z has ended and is not yet waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "Z", 0
    return words[0], int(words[2])


def alive(pid: int) -> bool:
    return state(pid)[0] != "Z"


def wait_until_gone(pids: list[int], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while left := [pid for pid in pids if alive(pid)]:
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(0.02)


def group(leader: int) -> list[int]:
    """The processes that were started by a program, and theirs."""
    found = [(int(name), state(int(name))) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid, (told, number) in found if number == leader and told != "Z"]


def pids_of(iterator: Any) -> list[int]:
    return [process.pid for process in iterator._workers]


def test_nothing_is_left() -> None:
    loader = DataLoader(range(100), num_workers=2)
    iterator = iter(loader)
    pids = pids_of(iterator)
    for _ in iterator:
        break
    assert all(map(alive, pids))
    del iterator, _
    gc.collect()
    wait_until_gone(pids)
    iterator = iter(loader)  # and at the end of an epoch, with the iterator still there
    pids = pids_of(iterator)
    list(iterator)
    wait_until_gone(pids)
    assert list(iterator) == []


def test_a_fork_leaves_the_loader_alone() -> None:
    iterator = iter(DataLoader(range(30), num_workers=2))
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except RuntimeError as error:
            if "expected its iterator in the process that made it" in str(error):
                del iterator
                gc.collect()
                os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(iterator)) == 29


SCRIPT = """
import os, sys, time
from weft.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        time.sleep({seconds})
        return index

if __name__ == "__main__":
    iterator = iter(DataLoader(Slow(), num_workers=2{more}))
    next(iterator)
    print(*(process.pid for process in iterator._workers), flush=True)
    {then}
    for _ in iterator:
        pass
"""


def start(
    tmp_path: Path, then: str, seconds: str = "0.01", more: str = ""
) -> tuple[Any, list[int]]:
    """A program that loads, as the leader of a group of processes, and its workers."""
    path = tmp_path / "program.py"
    path.write_text(SCRIPT.format(then=then, seconds=seconds, more=more))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore:This DataLoader will create", str(path)],  # on one core
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    return process, pids


BUSY = "0.01 if index < 2 else 100"  # soon in the middle of a sample


@pytest.mark.parametrize(
    "then, seconds", [("pass", "0.01"), ("pass", BUSY), ("time.sleep(100)", BUSY)]
)
def test_ctrl_c(tmp_path: Path, then: str, seconds: str) -> None:
    process, pids = start(tmp_path, then, seconds)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=40)
    assert process.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1 and said.rstrip().endswith("KeyboardInterrupt"), said
    wait_until_gone(pids)


def interrupted(process: subprocess.Popen[str]) -> str:
    """What a program says that Ctrl-C ends. A finalizer of multiprocessing and a callback of a weak
    reference ignore an interrupt that comes while they run; then another is due."""
    for _ in range(3):
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=40)[1]
    raise AssertionError("the program goes on")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ctrl_c_while_workers_start(tmp_path: Path, method: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        f"""if True:
        import weft
        from weft.utils.data import DataLoader
        if __name__ == "__main__":
            print("here", flush=True)
            while True:
                list(DataLoader(range(9), num_workers=2, multiprocessing_context={method!r}))
        """
    )
    for wait in (0.05, 0.12, 0.3):
        process = subprocess.Popen(
            [sys.executable, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        time.sleep(wait)
        said = interrupted(process)
        assert said.count("Traceback") <= 2 and said.rstrip().endswith("KeyboardInterrupt"), said
        assert "Process-" not in said, said
        assert "ignored" not in said or "<Finalize object" in said or "<function WeakSet" in said, (
            said
        )
        wait_until_gone(group(process.pid))


@pytest.mark.parametrize("more", ["", ", multiprocessing_context='spawn'"], ids=["fork", "spawn"])
@pytest.mark.parametrize("seconds", ["0.01", BUSY], ids=["waiting", "busy"])
def test_workers_notice_a_killed_parent(tmp_path: Path, seconds: str, more: str) -> None:
    process, pids = start(tmp_path, "time.sleep(100)", seconds, more)
    process.kill()
    wait_until_gone(pids)
    assert process.communicate()[1] == ""


def test_the_end_of_a_program_is_quiet(tmp_path: Path) -> None:
    process, pids = start(tmp_path, "sys.exit(0)")
    assert process.communicate(timeout=40) == ("", "") and process.returncode == 0
    wait_until_gone(pids)


@pytest.mark.parametrize("blocked", [set(), {signal.SIGINT}, {signal.SIGINT, signal.SIGTERM}])
def test_starting_workers_leaves_signals_as_they_were(blocked: set[signal.Signals]) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        epoch = iter(DataLoader(weft.arange(4), batch_size=2, num_workers=1))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before | blocked
        assert [batch.tolist() for batch in epoch] == [[0, 1], [2, 3]]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
