"""Training of two processes that PyTorch with gloo and weft with MPI run: prints what all got.

Every case is a function of this module whose name begins with `case_`; an error counts by its class.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as through
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data.distributed import DistributedSampler

warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo")
ME, N = dist.get_rank(), dist.get_world_size()
ALL = ("a", "b", "c")


def filled(model: Any, shift: float = 0.0) -> Any:
    """A model with parameters that no generator draws."""
    with torch.no_grad():
        for at, p in enumerate(model.parameters()):
            p.copy_((torch.arange(p.numel()) * 0.7 + at + shift).sin().view(p.shape))
    return model


def batch(step: int = 0) -> Any:
    return (torch.arange(12) * 0.3 + step + ME).cos().view(3, 4)


class Layers(nn.Module):
    """Runs those of its layers that a call names."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Any, names: Any = ("a", "b")) -> Any:
        for name in names:
            x = getattr(self, name)(x).tanh()
        return x


def grads(model: Any) -> list[Any]:
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def steps(model: Any, *calls: Any, clears: bool = True) -> list[Any]:
    """The gradients of each of some calls, which name layers."""
    found = []
    for at, names in enumerate(calls):
        if clears:
            model.zero_grad()
        model(batch(at), names).sum().backward()
        found.append(grads(model))
    return found


def case_unused() -> Any:
    model = DistributedDataParallel(filled(Layers(), ME), find_unused_parameters=True)
    return steps(model, "ab", "ab", "c")


def case_unused_by_one() -> Any:
    model = DistributedDataParallel(filled(Layers()), find_unused_parameters=True)
    return steps(model, *["a" if ME == 0 else "bc"] * 2, clears=False)


def case_unused_of_a_static_graph() -> Any:
    return steps(DistributedDataParallel(filled(Layers()), static_graph=True), "ab", "ab", "ab")


def case_unused_and_not_said() -> Any:
    return steps(DistributedDataParallel(filled(Layers())), "ab", "ab")


def case_no_sync() -> Any:
    model = DistributedDataParallel(filled(Layers()), find_unused_parameters=True)
    found = []
    for _ in range(2):
        with model.no_sync():
            found += steps(model, "abc", clears=False)
        found += steps(model, "abc", clears=False)
        model.zero_grad()
    return found


def case_two_forwards() -> Any:
    model = DistributedDataParallel(filled(Layers()))
    (model(batch(0), ALL).sum() + model(batch(1), ALL).sum()).backward()
    return grads(model)


def case_two_forwards_of_different_parameters() -> Any:
    model = DistributedDataParallel(filled(Layers()), find_unused_parameters=True)
    (model(batch(0), "ab").sum() + model(batch(1), "c").sum()).backward()
    return grads(model)


def case_frozen() -> Any:
    model = filled(Layers(), ME)
    model.a.weight.requires_grad_(False)
    return [*steps(DistributedDataParallel(model), "abc"), model.a.weight.detach()]


def case_ignored() -> Any:
    model = filled(Layers(), ME)
    ignore = DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
    ignore(model, ["a.weight"])
    return steps(DistributedDataParallel(model), "abc")


def case_views() -> Any:
    model = DistributedDataParallel(filled(Layers()), gradient_as_bucket_view=True)
    found = steps(model, "abc", "abc")
    return found + steps(model, "abc", "abc", clears=False)


def case_several_dtypes() -> Any:
    model = DistributedDataParallel(
        filled(nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4).double()]))
    )
    first, last = model.module
    model.module.forward = lambda x: last(first(x).double())
    model(batch()).sum().backward()
    return grads(model)


def case_recomputed() -> Any:
    model = filled(Layers())
    inner = model.forward
    model.forward = lambda x, names: checkpoint(inner, x, names, use_reentrant=False)
    return steps(DistributedDataParallel(model), "abc")


def normalised() -> Any:
    return filled(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), ME)


def case_buffers() -> Any:
    found = []
    for sends in (True, False):
        model = DistributedDataParallel(normalised(), broadcast_buffers=sends)
        for at in range(3):
            model(batch(at)).square().sum().backward()
            found.append([b.clone() for b in model.buffers()])
    return found


def case_join() -> Any:
    found = []
    for by_initial in (True, False):
        model = DistributedDataParallel(normalised() if by_initial else filled(nn.Linear(4, 4), ME))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with model.join(divide_by_initial_world_size=by_initial):
            for at in range(2 + 3 * ME):
                optimizer.zero_grad()
                model(batch(at)).square().sum().backward()
                optimizer.step()
        found.append(list(model.state_dict().values()))
    return found


