"""Data sets, samplers, collating and the loader, and PyTorch's order under the same seed."""

from __future__ import annotations

import importlib
import itertools
import sys
from array import array
from collections import OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Iterator
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
    random_split,
)
from weft.utils.data._utils.collate import collate, default_collate_fn_map


class Squares(Dataset[Any]):
    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, float(index * index)

    def __len__(self) -> int:
        return 5


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


def test_batches_in_order() -> None:
    batches = list(DataLoader(Squares(), batch_size=2))
    assert [b[0].tolist() for b in batches] == [[0, 1], [2, 3], [4]]
    assert batches[0][0].dtype == weft.int64 and batches[0][1].dtype == weft.float64
    loader = DataLoader(Squares(), batch_size=2, drop_last=True)
    assert len(loader) == len(list(loader)) == 2
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=3)] == [[0, 1, 2], [3, 4]]
    assert list(DataLoader(Squares(), batch_size=None))[2] == [2, 4.0]
    batches = list(DataLoader(Squares(), batch_sampler=[[4, 0], [1]]))
    assert [b[0].tolist() for b in batches] == [[4, 0], [1]]


def test_tensor_datasets_give_what_collating_gives() -> None:
    x, y = weft.arange(12.0).reshape(6, 2), weft.arange(6)
    data = Subset(TensorDataset(x, y), [5, 3, 1])
    fast = list(DataLoader(data, batch_size=2))
    slow = list(DataLoader(data, batch_size=2, collate_fn=lambda b: default_collate(b)))
    assert [[t.tolist() for t in batch] for batch in fast] == [
        [t.tolist() for t in batch] for batch in slow
    ]
    assert fast[0][1].tolist() == [5, 3]


def test_shuffling_visits_everything_and_obeys_the_generator() -> None:
    orders = []
    for _ in range(2):
        loader = DataLoader(Squares(), shuffle=True, generator=weft.Generator().manual_seed(1))
        orders.append([b[0].item() for b in loader])
    assert orders[0] == orders[1] and sorted(orders[0]) == [0, 1, 2, 3, 4]


def test_collate_goes_into_containers() -> None:
    Point = namedtuple("Point", "x y")
    batch = default_collate(
        [
            {"p": Point(1, 2.0), "t": weft.ones(2), "n": np.zeros(3, np.float32), "s": "a"},
            {"p": Point(3, 4.0), "t": weft.zeros(2), "n": np.ones(3, np.float32), "s": "b"},
        ]
    )
    assert batch["p"].x.tolist() == [1, 3] and batch["p"].y.dtype == weft.float64
    assert batch["t"].shape == (2, 2) and batch["n"].dtype == weft.float32
    assert batch["s"] == ["a", "b"]
    assert default_collate([(1, [2]), (3, [4])])[1][0].tolist() == [2, 4]
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])


def test_the_first_sample_says_which_keys_a_batch_has() -> None:
    batch = default_collate([{"a": 1}, {"a": 2, "b": 3}])
    assert list(batch) == ["a"] and batch["a"].tolist() == [1, 2]
    with pytest.raises(KeyError, match="b"):
        default_collate([{"a": 2, "b": 3}, {"a": 1}])


@pytest.mark.parametrize("kind", [weft.utils.data.Dataset, weft.utils.data.IterableDataset])
def test_datasets_without_samples_say_so(kind: Any) -> None:
    empty = type("Empty", (kind,), {})()
    with pytest.raises(NotImplementedError):
        empty[0]


class Name:
    """What default_collate knows nothing of."""

    def __init__(self, text: str) -> None:
        self.text = text


class LongName(Name):
    pass


def names(batch: Any, *, collate_fn_map: Any = None) -> str:
    return " ".join(name.text for name in batch)


def test_collate_learns_classes(monkeypatch: Any) -> None:
    with pytest.raises(TypeError, match=r"batch must contain .*found <class '.*Name'>"):
        default_collate([Name("a")])
    monkeypatch.setitem(default_collate_fn_map, Name, names)
    assert default_collate([Name("a"), Name("b")]) == "a b"
    assert default_collate([{"n": LongName("a")}, {"n": LongName("b")}]) == {"n": "a b"}
    of_fork = DataLoader([Name("a"), Name("b")], 2, num_workers=1, multiprocessing_context="fork")
    assert list(of_fork) == ["a b"]
    # A map of one's own: containers that it names are not gone into, the others are.
    texts = {str: lambda batch, *, collate_fn_map=None: "".join(batch), list: list_itself}
    assert collate([("a", [1]), ("b", [2])], collate_fn_map=texts) == ["ab", ([1], [2])]
    with pytest.raises(TypeError, match="found <class 'int'>"):
        collate([1, 2])


