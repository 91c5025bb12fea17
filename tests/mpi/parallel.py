"""Training in several processes against one process with all of the data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import weft
import weft.distributed as dist
import weft.distributed.nn.functional as through
from weft import memory, nn
from weft.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from weft.distributed.fsdp import fully_shard
from weft.distributed.fsdp.fully_shard import _units
from weft.distributed.optim import ZeroRedundancyOptimizer
from weft.distributed.work import progress
from weft.nn.parallel import DistributedDataParallel
from weft.utils.checkpoint import checkpoint
from weft.utils.data import DataLoader, TensorDataset
from weft.utils.data.distributed import DistributedSampler

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()


def close(what: str, got: Any, expected: Any) -> None:
    assert weft.allclose(got, expected, 1e-4, 1e-5), f"{what}: {got} is not {expected}"


def net(batch_norm: bool = False) -> nn.Module:
    weft.manual_seed(0)
    middle = [nn.BatchNorm1d(8)] if batch_norm else []
    return nn.Sequential(
        nn.Linear(5, 8), *middle, nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3)
    )


def batches(count: int = 4) -> list[Any]:
    weft.manual_seed(1)
    return [(weft.randn(2 * N, 5), weft.randn(2 * N, 3)) for _ in range(count)]


def own(x: Any) -> Any:
    return x[2 * ME : 2 * ME + 2]


def trained(model: Any, optimizer: Any, data: Any, evaluates: bool = False) -> list[Any]:
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if evaluates:
            with weft.no_grad():
                model(x)
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


OPTIMIZERS: list[Callable[[Any], Any]] = [
    lambda p: weft.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: weft.optim.Adam(p, lr=0.01),
]


def check_curve() -> None:
    for make in OPTIMIZERS:
        model = net()
        expected = trained(model, make(model.parameters()), batches())
        for views in (False, True):
            weft.manual_seed(ME)  # what differs is made the first one's
            model = net() if ME == 0 else nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3))  # fmt: skip
            parallel = DistributedDataParallel(
                model, bucket_cap_mb=1e-4, gradient_as_bucket_view=views
            )
            assert len(parallel.reducer.buckets) > 2
            data = [(own(x), own(y)) for x, y in batches()]
            for got, value in zip(trained(parallel, make(parallel.parameters()), data), expected):
                close("curve", got, value)
            is_view = [p.grad._is_view() for p in parallel.parameters()]
            assert is_view == [views] * len(is_view)


def check_zero_redundancy() -> None:
    for kind, options in (
        (weft.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (weft.optim.Adam, {"lr": 0.01}),
    ):
        alone, model = net(), net()
        expected = trained(alone, theirs := kind(alone.parameters(), **options), batches())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), kind, **options)
        assert 0 < len(optimizer.optim.param_groups[0]["params"]) < 6 or N == 1
        for got, value in zip(trained(model, optimizer, batches()), expected):
            close("ZeroRedundancyOptimizer", got, value)
        optimizer.consolidate_state_dict(to=N - 1)
        state: list[Any] = [optimizer.state_dict() if ME == N - 1 else None]
        dist.broadcast_object_list(state, N - 1)
        whole = theirs.state_dict()
        assert state[0]["state"].keys() == whole["state"].keys()
        for at, values in whole["state"].items():
            for name, value in values.items():
                if isinstance(value, weft.Tensor):
                    close(name, state[0]["state"][at][name], value)
        again = ZeroRedundancyOptimizer(model.parameters(), kind, **{**options, "lr": 1.0})
        again.load_state_dict(state[0])
        assert again.param_groups[0]["lr"] == options["lr"]
        more = batches(6)[4:]
        for got, value in zip(trained(model, again, more), trained(alone, theirs, more)):
            close("loaded", got, value)


def sharded(**options: Any) -> Any:
    model = net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return model


def check_fully_shard() -> None:
    data = [(own(x), own(y)) for x, y in batches()]
    for make in OPTIMIZERS:
        alone = net()
        expected = trained(alone, make(alone.parameters()), batches())
        for reshards in (True, False):
            model = sharded(reshard_after_forward=reshards)
            shapes = [tuple(p.shape) for p in model.parameters()]
            assert shapes[0] == (-(-8 // N) if ME < N - 1 else 8 - -(-8 // N) * (N - 1), 5), shapes
            for got, value in zip(trained(model, make(model.parameters()), data), expected):
                rows = -(-value.shape[0] // N)
                close("fully_shard", got, value[rows * ME : rows * (ME + 1)])
            assert all(unit._full is None for unit in _units(model))
    outer = fully_shard(nn.Sequential(sharded(), nn.Linear(3, 2)))
    x = batches()[0][0]
    alone = nn.Sequential(net(), nn.Linear(3, 2))
    before = outer[1].weight
    with outer._unit.whole():
        whole = outer[1].weight
        alone[1].load_state_dict({"weight": whole, "bias": outer[1].bias})
    assert outer[1].weight is before and whole.shape == (2, 3)
    close("nested", outer(own(x)), own(alone(x)))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        weft.manual_seed(0)
        self.first, self.last = nn.Linear(5, 5), nn.Linear(5, 5)
        self.last.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        return self.last(self.first(x).tanh())


def check_fully_shard_of_shared_parameters() -> None:
    data = [(own(x), own(x)) for x, _ in batches()]
    for make in OPTIMIZERS:
        alone, model = Tied(), fully_shard(Tied())
        assert model.first.weight is model.last.weight and len(list(model.parameters())) == 3
        expected = trained(alone, make(alone.parameters()), [(x, x) for x, _ in batches()])
        rows = slice(-(-5 // N) * ME, -(-5 // N) * (ME + 1))
        for got, value in zip(trained(model, make(model.parameters()), data), expected):
            close("shared", got, value[rows])
    apart = Tied()
    fully_shard(apart.first)
    try:
        fully_shard(apart.last)
    except ValueError as error:
        assert "share a parameter in one unit, got weight of shape (5, 5) in two" in str(error)
    else:
        raise AssertionError("a parameter of two units is not noticed")


class Backwards(nn.Module):
    """Runs its layers from the last to the first."""

    def __init__(self) -> None:
        super().__init__()
        weft.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(3))

    def forward(self, x: Any) -> Any:
        for layer in reversed(self.layers):
            x = layer(x).tanh()
        return x


def check_fully_shard_in_another_order() -> None:
    """What is gathered ahead of a use that does not come is old after the step."""
    data = [(own(x), own(x)) for x, _ in batches()]
    for reshards in (True, False):
        alone, model = Backwards(), Backwards()
        for layer in model.layers:
            fully_shard(layer, reshard_after_forward=reshards)
        fully_shard(model)
        expected = trained(alone, OPTIMIZERS[0](alone.parameters()), [(x, x) for x, _ in batches()])
        rows = slice(-(-5 // N) * ME, -(-5 // N) * (ME + 1))
        results = trained(model, OPTIMIZERS[0](model.parameters()), data, evaluates=True)
        for got, value in zip(results, expected):
            close("another order", got, value[rows])


def check_fully_shard_of_several_dtypes() -> None:
    """Large parameters go alone, small ones of a dtype together."""

    def made() -> Any:
        weft.manual_seed(0)
        layers = [nn.Linear(4, 6), nn.Linear(4, 7).double(), nn.Linear(600, 2 * N * 300)]
        return nn.ModuleList(layers)

    model, alone = fully_shard(made()), made()
    assert [len(bundle.owners) for bundle in model._unit._bundles] == [3, 2, 1]
    with model._unit.whole():
        for layer, other in zip(model, alone):
            for name in ("weight", "bias"):
                got, value = getattr(layer, name), getattr(other, name)
                assert got.dtype == value.dtype and weft.equal(got, value), name
        sum(p.double().sum() * 2 for layer in model for p in (layer.weight, layer.bias)).backward()
    for shard in model.parameters():
        assert shard.grad.dtype == shard.dtype and weft.equal(shard.grad, weft.full_like(shard, 2))


class Checkpointed(nn.Module):
    """A part inside of a unit, and a unit, run again in backward."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first, self.layers, self.last = nn.Linear(5, 4), net(), nn.Linear(3, 3, bias=False)
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        x = checkpoint(lambda v: self.first(v) @ self.first.weight, x, use_reentrant=self.reentrant)
        x = checkpoint(self.layers, x.tanh(), use_reentrant=self.reentrant)
        return checkpoint(lambda v: self.last(v).exp(), x, use_reentrant=self.reentrant)