def case_join_that_throws() -> Any:
    model = DistributedDataParallel(filled(nn.Linear(4, 4)))
    with model.join(throw_on_early_termination=True):
        for at in range(2 + ME):
            model(batch(at)).sum().backward()


def case_hooks() -> Any:
    def summed(buffer: Any, factor: float) -> Any:
        work = dist.all_reduce(buffer.div_(4), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] * factor)

    own: Any = lambda state, bucket: summed(bucket.buffer(), state)  # noqa: E731 - not annotated
    found = []
    wrapped = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    for state, hook in ((3, own), (None, default_hooks.allreduce_hook), (None, wrapped)):
        model = DistributedDataParallel(filled(nn.Linear(4, 4)))
        model.register_comm_hook(state, hook)
        model(batch()).sum().backward()
        found.append(grads(model))
    return found


def case_a_second_hook() -> Any:
    model = DistributedDataParallel(filled(nn.Linear(4, 4)))
    for _ in range(2):
        model.register_comm_hook(None, default_hooks.allreduce_hook)


def trained(model: Any, optimizer: Any, count: int) -> None:
    for at in range(count):
        optimizer.zero_grad()
        model(batch(at), ALL).square().sum().backward()
        optimizer.step()


def case_zero_redundancy() -> Any:
    found = []
    for kind, options in (
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.Adam, {"lr": 0.01}),
        (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    ):
        model = DistributedDataParallel(filled(Layers()))
        optimizer = ZeroRedundancyOptimizer(model.parameters(), kind, **options)
        trained(model, optimizer, 4)
        optimizer.consolidate_state_dict(1)
        state = optimizer.state_dict() if ME == 1 else {"state": {}, "param_groups": []}
        owners = [sorted(p.shape for p in g["params"]) for g in optimizer.optim.param_groups]
        found.append([list(model.parameters()), state["state"], owners])
        found.append([sorted(group) for group in state["param_groups"]])
    return found


def case_zero_redundancy_of_groups() -> Any:
    model = DistributedDataParallel(filled(Layers()))
    groups = [
        {"params": list(model.module.a.parameters()), "lr": 0.5},
        {"params": list(model.module.b.parameters())},
    ]
    optimizer = ZeroRedundancyOptimizer(groups, torch.optim.SGD, lr=0.1)
    optimizer.add_param_group({"params": list(model.module.c.parameters()), "lr": 0.01})
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        trained(model, optimizer, 1)
        schedule.step()
    return [list(model.parameters()), [group["lr"] for group in optimizer.param_groups]]


def case_join_of_zero_redundancy() -> Any:
    model = DistributedDataParallel(filled(Layers()))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    with Join([model, optimizer]):
        trained(model, optimizer, 2 + 2 * ME)
    return list(model.parameters())


def case_sampler() -> Any:
    return [
        [len(sampler), *sampler]
        for size in (1, 2, 5, 7, 10)
        for count in (2, 3, 4)
        for rank in range(count)
        for shuffle in (True, False)
        for drop_last in (True, False)
        for epoch in (0, 3)
        for sampler in [DistributedSampler(range(size), count, rank, shuffle, 5, drop_last)]
        for _ in [sampler.set_epoch(epoch)]
    ]


def case_through_collectives() -> Any:
    """Results and gradients; what a reduction leaves elsewhere than at its root does not count."""
    calls: list[Callable[[Any], Any]] = [
        through.all_reduce,
        through.all_gather,
        lambda x: through.broadcast(x, 1),
        lambda x: through.reduce(x, 1) * ME,
        lambda x: through.gather(x, 1),
        lambda x: through.scatter([x, x * 2], 0),
        lambda x: through.reduce_scatter(torch.zeros(2), [x, x * 3]),
        lambda x: through.all_to_all([torch.zeros(2), torch.zeros(2)], [x, x * 5]),
        lambda x: through.all_to_all_single(torch.zeros(2), x),
    ]
    found = []
    for call in calls:
        x = torch.tensor([1.0 + ME, 2.0], requires_grad=True)
        result = call(x)
        results = list(result) if isinstance(result, list | tuple) else [result]
        sum((each.square() * (ME + 1)).sum() for each in results).backward()
        found.append([results, x.grad])
    return found


def plain(value: Any) -> Any:
    """Lists of numbers, for JSON."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.detach().tolist() if isinstance(value, torch.Tensor) else value


own: dict[str, Any] = {}
for name, case in sorted(globals().items()):
    if name.startswith("case_"):
        try:
            own[name] = plain(case())
        except Exception as error:
            own[name] = type(error).__name__
        dist.barrier()
every: list[Any] = [None] * N
dist.all_gather_object(every, own)
if ME == 0:
    print(json.dumps(every))
dist.barrier()
dist.destroy_process_group()