def list_itself(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return batch


def test_collate_of_tensors_can_be_replaced(monkeypatch: Any) -> None:
    data = TensorDataset(weft.arange(4))
    monkeypatch.setitem(default_collate_fn_map, weft.Tensor, list_itself)
    assert list(DataLoader(data, 2))[1] == [(2, 3)]


def test_collate_keeps_what_containers_have_besides() -> None:
    batch = default_collate([defaultdict(int, a=1), defaultdict(int, a=2)])
    assert batch.default_factory is int and batch["a"].tolist() == [1, 2]
    assert default_convert(array("i", [1, 2])) == array("i", [1, 2])


def test_any_index_of_a_tensor_dataset() -> None:
    data = TensorDataset(weft.arange(6))
    batches = DataLoader(data, batch_sampler=[[slice(0, 2), slice(2, 4)], [weft.tensor(5)]])
    assert [batch[0].tolist() for batch in batches] == [[[0, 1], [2, 3]], [5]]


class Tens(Squares):
    """Gives samples at once."""

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [10 * index for index in indices if index != 4]


class Shifted(Subset):
    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index) + 100


def test_samples_at_once() -> None:
    stacked = StackDataset(Tens(), range(5))
    assert stacked.__getitems__([1, 2]) == [(10, 1), (20, 2)]
    batch = next(iter(DataLoader(StackDataset(a=Tens(), b=range(5)), 2)))
    assert [batch["a"].tolist(), batch["b"].tolist()] == [[0, 10], [0, 1]]
    with pytest.raises(ValueError, match=r"Tens\.__getitems__: expected 2 samples, got 1"):
        stacked.__getitems__([3, 4])
    # What a subclass does with a sample is done in batches too.
    assert [b.tolist() for b in DataLoader(Shifted(range(9), [1, 4]), 2)] == [[101, 104]]


