"""SharedList and SharedDict: what goes in comes out, in other processes too, and nothing is copied."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import platform
import re
import subprocess
import sys
from collections import namedtuple
from typing import Any

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.utils.data import DataLoader, SharedDict, SharedList
from weft.utils.data import columns as kinds

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
Point = namedtuple("Point", "x y")


class Tagged(Point):
    """A named tuple that may have attributes."""


def tagged(tag: str) -> Tagged:
    item = Tagged(1, 2)
    item.tag = tag  # type: ignore[attr-defined]
    return item


LISTS: dict[str, tuple[list[Any], type]] = {
    "nothing": ([], kinds.Pickles),
    "small integers": ([3, -128, 127], kinds.Numbers),
    "big integers": ([2**63 - 1, -(2**63)], kinds.Numbers),
    "huge integers": ([2**63, 0], kinds.Pickles),
    "floats": ([0.1, -0.0, float("inf"), 5e-324], kinds.Numbers),
    "bools": ([True, False], kinds.Numbers),
    "bools and integers": ([True, 1], kinds.Pickles),
    "texts": (["", "a", "ünï\0cödé \U0001f600", "\udc80"], kinds.Texts),
    "blobs": ([b"", b"\0\xff"], kinds.Blobs),
    "tuples": ([("a", 1, (2.5, b"x")), ("b", 2, (3.5, b""))], kinds.Tuples),
    "tuples with gaps": ([("a", None), ("b", 2)], kinds.Tuples),
    "tuples of several lengths": ([(1,), (1, 2), ()], kinds.Pickles),
    "named tuples with attributes": ([tagged("a"), tagged("b")], kinds.Pickles),
    "records of equal keys": ([{True: 1}, {1: 2}], kinds.Pickles),
    "records of tuples": ([{(1,): 1}, {(True,): 2}], kinds.Pickles),
    "records of numbers": ([{0: "a", None: 2.5}, {0: "b", None: 3.5}], kinds.Records),
    "named tuples": ([Point(1, "a"), Point(2, "b")], kinds.Tuples),
    "records": ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], kinds.Records),
    "records of several kinds": ([{"a": 1}, {"b": 1}, {}], kinds.Pickles),
    "lists": ([[1, 2], [], ["x"]], kinds.Pickles),
    "mixture": ([None, 1, "a", {2}, 3j], kinds.Pickles),
}


@pytest.mark.parametrize("name", LISTS)
def test_items_come_back(name: str) -> None:
    items, kind = LISTS[name]
    shared = SharedList(items)
    assert type(shared._column) is kind
    assert len(shared) == len(items) and list(shared) == items and shared == items
    assert [type(item) for item in shared] == [type(item) for item in items]
    assert shared[1:] == items[1:] and shared[::-1] == items[::-1]
    for index in range(-len(items), len(items)):
        assert shared[index] == items[index] and repr(shared[index]) == repr(items[index])
    for index in (len(items), -len(items) - 1):
        text = f"SharedList: expected an index in [-{len(items)}, {len(items)}), got {index}"
        with pytest.raises(IndexError, match=re.escape(text)):
            shared[index]
    with pytest.raises(TypeError, match="expected an index of type int or slice, got str"):
        shared["a"]  # type: ignore[call-overload]
    assert [getattr(item, "__dict__", None) for item in shared] == [
        getattr(item, "__dict__", None) for item in items
    ]
    copy = pickle.loads(pickle.dumps(shared))
    assert list(copy) == items and copy.nbytes == shared.nbytes


simple = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=9),
    st.binary(max_size=9),
    st.none(),
    st.booleans(),
)
items_of_any_kind = st.one_of(
    st.lists(simple),
    st.lists(st.integers(-300, 300)),
    st.lists(st.text(max_size=9)),
    st.lists(st.tuples(st.text(max_size=9), st.integers(), st.tuples(st.booleans(), simple))),
    st.lists(st.fixed_dictionaries({"a": st.floats(allow_nan=False), "b": st.binary(max_size=9)})),
    st.lists(st.lists(simple)),
)


@examples(50)
@given(items_of_any_kind)
def test_any_list_comes_back(items: list[Any]) -> None:
    shared = list(SharedList(items))
    assert repr(shared) == repr(items)


@examples(50)
@given(st.dictionaries(st.one_of(simple, st.tuples(simple, simple)), simple))
def test_any_dict_comes_back(items: dict[Any, Any]) -> None:
    shared = SharedDict(items)
    assert list(shared.items()) == list(items.items()) and len(shared) == len(items)
    assert all(shared[key] == value for key, value in items.items())
    assert "no such key" * 9 not in shared


def test_keys() -> None:
    shared = SharedDict({1: "one", "1": "text", (1, b"x"): "tuple", None: "none"})
    assert shared[True] == shared[1.0] == "one" and shared["1"] == "text"
    assert shared[(1.0, b"x")] == "tuple" and shared[None] == "none"
    assert shared.get("2") is None and [] not in shared
    with pytest.raises(KeyError, match="2"):
        shared["2"]
    with pytest.raises(TypeError, match="expected keys made of str, bytes, numbers"):
        SharedDict({frozenset(): 1})
    assert repr(shared).startswith("SharedDict([(1, 'one'), ")


def test_what_comes_out_is_one_s_own() -> None:
    shared = SharedList([{"a": [1]}, {"a": [2]}])
    shared[0]["a"].append(3)
    assert shared[0] == {"a": [1]} and repr(shared) == "SharedList([{'a': [1]}, {'a': [2]}])"
    with pytest.raises(TypeError):
        shared[0] = 1  # type: ignore[index]


def test_numbers_are_narrow() -> None:
    assert SharedList(range(100)).nbytes == 100
    assert SharedList(range(1000)).nbytes == 2000
    assert SharedList([("abc", 1)] * 1000).nbytes < 1000 * (3 + 2 + 1) + 100


def look_up(queue: Any, samples: Any, labels: Any) -> None:
    queue.put((samples[7], labels["label 5"], samples._column._columns[1]._data.is_shared()))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_other_processes_see_the_same_memory(method: str) -> None:
    samples = SharedList([(f"path {i}", i) for i in range(10)])
    labels = SharedDict({f"label {i}": i for i in range(10)})
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=look_up, args=(queue, samples, labels), daemon=True)
    process.start()
    assert queue.get() == (("path 7", 7), 5, True)
    process.join(20)
    assert process.exitcode == 0


def test_as_a_data_set() -> None:
    data = SharedList([(weft.full((2,), i), i) for i in range(6)])
    batches = list(DataLoader(data, batch_size=3, num_workers=2))
    assert [labels.tolist() for _, labels in batches] == [[0, 1, 2], [3, 4, 5]]
    assert batches[1][0].tolist() == [[3, 3], [4, 4], [5, 5]]


# Memory of parent and workers together: without workers, when all have begun, when they have read everything.
MEMORY = """
import gc, os, sys
from weft.utils.data import DataLoader, Dataset, SharedList

