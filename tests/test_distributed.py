"""weft.distributed in a world of one process, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import weft
from weft.distributed import get_rank
from weft.utils.data.distributed import DistributedSampler

LIBRARIES = [
    pytest.param("weft", id="weft"),
    pytest.param("torch", id="torch", marks=pytest.mark.parity),
]


@pytest.fixture
def lib(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A library with a default group of this process."""
    lib = weft if request.param == "weft" else pytest.importorskip(request.param)
    lib.distributed.init_process_group(
        "gloo", store=lib.distributed.HashStore(), rank=0, world_size=1
    )
    yield lib
    lib.distributed.destroy_process_group()
    assert not lib.distributed.is_initialized() and lib.distributed.group.WORLD is None


both = pytest.mark.parametrize("lib", LIBRARIES, indirect=True)


@both
def test_facts_of_the_group(lib: Any) -> None:
    dist = lib.distributed
    group = dist.new_group([0])
    assert dist.is_available() and dist.is_initialized() and dist.is_gloo_available()
    assert not dist.is_nccl_available() and not dist.is_mpi_available()
    for each in (None, dist.group.WORLD, group):
        assert (dist.get_rank(each), dist.get_world_size(each)) == (0, 1)
        assert dist.get_backend(each) == "gloo" and dist.get_process_group_ranks(each) == [0]
    assert (group.rank(), group.size(), dist.get_global_rank(group, 0)) == (0, 1, 0)
    assert isinstance(dist.group.WORLD, dist.ProcessGroup)
    assert dist.is_backend_available("gloo")
    with pytest.raises(ValueError):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if lib is weft:  # PyTorch's wants a member
        assert dist.get_rank(dist.new_group([])) == -1


# operation, its arguments by the values of tensors, and which of them holds the result
COLLECTIVES: list[tuple[str, list[Any], int]] = [
    ("all_reduce", [[1.0, 2.0]], 0),
    ("reduce", [[1.0, 2.0], 0], 0),
    ("broadcast", [[1.0, 2.0], 0], 0),
    ("all_gather", [[[0.0, 0.0]], [1.0, 2.0]], 0),
    ("all_gather_into_tensor", [[0.0, 0.0], [1.0, 2.0]], 0),
    ("gather", [[1.0, 2.0], [[0.0, 0.0]]], 1),
    ("scatter", [[0.0, 0.0], [[1.0, 2.0]]], 0),
    ("reduce_scatter", [[0.0, 0.0], [[1.0, 2.0]]], 0),
    ("all_to_all_single", [[0.0, 0.0], [1.0, 2.0]], 0),
]


def made(lib: Any, value: Any) -> Any:
    """Tensors of lists of numbers, lists of those of lists of them."""
    if not isinstance(value, list):
        return value
    return [made(lib, v) for v in value] if isinstance(value[0], list) else lib.tensor(value)


@both
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
@pytest.mark.parametrize(("name", "values", "place"), COLLECTIVES)
def test_collectives(lib: Any, name: str, values: list[Any], place: int) -> None:
    operation = getattr(lib.distributed, name)
    for asynchronous in (False, True):
        args = [made(lib, value) for value in values]
        work = operation(*args, async_op=asynchronous)
        assert (work is not None) == asynchronous
        if work is not None:
            assert work.wait() and (lib is not weft or work.is_completed())
        result = args[place][0] if isinstance(args[place], list) else args[place]
        assert result.tolist() == [1, 2]


@both
def test_objects(lib: Any) -> None:
    dist, places = lib.distributed, [None]
    value = {"a": [1]}
    dist.all_gather_object(places, value)
    assert places == [value] and places[0] is not value
    dist.gather_object("x", places, 0)
    assert places == ["x"]
    dist.broadcast_object_list(places, 0)
    dist.scatter_object_list(places, [value], 0)
    assert places == [value]
    assert dist.barrier() is None and dist.barrier(async_op=True).wait()


@both
def test_parallel_modules(lib: Any) -> None:
    nn, layer = lib.nn, lib.nn.Linear(2, 1)
    wrapped = nn.parallel.DistributedDataParallel(layer)
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with wrapped.no_sync():
        assert not wrapped.require_backward_grad_sync
    x = lib.ones(3, 2)
    wrapped(x).sum().backward()
    assert layer.weight.grad.tolist() == [[3, 3]]
    assert wrapped.module is layer and wrapped.require_backward_grad_sync
    parallel = nn.DataParallel(layer)
    assert lib.equal(parallel(x), layer(x)) and parallel.module is layer
    if lib is weft:  # PyTorch's asks for a device first
        assert lib.equal(nn.parallel.data_parallel(layer, x), layer(x))
    assert nn.parallel.DataParallel is nn.DataParallel
    with pytest.raises(RuntimeError):
        nn.parallel.DistributedDataParallel(nn.Identity())


@pytest.mark.parametrize(("lib"), ["weft"], indirect=True)
def test_what_one_process_cannot_do(lib: Any) -> None:
    dist, x = lib.distributed, lib.ones(2)
    cases = [
        (lambda: dist.all_gather([x, x], x), "all_gather: expected outputs for 1 process, got 2"),
        (lambda: dist.scatter(x), "scatter: expected inputs for 1 process, got 0"),
        (lambda: dist.all_gather([lib.ones(3)], x), "all_gather: expected an output of 2 elem"),
        (lambda: dist.broadcast(x, 1), "broadcast: expected the rank 0 of a world of one"),
        (lambda: dist.send(x, 1), "send: expected another process, got a world of one"),
        (lambda: dist.irecv(x), "irecv: expected another process"),
        (lambda: dist.new_group([0, 1]), r"new_group: expected ranks of a world .* \[0, 1\]"),
        (lambda: dist.all_reduce(x, group=-100), "all_reduce: expected a group with this process"),
        (lambda: dist.all_reduce([x]), "all_reduce: expected a tensor, got list"),
        (lambda: dist.all_gather_object([], x), "all_gather_object: expected a list of at least"),
        (lambda: dist.scatter_object_list([0], []), "scatter_object_list: expected 1 object"),
    ]
    for call, message in cases:
        with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
            call()
    sampler = DistributedSampler(range(3), shuffle=False)
    assert list(sampler) == [0, 1, 2]


STARTS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({}, {}, "expected world_size or the environment variable WORLD_SIZE, got neither"),
    ({"world_size": 1}, {}, "expected rank or the environment variable RANK"),
    ({"world_size": 2, "rank": 1}, {}, "expected a world of one process, got rank 1 of 2"),
    ({}, {"WORLD_SIZE": "4", "RANK": "0"}, "got rank 0 of 4 processes"),
    ({"backend": "nccl"}, {}, "expected the backend 'gloo', got 'nccl'"),
]


@pytest.mark.parametrize(("options", "variables", "message"), STARTS)
def test_worlds_that_cannot_be(
    options: dict[str, Any], variables: dict[str, str], message: str, monkeypatch: Any
) -> None:
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((RuntimeError, ValueError), match=message):
        weft.distributed.init_process_group(**options)
    with pytest.raises(ValueError, match="get_rank: expected init_process_group to be called"):
        get_rank()


def test_the_environment_names_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    weft.distributed.init_process_group("cpu:gloo,cuda:nccl")
    assert weft.distributed.get_backend() == "gloo"
    weft.distributed.destroy_process_group()


@both
def test_stores(lib: Any) -> None:
    store = lib.distributed.HashStore()
    store.set("a", "1")
    assert store.get("a") == b"1" and store.add("count", 2) == 2 and store.add("count", 3) == 5
    assert store.delete_key("a") and not store.delete_key("a")