def test_sets_of_sets() -> None:
    both = Squares() + Squares()
    assert isinstance(both, ConcatDataset) and len(both) == 10
    assert both[6] == (1, 1.0) and both[-1] == (4, 16.0)
    assert list(ConcatDataset([range(2), [], range(1)])) == [0, 1, 0]
    with pytest.raises(IndexError, match=r"expected an index in \[-10, 10\), got 10"):
        both[10]
    with pytest.raises(ValueError, match=r"expected an index in \[-10, 10\), got -11"):
        both[-11]
    parts = random_split(Squares(), [0.5, 0.5], weft.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [3, 2]
    assert sorted(i for p in parts for i, _ in p) == [0, 1, 2, 3, 4]
    assert list(BatchSampler([3, 4, 5], 2, True)) == [[3, 4]]


def test_sets_and_samplers_take_the_type_of_a_sample() -> None:
    """Programs write `class Part(Subset[T])`, and `Subset[int]` in annotations."""
    for kind in (Dataset, IterableDataset, Subset, ConcatDataset, StackDataset, DataLoader):
        assert kind[int].__origin__ is kind
    assert ConcatDataset.cumsum(["ab", "c"]) == [2, 3]
    for kind in (weft.utils.data.IterDataPipe, weft.utils.data.distributed.DistributedSampler):
        assert kind[int].__origin__ is kind


@both
def test_the_order_is_that_of_the_argument(lib: Any) -> None:
    """Loaders of libraries show another data set by that name."""

    class Loader(lib.utils.data.DataLoader):
        is_passing = False

        def __getattribute__(self, name: str) -> Any:
            hides = name == "dataset" and not super().__getattribute__("is_passing")
            return range(9) if hides else super().__getattribute__(name)

    loader = Loader(range(3), 2)
    assert len(loader) == 2 and len(loader.dataset) == 9
    loader.is_passing = True
    assert [batch.tolist() for batch in loader] == [[0, 1], [2]]


def test_errors() -> None:
    with pytest.raises(ValueError, match="sampler option is mutually exclusive with shuffle"):
        DataLoader(Squares(), sampler=[1], shuffle=True)
    with pytest.raises(ValueError, match="batch_size should be a positive integer value"):
        DataLoader(Squares(), batch_size=0)
    with pytest.raises(
        ValueError, match="expected unspecified shuffle option, but got shuffle=True"
    ):
        DataLoader(Stream(), shuffle=True)
    with pytest.raises(ValueError, match=r"expected equal first sizes, got \[2, 3\]"):
        TensorDataset(weft.ones(2), weft.ones(3))
    with pytest.raises(ValueError, match=r"Sum of input lengths does not equal"):
        random_split(Squares(), [1, 1])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split([7], [0.5, 0.5])


TEXTS: list[Any] = [("a", b"b", 1), ("c", b"d", 2)]
NESTED: list[Any] = [
    TEXTS,
    [{"t": sample} for sample in TEXTS],
    [defaultdict(list, t=sample) for sample in TEXTS],
    [OrderedDict(t=list(sample)) for sample in TEXTS],
    [UserDict(t=1), UserDict(t=2)],
    [UserList([1, 2.5]), UserList([2, 3.5])],
    [deque([1, 2]), deque([3, 4])],
    [range(2), range(2)],
    [np.str_("a"), np.str_("b")],
    [np.bytes_(b"a")],
    [np.float64(1), np.float64(2)],
    [np.bool_(True)],
    [True, 2],
    [[], []],
    [{}, {}],
    (1, 2),
]


@pytest.mark.parity
@pytest.mark.parametrize("batch", NESTED, ids=repr)
def test_nested_batches_equal_torch(batch: Any) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (repr(lib.utils.data.default_collate(batch)) for lib in (weft, torch))
    assert ours == theirs


@pytest.mark.parity
def test_order_equals_torch() -> None:
    torch = pytest.importorskip("torch")
    orders = []
    for lib in (weft, torch):
        data = lib.utils.data
        lib.manual_seed(11)
        numbers = data.TensorDataset(lib.arange(23))
        loader = data.DataLoader(numbers, batch_size=4, shuffle=True)
        order = [batch[0].tolist() for _ in range(2) for batch in loader]
        generator = lib.Generator().manual_seed(5)
        loader = data.DataLoader(numbers, batch_size=4, shuffle=True, generator=generator)
        order += [batch[0].tolist() for _ in range(2) for batch in loader]
        order += [list(part.indices) for part in data.random_split(numbers, [20, 3])]
        order += [list(part.indices) for part in data.random_split(numbers, [0.3, 0.3, 0.4])]
        order += [list(data.RandomSampler(numbers, replacement=True, num_samples=40))]
        order += [list(data.RandomSampler(numbers, num_samples=50))]
        order += [list(data.SubsetRandomSampler([9, 8, 7, 6]))]
        order += [list(data.DataLoader(range(23), batch_size=None, shuffle=True))]
        weighted = data.WeightedRandomSampler(lib.arange(1.0, 9.0), 6)
        order += [list(data.DataLoader(range(8), batch_size=None, sampler=weighted))]
        orders.append((order, lib.rand(3).tolist()))
    assert orders[0] == orders[1]


@both
@pytest.mark.parametrize("replacement", [False, True])
def test_orders_are_drawn_at_the_first_index(lib: Any, replacement: bool) -> None:
    data = lib.utils.data
    for sampler in (
        data.RandomSampler(range(9), replacement=replacement),
        data.WeightedRandomSampler([1.0] * 9, 9, replacement),
        data.SubsetRandomSampler(range(9)),
    ):
        passes = [iter(sampler), iter(sampler)]
        firsts = []
        for each in passes:
            lib.manual_seed(0)
            firsts.append(next(each))
        assert firsts[0] == firsts[1]


@both
def test_functions_of_collating(lib: Any) -> None:
    parts = importlib.import_module(f"{lib.__name__}.utils.data._utils.collate")
    kinds = parts.default_collate_fn_map
    assert kinds[lib.Tensor] is parts.collate_tensor_fn
    assert parts.collate_tensor_fn([lib.ones(2), lib.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert parts.collate_float_fn([0.5]).dtype == lib.float64
    assert parts.collate_int_fn([1, 2]).tolist() == [1, 2]
    assert parts.collate_str_fn(["a"]) == ["a"]
    batch = parts.collate_numpy_array_fn([np.ones(2)], collate_fn_map=kinds)
    assert batch.shape == (1, 2)


@both
@pytest.mark.parametrize("num_workers", [0, 1])
def test_passes_over_what_a_library_gives_for_a_loader(lib: Any, num_workers: int) -> None:
    """fastai makes batches itself, and lets the iterators of a loader take them as a stream."""
    data = lib.utils.data

    class Loader:
        _IterableDataset_len_called = None
        _auto_collation = drop_last = pin_memory = persistent_workers = False
        in_order = True
        _dataset_kind = data._DatasetKind.Iterable
        _index_sampler = itertools.count()
        generator = worker_init_fn = None
        # the class is local: it can only be inherited
        multiprocessing_context = None if sys.version_info < (3, 14) else get_context("fork")
        prefetch_factor, timeout, pin_memory_device = 2, 0, ""
        _get_shared_seed = None

        def __init__(self) -> None:
            self.dataset = self
            self.num_workers = num_workers

        def __iter__(self) -> Any:
            return iter([[1, 2], [3]])

        @staticmethod
        def collate_fn(batch: Any) -> Any:
            return batch

    kinds = (
        data.dataloader._SingleProcessDataLoaderIter,
        data.dataloader._MultiProcessingDataLoaderIter,
    )
    assert list(kinds[num_workers > 0](Loader())) == [[1, 2], [3]]
