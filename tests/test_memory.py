"""Allocators: replaced while the program runs, limits, statistics, what is held."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft import memory


class Counting:
    """Two Python functions over the C library's aligned_alloc that check every block."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.allocated = self.freed = 0
        self.lock = threading.Lock()
        library = ctypes.CDLL(None)
        self.aligned_alloc, self.c_free = library.aligned_alloc, library.free
        self.aligned_alloc.restype = ctypes.c_void_p
        self.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self.c_free.argtypes = [ctypes.c_void_p]
        self.allocator = memory.Allocator(self.alloc, self.free, name="counting")

    def alloc(self, nbytes: int) -> int:
        block = self.aligned_alloc(64, (nbytes + 63) // 64 * 64)
        with self.lock:
            self.live[block] = nbytes
            self.allocated += 1
        return block

    def free(self, block: int, nbytes: int) -> None:
        with self.lock:
            assert self.live.pop(block) == nbytes
            self.freed += 1
        self.c_free(block)


@pytest.fixture
def counting() -> Iterator[Counting]:
    made = Counting()
    yield made
    gc.collect()
    assert memory.get_allocator() == memory.caching_allocator()
    assert made.live == {} and made.allocated == made.freed
    stats = made.allocator.stats()
    assert stats["allocations"] == stats["frees"] == made.allocated
    assert stats["bytes_in_use"] == 0


def test_every_byte_comes_from_the_current_allocator(counting: Counting) -> None:
    built_in = memory.caching_allocator().stats()["allocations"]
    with memory.using(counting.allocator):
        x = weft.ones(1000)
        y = (x + 1).reshape(10, 100) @ weft.ones(100, 3)
        for block in (x, y):
            assert block.data_ptr() in counting.live
        assert x.untyped_storage().info().allocator == "counting"
        assert memory.get_allocator() is counting.allocator
        assert memory.stats()["bytes_in_use"] == sum(counting.live.values())
        assert memory.caching_allocator().stats()["allocations"] == built_in
        assert weft.empty(0).data_ptr() == 0
    assert y.tolist() == [[200.0] * 3] * 10


def test_swap_in_the_middle(counting: Counting) -> None:
    old = weft.ones(5)
    with memory.using(counting.allocator):
        inside = weft.ones(5)
        del old  # goes back to the built-in one: the fixture would notice
        kept = inside * 2
    outside = inside + kept
    assert inside.data_ptr() in counting.live and outside.data_ptr() not in counting.live
    inside.resize_(1000)  # moves to the allocator of now, the old block goes back to its own
    assert inside.untyped_storage().info().allocator == "caching"
    assert list(counting.live) == [kept.data_ptr()]
    array = kept.numpy()
    del kept
    gc.collect()
    assert array.tolist() == [2] * 5 and len(counting.live) == 1


def test_two_at_once() -> None:
    first, second = Counting(), Counting()
    before = memory.set_allocator(first.allocator)
    try:
        x = weft.ones(3)
        assert memory.set_allocator(second.allocator) is first.allocator
        y = weft.ones(3)
    finally:
        memory.set_allocator(before)
    del x
    assert first.live == {} and len(second.live) == 1
    del y
    assert second.live == {}


def test_backward_and_threads(counting: Counting) -> None:
    box: list[weft.Tensor] = []

    def work() -> None:
        for n in range(1, 50):
            x = weft.ones(n, requires_grad=True)
            (x * x).sum().backward()
            assert x.grad is not None
            box.append(x.grad)

    with memory.using(counting.allocator):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counting.allocated > 4 * 50
    assert all(block.data_ptr() in counting.live for block in box)
    box.clear()  # on another thread than the one that made them


def test_blocks_of_a_thread_that_is_gone() -> None:
    gc.collect()
    before = memory.stats()["bytes_in_use"]
    box = []
    thread = threading.Thread(target=lambda: box.extend(weft.ones(100) for _ in range(100)))
    thread.start()
    thread.join()
    assert memory.stats()["bytes_in_use"] >= before + 100 * 400
    box.clear()
    assert memory.stats()["bytes_in_use"] <= before + 1000


@pytest.mark.parametrize("as_address", [False, True])
def test_function_pointers(as_address: bool) -> None:
    made = Counting()
    alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(made.alloc)
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(made.free)
    if as_address:
        a, f = (ctypes.cast(p, ctypes.c_void_p).value for p in (alloc, free))
        allocator = memory.Allocator(a, f)
    else:
        allocator = memory.Allocator(alloc, free)
    with memory.using(allocator):
        x = weft.arange(10)
    assert x.data_ptr() in made.live and x.tolist() == list(range(10))
    del x
    assert made.live == {} and allocator.name == "user"


def refuse(nbytes: int) -> int:
    raise MemoryError(f"no {nbytes} bytes")


@pytest.mark.parametrize(
    ("alloc", "error", "text"),
    [
        (lambda n: 0, weft.OutOfMemoryError, "expected 40 bytes of the allocator 'bad', got null"),
        (
            lambda n: None,
            weft.OutOfMemoryError,
            "expected 40 bytes of the allocator 'bad', got null",
        ),
        (refuse, weft.OutOfMemoryError, "got MemoryError: no 40 bytes"),
        (lambda n: "x", weft.OutOfMemoryError, "got TypeError"),
        (lambda n: 4100, ValueError, "expected a block at a multiple of 64 bytes"),
    ],
)
def test_allocators_that_fail(alloc: object, error: type[Exception], text: str) -> None:
    freed = []
    bad = memory.Allocator(alloc, lambda p, n: freed.append((p, n)), name="bad")
    x = weft.ones(10)
    with memory.using(bad), pytest.raises(error) as caught:
        x + x
    assert text in str(caught.value)
    assert freed == ([(4100, 40)] if error is ValueError else [])
    assert bad.stats()["bytes_in_use"] == 0 and (x + x).tolist() == [2] * 10


def test_arguments() -> None:
    with pytest.raises(TypeError, match="expected two functions or two addresses, got NoneType"):
        memory.Allocator(None, None)
    with pytest.raises(ValueError, match="expected the address of a function, got 0"):
        memory.Allocator(0, 0)
    with pytest.raises(TypeError, match="expected an Allocator, got int"):
        memory.set_allocator(3)
    with pytest.raises(ValueError, match="at least 0 bytes"):
        memory.set_limit(-1)


def test_limit_of_a_user_allocator(counting: Counting) -> None:
    counting.allocator.limit = 1000
    with memory.using(counting.allocator):
        x = weft.ones(200)
        with pytest.raises(weft.OutOfMemoryError, match="at most 1000 bytes"):
            weft.ones(100)
        y = weft.ones(50)
    assert counting.allocator.stats()["peak_bytes_in_use"] == 1000
    assert x.sum().item() + y.sum().item() == 250


def test_limit_and_empty_cache_of_the_built_in_one() -> None:
    big = 5 << 20
    x = weft.empty(big, dtype=weft.uint8)
    del x
    assert memory.stats()["bytes_cached"] >= big
    memory.empty_cache()
    assert memory.stats()["bytes_cached"] < big
    memory.set_limit(memory.stats()["bytes_in_use"] + big)
    try:
        with pytest.raises(weft.OutOfMemoryError):
            weft.empty(4 * big, dtype=weft.uint8)
        assert memory.limit() > 0
    finally:
        memory.set_limit(0)
    memory.reset_peak()
    before = memory.stats()["peak_bytes_in_use"]
    weft.empty(big, dtype=weft.uint8)
    assert memory.stats()["peak_bytes_in_use"] >= before + big - (1 << 16)


def blocks_of(nbytes: int) -> memory.Blocks:
    for blocks in memory.snapshot().blocks:
        if blocks.block_bytes >= nbytes:
            return blocks if blocks.block_bytes <= nbytes * 9 // 8 + 64 else memory.Blocks(0, 0, 0)
    return memory.Blocks(0, 0, 0)


@pytest.mark.parametrize("nbytes", [700, 20_000, 300_000, 3 << 20])
def test_snapshot_says_which_sizes_are_held(nbytes: int) -> None:
    gc.collect()  # tensors that other tests left in cycles must not go while we count
    first = weft.empty(nbytes, dtype=weft.uint8)  # so that there are blocks of this very size
    memory.empty_cache()
    _, in_use, cached = blocks_of(nbytes)  # other threads may keep some: they stay
    held = [weft.empty(nbytes, dtype=weft.uint8) for _ in range(3)]
    now = blocks_of(nbytes)
    assert (now.in_use, now.cached) == (in_use + 3, cached)
    del held[0]
    now = blocks_of(nbytes)
    assert (now.in_use, now.cached) == (in_use + 2, cached + 1)
    memory.empty_cache()
    now = blocks_of(nbytes)
    assert (now.in_use, now.cached) == (in_use + 2, cached)
    assert first.numel() == nbytes


def test_snapshot_adds_up() -> None:
    held = [weft.empty(n) for n in (1, 100, 10_000, 1_000_000)]
    now, stats = memory.snapshot(), memory.stats()
    assert now.bytes_in_use == stats["bytes_in_use"]
    assert now.bytes_cached == stats["bytes_cached"]
    assert "in use" in str(now) and now.allocator == "caching"
    assert held


def test_snapshot_of_a_user_allocator(counting: Counting) -> None:
    with memory.using(counting.allocator):
        held = [weft.empty(3), weft.empty(3), weft.empty(5)]
        assert memory.snapshot().blocks == ((12, 2, 0), (20, 1, 0))
    assert held


@pytest.mark.parametrize("nbytes", [1, 63, 64, 65, 1000, 40_000, 3_000_000])
def test_blocks_are_aligned(nbytes: int) -> None:
    assert weft.empty(nbytes, dtype=weft.uint8).data_ptr() % memory.ALIGNMENT == 0


def test_memory_of_arrays_is_not_counted() -> None:
    before = memory.stats()["allocations"]
    x = weft.from_numpy(np.zeros(10))
    x.add_(1)
    assert memory.stats()["allocations"] == before


def test_scratch_of_operators_comes_from_the_current_allocator(counting: Counting) -> None:
    """Operands of other dtypes and orders are brought into scratch, on the pool's threads too."""
    left, right = weft.ones(700, 300).t(), weft.ones(300, 700, dtype=weft.float16)
    column, row = weft.ones(2000, 1, dtype=weft.float64), weft.ones(1, 2000, dtype=weft.float16)
    expected = left + right
    built_in = memory.caching_allocator().stats()["allocations"]
    with memory.using(counting.allocator):
        for _ in range(3):
            assert (left + right).equal(expected)
            # Small operands, so that the call keeps the interpreter's lock, and a large result.
            assert float((column * row).sum()) == 4_000_000
        assert float((left - right).float().softmax(0).sum()) == pytest.approx(700, rel=1e-4)
        with weft.no_grad():
            left.transpose(0, 1)[::2, 1:] = right.t()[::2, 1:]
        assert memory.caching_allocator().stats()["allocations"] == built_in
    assert counting.allocated > 10


def test_scratch_is_not_asked_for_in_every_call(counting: Counting) -> None:
    if weft.get_num_threads() > 1:
        threads = weft.get_num_threads()
        weft.set_num_threads(1)
    else:
        threads = 1
    try:
        x, y = weft.ones(64, 50).t(), weft.ones(50, 64, dtype=weft.float64)
        out = weft.empty(50, 64, dtype=weft.float16)
        with memory.using(counting.allocator):
            weft.add(x, y, out=out)
            before = counting.allocated
            for _ in range(20):
                weft.add(x, y, out=out)
            assert counting.allocated - before <= 1
    finally:
        weft.set_num_threads(threads)


def test_ten_thousand_steps_of_training_hold_nothing() -> None:
    weft.manual_seed(0)
    model = weft.nn.Sequential(weft.nn.Linear(4, 8), weft.nn.ReLU(), weft.nn.Linear(8, 1))
    optimizer = weft.optim.Adam(model.parameters(), lr=1e-3)
    x, y = weft.randn(16, 4), weft.randn(16, 1)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            weft.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    steps(10)
    gc.collect()
    before, objects = memory.stats(), len(gc.get_objects())
    gc.disable()  # nothing may need the collector
    try:
        steps(10_000)
        after = memory.stats()
    finally:
        gc.enable()
    assert after["bytes_in_use"] == before["bytes_in_use"]
    made = after["allocations"] - before["allocations"]
    assert made == after["frees"] - before["frees"] > 10_000
    assert after["system_allocations"] - before["system_allocations"] < 100
    gc.collect()
    assert len(gc.get_objects()) <= objects + 50