def check_fully_shard_of_checkpointed_parts() -> None:
    data = [(own(x).requires_grad_(), own(y)) for x, y in batches()]
    for reentrant, reshards in itertools.product((False, True), (False, True)):
        weft.manual_seed(0)
        alone = Checkpointed(reentrant)
        model = Checkpointed(reentrant)
        model.load_state_dict(alone.state_dict())
        for part in (*model.layers, model.layers, model):
            if list(part.parameters()):
                fully_shard(part, reshard_after_forward=reshards)
        everything = [(x.requires_grad_(), y) for x, y in batches()]
        expected = trained(alone, OPTIMIZERS[0](alone.parameters()), everything)
        for got, value in zip(trained(model, OPTIMIZERS[0](model.parameters()), data), expected):
            rows = -(-value.shape[0] // N)
            close("checkpointed", got, value[rows * ME : rows * (ME + 1)])
        assert all(unit._full is None for unit in _units(model))
        assert all(b._gathering is None for unit in _units(model) for b in unit._bundles)


def check_memory() -> None:
    """A step of Adam holds the shards, their gradients and state, and some whole layers."""
    width, depth = 128, 16
    model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(depth)))
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = weft.optim.Adam(model.parameters(), lr=0.01)
    x = weft.randn(1, width)
    before = memory.stats()["bytes_in_use"]
    layer_bytes = 4 * width * width
    assert memory.snapshot().bytes_cached < layer_bytes, memory.snapshot()  # no whole layers
    shards = depth * layer_bytes * (-(-width // N) / width)
    for _ in range(2):
        memory.reset_peak()
        model(x).sum().backward()
        optimizer.step()
    found = memory.stats()
    # Gradients and two moments, and perhaps a layer that is gathered, with the rows that are sent.
    # Beside them at the peak: layers, gradients and copies on their way, a third of all layers. Classes of sizes
    # make each up to an eighth larger; rows that N does not divide are not of a class's size.
    rounded = 9 / 8
    assert found["bytes_in_use"] - before < rounded * (3 * shards + 2 * layer_bytes), found
    assert found["peak_bytes_in_use"] - before < rounded * (3 * shards + depth * layer_bytes / 3), (
        found
    )


def check_ended_work_holds_no_tensors() -> None:
    """Not even where the thread that polls comes late."""
    for _ in range(8):
        dist.all_reduce(weft.ones(1 << 16), async_op=True).wait()
        assert not progress._works


def check_overlap() -> None:
    """The first bucket is summed before the last gradient is there."""
    events: list[str] = []

    class Gate(weft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            first.wait()  # would wait for ever if sums began behind backward
            events.append("backward goes on")
            return grad

    model = nn.Sequential(nn.Linear(5, 8), nn.Linear(8, 3))
    parallel = DistributedDataParallel(model, bucket_cap_mb=1e-4)
    first: Any = None

    def hook(state: Any, bucket: Any) -> Any:
        nonlocal first
        events.append(f"bucket {bucket.index()}{' is last' * bucket.is_last()}")
        bucket.buffer().div_(N)
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        assert work is not None
        first = first or work
        return work.get_future()

    parallel.register_comm_hook(None, hook)
    model.insert(1, gate := nn.Identity())
    gate.register_forward_hook(lambda module, args, output: Gate.apply(output))
    parallel(weft.randn(2, 5)).sum().backward()
    at = events.index("backward goes on")
    assert 0 < at < len(events) - 1 and events[-1].endswith("is last"), events


def check_hooks() -> None:
    for hook, close_to in ((hooks.allreduce_hook, 1e-6), (hooks.fp16_compress_hook, 1e-2)):
        alone, parallel = net(), DistributedDataParallel(net(), bucket_cap_mb=1e-4)
        parallel.register_comm_hook(None, hook)
        x, _ = batches()[0]
        alone(x).sum().div(N).backward()
        parallel(own(x)).sum().backward()
        for got, value in zip(parallel.parameters(), alone.parameters()):
            assert weft.allclose(got.grad, value.grad, close_to, close_to), (got.grad, value.grad)


def check_mesh() -> None:
    mesh = dist.init_device_mesh("cpu", (1, N), mesh_dim_names=("copies", "shards"))
    assert mesh.get_coordinate() == (0, ME) and mesh.get_local_rank("shards") == ME
    assert dist.get_process_group_ranks(mesh.get_group("copies")) == [ME]
    across = mesh["shards"]
    assert across.mesh.tolist() == list(range(N)) and mesh["copies"].mesh.tolist() == [ME]
    x = weft.tensor([float(ME)])
    dist.all_reduce(x, group=across.get_group())
    assert x.item() == N * (N - 1) / 2
    model = fully_shard(nn.Linear(2 * N, 3 * N), mesh=across)
    assert model.weight.shape == (3, 2 * N)
    outside = dist.DeviceMesh("cpu", [0])
    assert (outside.get_coordinate() is None) == (ME > 0)


def check_no_sync() -> None:
    model = net()
    parallel = DistributedDataParallel(model)
    (x, _), (y, _) = batches(2)
    with parallel.no_sync():
        parallel(own(x)).sum().backward()
    alone = net()
    alone(own(x)).sum().backward()
    close("no_sync", model[0].weight.grad, alone[0].weight.grad)
    parallel(own(y)).sum().backward()
    alone.zero_grad()
    (alone(x).sum() + alone(y).sum()).div(N).backward()
    close("after no_sync", model[0].weight.grad, alone[0].weight.grad)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(5, 2) for _ in range(N + 1))

    def forward(self, x: Any, which: int) -> Any:
        return {"out": self.layers[which](x)}


def check_unused() -> None:
    model = Branches()
    parallel = DistributedDataParallel(model, find_unused_parameters=True, bucket_cap_mb=1e-5)
    x = weft.ones(2, 5)
    for _ in range(2):
        model.zero_grad()
        parallel(x, ME)["out"].sum().backward()
        for layer in model.layers[:N]:  # each is used by one process
            close("unused", layer.weight.grad, weft.full((2, 5), 2.0 / N))
        assert model.layers[N].weight.grad is None  # by none
    strict = DistributedDataParallel(Branches())
    strict(x, 0)["out"].sum().backward()
    try:
        strict(x, 0)
    except RuntimeError as error:
        assert f"got none for {2 * N}" in str(error)
    else:
        raise AssertionError("parameters without gradients are not noticed")


def check_buffers() -> None:
    model = nn.Sequential(nn.BatchNorm1d(5))
    parallel = DistributedDataParallel(model, broadcast_buffers=True)
    for x, _ in batches():
        parallel(own(x)).sum().backward()
    means: list[Any] = [None] * N
    parallel.eval()
    parallel(own(x))
    dist.all_gather_object(means, model[0].running_mean)
    assert all(weft.equal(mean, means[0]) for mean in means)


def check_join() -> None:
    """Rank r has r + 1 batches. Those that are done count as zero."""
    for by_initial in (True, False):
        model, alone = nn.Linear(5, 1, bias=False), nn.Linear(5, 1, bias=False)
        with weft.no_grad():
            model.weight.zero_()
            alone.weight.zero_()
        parallel = DistributedDataParallel(model)
        optimizers = [weft.optim.SGD(each.parameters(), lr=1.0) for each in (parallel, alone)]
        x = weft.ones(1, 5)
        with parallel.join(divide_by_initial_world_size=by_initial):
            for _ in range(ME + 1):
                parallel(x).sum().backward()
                optimizers[0].step()
                optimizers[0].zero_grad()
        for step in range(N):
            active = N - step
            alone.weight.grad = weft.full((1, 5), active / N if by_initial else 1.0)
            optimizers[1].step()
        close("join", model.weight, alone.weight)
    try:
        with parallel.join(throw_on_early_termination=True):
            for _ in range(ME + 1):
                parallel(x).sum().backward()
    except RuntimeError as error:
        assert "expected batches in all processes" in str(error)
    else:
        assert N == 1, "join does not throw"


def check_batch_norm() -> None:
    x = weft.randn(2 * N, 3, 4, generator=weft.Generator().manual_seed(3))
    plain, synced = nn.BatchNorm1d(3), nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))
    whole, part = x.clone().requires_grad_(), own(x).clone().requires_grad_()
    expected, got = plain(whole), synced(part)
    close("SyncBatchNorm", got, own(expected))
    expected.pow(3).sum().backward()
    got.pow(3).sum().backward()
    close("its gradient", part.grad, own(whole.grad))
    close("running_mean", synced.running_mean, plain.running_mean)
    close("running_var", synced.running_var, plain.running_var)
    total = synced.weight.grad.clone()
    dist.all_reduce(total)
    close("weight", total, plain.weight.grad)


