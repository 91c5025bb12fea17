"""weft.distributed in a world of one process, beside PyTorch's."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from libraries import LIBRARIES, both

import weft
from weft._command.main import main
from weft.distributed import get_rank, launchers
from weft.utils.data.distributed import DistributedSampler


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


@both
def test_facts_of_the_group(lib: Any) -> None:
    dist = lib.distributed
    group = dist.new_group([0])
    assert dist.is_available() and dist.is_initialized() and dist.is_gloo_available()
    assert not dist.is_nccl_available()
    if lib is weft:
        assert dist.is_mpi_available() == (importlib.util.find_spec("mpi4py") is not None)
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
        (lambda: dist.scatter(x), "scatter: expected inputs for 1 process, got None"),
        (lambda: dist.all_gather([lib.ones(3)], x), "all_gather: expected an output of 2 elem"),
        (lambda: dist.broadcast(x, 1), r"broadcast: expected one of the ranks \[0\], got 1"),
        (lambda: dist.send(x, 1), "send: expected another process, got a world of one"),
        (lambda: dist.irecv(x), "irecv: expected another process"),
        (
            lambda: dist.new_group([0, 1]),
            r"new_group: expected different ranks of a world of 1, got \[0, 1\]",
        ),
        (lambda: dist.get_backend(-100), "get_backend: expected a group with this process"),
        (lambda: dist.all_reduce([x]), "all_reduce: expected a tensor, got list"),
        (lambda: dist.all_gather_object([], x), "all_gather_object: expected a list of at least"),
        (lambda: dist.scatter_object_list([0], []), "scatter_object_list: expected 1 object"),
    ]
    for call, message in cases:
        with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
            call()
    with pytest.warns(UserWarning, match="all_reduce: expected a process of the group, got rank 0"):
        assert dist.all_reduce(x, group=dist.GroupMember.NON_GROUP_MEMBER) is None
    sampler = DistributedSampler(range(3), shuffle=False)
    assert list(sampler) == [0, 1, 2]


STARTS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({}, {}, "expected world_size or the environment variable WORLD_SIZE, got neither"),
    ({"world_size": 1}, {}, "expected rank or the environment variable RANK"),
    ({"world_size": 2, "rank": 1}, {}, "expected MPI around a world of 2 processes .*weft launch"),
    ({}, {"WORLD_SIZE": "4", "RANK": "0"}, "weft launch -n N .* got rank 0 without it"),
    ({"backend": "ucc"}, {}, "expected the backend 'mpi', 'gloo' or 'nccl', got 'ucc'"),
    ({"rank": 0}, {"PMI_RANK": "1", "PMI_SIZE": "2"}, "expected the launcher's rank 1, got 0"),
    ({"world_size": 2}, {"PMI_RANK": "0", "PMI_SIZE": "1"}, "launcher's world_size 1, got 2"),
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


def test_mpi4py_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.delitem(sys.modules, "weft.distributed.mpi", raising=False)
    with pytest.raises(RuntimeError, match=r"expected mpi4py \(pip install weft\[mpi\]\), got"):
        weft.distributed.init_process_group()


def test_launch_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", "-n", "0", "x.py"]) == 1
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert main(["launch", "x.py"]) == 1
    text = capsys.readouterr().err
    assert "weft launch: expected at least one process, got 0" in text
    assert r"weft launch: expected mpi4py (pip install weft[mpi])" in text


def test_buckets_without_mpi() -> None:
    """A world of one fills and empties the same buckets as one of several."""
    weft.distributed.init_process_group("mpi")
    model = weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.Linear(4, 2), weft.nn.Linear(4, 2))
    parallel = weft.nn.parallel.DistributedDataParallel(
        model, bucket_cap_mb=1e-5, find_unused_parameters=True, gradient_as_bucket_view=True
    )
    model.forward = lambda x: model[1](model[0](x))  # type: ignore[method-assign]
    buckets = parallel.reducer.buckets
    assert [len(bucket.parameters()) for bucket in buckets] == [1] * 6
    assert buckets[-1].is_last() and buckets[0].parameters()[0] is model[2].bias
    x = weft.randn(2, 3)
    parallel(x).sum().backward()
    expected = weft.autograd.grad(model[1](model[0](x)).sum(), model[0].weight)[0]
    assert weft.equal(model[0].weight.grad, expected) and model[2].weight.grad is None
    assert model[0].weight.grad.data_ptr() == buckets[5].gradients()[0].data_ptr()
    weft.distributed.destroy_process_group()


def test_the_environment_names_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    weft.distributed.init_process_group("cpu:gloo,cuda:nccl")
    assert weft.distributed.get_backend() == "gloo"
    weft.distributed.destroy_process_group()
    with pytest.warns(UserWarning, match="MPI and the CPU run in place of 'nccl'"):
        weft.distributed.init_process_group("nccl")
    weft.distributed.destroy_process_group()


@pytest.mark.parametrize("backend", ["mpi", None])
def test_a_launcher_or_mpi_names_a_world_of_one(
    backend: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    if backend is None:
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    dist = weft.distributed
    dist.init_process_group(backend)
    assert (dist.get_backend(), dist.get_world_size(), dist.get_node_local_rank(0)) == ("mpi", 1, 0)
    dist.destroy_process_group()


PLACES = [
    ({}, None),
    (
        {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"},
        (1, 4, 0, 2),
    ),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, (2, 3, 2, 3)),
    (
        {
            "SLURM_PROCID": "5",
            "SLURM_STEP_NUM_TASKS": "8",
            "SLURM_LOCALID": "1",
            "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
        },
        (5, 8, 1, 4),
    ),
    ({"SLURM_PROCID": "0"}, None),
]


@pytest.mark.parametrize(("variables", "expected"), PLACES)
def test_places(variables: dict[str, str], expected: tuple[int, ...] | None) -> None:
    assert launchers.launched(variables) == expected


@both
def test_stores(lib: Any) -> None:
    store = lib.distributed.HashStore()
    store.set("a", "1")
    assert store.get("a") == b"1" and store.add("count", 2) == 2 and store.add("count", 3) == 5
    assert store.delete_key("a") and not store.delete_key("a")


@both
def test_meshes(lib: Any) -> None:
    make = lib.distributed.init_device_mesh
    mesh = make("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert isinstance(mesh, lib.distributed.DeviceMesh) and mesh.mesh.tolist() == [[0]]
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1)) == (2, (1, 1), 1, 1)
    assert (mesh.get_rank(), mesh.get_coordinate(), mesh.get_local_rank("model")) == (0, (0, 0), 0)
    assert mesh.mesh_dim_names == ("data", "model") and mesh.device_type == "cpu"
    assert mesh["data"].shape == (1,) and mesh["data"].get_group().size() == 1
    assert mesh["model", "data"].mesh_dim_names == ("model", "data")
    assert len(mesh.get_all_groups()) == 2 and mesh.get_group(1) is mesh.get_group("model")
    assert mesh == make("cpu", (1, 1), mesh_dim_names=("data", "model")) != make("cpu", (1, 1))
    assert make("cpu", (1,)).get_group().size() == 1
    for error, call in (
        (RuntimeError, lambda: mesh.get_group()),
        (RuntimeError, lambda: mesh.get_local_rank()),
        (KeyError, lambda: mesh["pipeline"]),
        (KeyError, lambda: mesh.get_group("pipeline")),
        (RuntimeError, lambda: make("cpu", (1,))["data"]),
        (RuntimeError, lambda: make("cpu", (2,))),
        (RuntimeError, lambda: make("cpu", (1, 1), mesh_dim_names=("data", "data"))),
        (RuntimeError, lambda: make("cpu", (1,), mesh_dim_names=("data", "model"))),
        (RuntimeError, lambda: make("cpu:0", (1,))),
    ):
        with pytest.raises(error):
            call()


HOOKS = ["allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"]


@both
@pytest.mark.parametrize("name", HOOKS)
def test_hooks_of_buckets(lib: Any, name: str) -> None:
    """Gradients of 16 bits are rounded; PyTorch's, for one process, too."""
    hooks = importlib.import_module(
        f"{lib.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks"
    )
    if lib is not weft and name == "bf16_compress_hook":
        return  # PyTorch's wants a GPU
    layer = lib.nn.Linear(2, 1)
    parallel = lib.nn.parallel.DistributedDataParallel(layer)
    parallel.register_comm_hook(None, getattr(hooks, name))
    parallel(lib.tensor([[1.001, 3.0]])).sum().backward()
    expected = {"allreduce_hook": 1.001, "fp16_compress_hook": 1.0009765625}.get(name, 1.0)
    assert layer.weight.grad.tolist() == [[pytest.approx(expected, rel=1e-7), 3.0]]


@pytest.mark.parametrize("lib", [LIBRARIES[0].values[0], LIBRARIES[1]])
def test_main_functions_of_torchrun(lib: str) -> None:
    pytest.importorskip(lib)
    errors = importlib.import_module(f"{lib}.distributed.elastic.multiprocessing.errors")

    @errors.record
    def main(end: Any) -> str:
        if end is not None:
            raise end
        return "done"

    assert main(None) == "done" and main.__name__ == "main" and main(SystemExit(0)) is None
    with pytest.raises(SystemExit):
        main(SystemExit(3))
    with pytest.raises(KeyError):
        main(KeyError("x"))