class Samples(Dataset):
    def __init__(self, items):
        self.items = items
    def __len__(self):
        return len(self.items)
    def __getitem__(self, index):
        item = self.items[index]
        if isinstance(item, dict):
            return item["category_id"] + sum(item["segmentation"][0])
        path, label, caption = item
        return label + len(path) + len(caption)

def sample(i):
    return f"images/{i:08d}.jpeg", i, f"a caption of some length, number {i}"

# An object in a picture and what is said of it: outlines of 8 to 88 numbers, 48 in the middle.
places = [round(i * 3.17 % 640, 2) for i in range(1000)]
def annotation(i):
    begin, count = i % 900, 8 + i * 6 % 82
    return {
        "id": i, "file_name": f"train/{i // 7:012d}.jpg", "category_id": i % 80, "area": i * 0.01,
        "sentence": f"the small one to the left of number {i % 12}, in the second row",
        "bbox": places[begin : begin + 4], "segmentation": [places[begin : begin + count]],
    }

def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))

if __name__ == "__main__":
    kind, make, count, workers, batch = *sys.argv[1:3], *map(int, sys.argv[3:])
    items = map(globals()[make], range(count))
    items = SharedList(items) if kind == "SharedList" else list(items)
    gc.collect()
    alone = pss("self")
    loader = DataLoader(
        Samples(items), batch, num_workers=workers, persistent_workers=True,
        multiprocessing_context="fork",
    )
    epoch = iter(loader)
    for _ in range(workers):
        next(epoch)
    pids = ["self", *(process.pid for process in epoch._workers)]
    begun = sum(map(pss, pids))
    for _ in epoch:
        pass
    print(alone, begun, sum(map(pss, pids)))
"""
needs_smaps = pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps_rollup") or "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="needs Linux's smaps, of a program whose memory is its own",
)


def memory(kind: str, make: str, *sizes: int) -> tuple[int, int, int]:
    """Kilobytes without workers, when all have begun, and in the end. sizes: samples, workers, and
    samples of a batch."""
    command = [sys.executable, "-W", "ignore", "-c", MEMORY, kind, make, *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    alone, begun, end = map(int, done.stdout.split())
    return alone, begun, end


@pytest.mark.nightly
@needs_smaps
def test_eight_workers_over_a_million_objects() -> None:
    """They are 270 MB as Python objects. Reading all of them copies nothing; what is left is what eight
    processes of Python need for themselves."""
    alone, begun, end = memory("SharedList", "sample", 1_000_000, 8, 1024)
    assert end - begun < 0.05 * alone, (alone, begun, end)
    assert begun - alone < 8 * 6_000, (alone, begun, end)


@pytest.mark.nightly
@needs_smaps
def test_eight_workers_over_a_million_annotations() -> None:
    """The whole growth, with what the processes need for themselves."""
    alone, begun, end = memory("SharedList", "annotation", 1_000_000, 8, 64)
    assert end < 1.05 * alone, (alone, begun, end)
    assert end - begun < 0.005 * alone, (alone, begun, end)


BUILT = """
import gc
from weft.utils.data import SharedList

def private():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))

before = private()
items = SharedList(KIND((f"images/{i:08d}.jpeg", i, f"a caption of some length, number {i}") for i in range(500_000)))
gc.collect()
print(items.nbytes // 1024, private() - before)
"""


@needs_smaps
@pytest.mark.parametrize("kind", ["list", "iter"])
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="gives memory back by itself or not at all"
)
def test_nothing_stays_of_what_it_was_made_from(kind: str) -> None:
    program = BUILT.replace("KIND", kind)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    bytes_of_list, grown = map(int, done.stdout.split())
    assert grown < bytes_of_list + 12_000, done.stdout  # 35 MB; without giving back 24 MB more


@needs_smaps
def test_reading_a_shared_list_copies_nothing() -> None:
    _, begun, end = memory("SharedList", "sample", 100_000, 3, 1024)
    assert end - begun < 2_000


@needs_smaps
def test_a_list_is_copied() -> None:
    """That the figure above would show it. The objects are 20 MB, of which each worker copies some 9 MB."""
    _, begun, end = memory("list", "sample", 100_000, 3, 1024)
    assert end - begun > 8_000