def check_gradients() -> None:
    """Each function against its derivative: d(sum over ranks of weight * result) / d input."""
    weights = [float(rank + 1) for rank in range(N)]
    total = sum(weights)

    def of(function: Callable[[Any], Any], each: float) -> Iterator[Any]:
        x = weft.full((N,), 1.0, requires_grad=True)
        result = function(x)
        results = result if isinstance(result, tuple) else (result,)
        sum(r.sum() * weights[ME] for r in results).backward()
        yield close(function.__name__, x.grad, weft.full((N,), each))

    def all_reduce(x: Any) -> Any:
        return through.all_reduce(x)

    def all_gather(x: Any) -> Any:
        return through.all_gather(x)

    def broadcast(x: Any) -> Any:
        return through.broadcast(x, 0)

    def reduce(x: Any) -> Any:
        return through.reduce(x, 0)

    def gather(x: Any) -> Any:
        return through.gather(x, 0)

    for function, each in (
        (all_reduce, total),
        (all_gather, total),
        (broadcast, total if ME == 0 else 0.0),
        (reduce, weights[0]),
        (gather, weights[0]),
    ):
        list(of(function, each))
    expected = weft.tensor(weights)
    x = weft.ones(N, 2, requires_grad=True)
    (through.reduce_scatter(weft.empty(2), list(x)) * weights[ME]).sum().backward()
    close("reduce_scatter", x.grad, expected[:, None].expand(N, 2))
    x = weft.ones(N, 2, requires_grad=True)
    parts = through.all_to_all([weft.empty(2) for _ in range(N)], list(x))
    sum(part.sum() for part in parts).mul(weights[ME]).backward()
    close("all_to_all", x.grad, expected[:, None].expand(N, 2))
    x = weft.ones(N, requires_grad=True)
    (through.all_to_all_single(weft.empty(N), x) * weights[ME]).sum().backward()
    close("all_to_all_single", x.grad, expected)
    x = weft.ones(N, 2, requires_grad=True)
    (through.scatter(list(x), 0) * weights[ME]).sum().backward()
    close("scatter", x.grad, expected[:, None].expand(N, 2) * (ME == 0))


def check_sampler() -> None:
    data = TensorDataset(weft.arange(5))
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=2, sampler=sampler)
    sampler.set_epoch(1)
    mine = [int(v) for (batch,) in loader for v in batch]
    every: list[Any] = [None] * N
    dist.all_gather_object(every, mine)
    assert {v for part in every for v in part} == set(range(5))


def check_different_modules() -> None:
    try:
        DistributedDataParallel(nn.Linear(3, 2 + ME))
    except RuntimeError as error:
        assert "on rank 0 and ('weight', [3, 3], 'torch.float32') on rank 1" in str(error), error
    else:
        assert N == 1, "different modules are not noticed"


for name, check in sorted(globals().items()):
    if name.startswith("check_"):
        check()
        dist.barrier()
