"""A program of two processes that PyTorch with gloo and weft with MPI run: prints what all got."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
ME, N = dist.get_rank(), dist.get_world_size()
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8)
OPERATORS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def made(dtype: Any = torch.float32) -> Any:
    """Other whole numbers on each rank."""
    return (torch.arange(6) * 3 + 2 * ME + 1).remainder(7).to(dtype).view(2, 3)


def empty(dtype: Any) -> list[Any]:
    return [torch.zeros(2, 3, dtype=dtype) for _ in range(N)]


def all_reduce(dtype: Any) -> Any:
    names = OPERATORS if dtype in (torch.int64, torch.uint8) else OPERATORS[:4]
    results = []
    for name in names:
        dist.all_reduce(x := made(dtype), getattr(dist.ReduceOp, name))
        results.append(x)
    return results


def reduce(dtype: Any) -> Any:
    dist.reduce(x := made(dtype), 1)
    return x if ME == 1 else []


def broadcast(dtype: Any) -> Any:
    dist.broadcast(x := made(dtype), 1)
    return x


def all_gather(dtype: Any) -> Any:
    dist.all_gather(places := empty(dtype), made(dtype))
    dist.all_gather_into_tensor(whole := torch.zeros(2 * N, 3, dtype=dtype), made(dtype))
    return [*places, whole]


def gather(dtype: Any) -> Any:
    places = empty(dtype)
    dist.gather(made(dtype), places if ME == 0 else None, 0)
    return places if ME == 0 else []


def scatter(dtype: Any) -> Any:
    dist.scatter(x := torch.zeros(2, 3, dtype=dtype), [made(dtype)] * N if ME == 1 else None, 1)
    return x


def reduce_scatter(dtype: Any) -> Any:
    dist.reduce_scatter(x := torch.zeros(3, dtype=dtype), list(made(dtype)))
    return x


def all_to_all(dtype: Any) -> Any:
    sizes = [1, 2] if ME == 0 else [2, 1]
    x = torch.zeros(3, dtype=dtype)
    dist.all_to_all_single(x, made(dtype).flatten()[:3].contiguous(), sizes, sizes)
    return x


def send_and_receive(dtype: Any) -> Any:
    x = torch.zeros(2, 3, dtype=dtype)
    works = [dist.isend(made(dtype), 1 - ME), dist.irecv(x, 1 - ME)]
    for work in works:
        work.wait()
    return x


def sub_group(dtype: Any) -> Any:
    group = dist.new_group([1])
    x = made(dtype)
    dist.all_reduce(x, group=group)  # which leaves the other's tensor, with a warning
    return x


COLLECTIVES: tuple[Callable[[Any], Any], ...] = (
    *(all_reduce, reduce, broadcast, all_gather, gather, scatter),
    *(reduce_scatter, all_to_all, send_and_receive, sub_group),
)


def trained(make: Callable[[Any], Any], **options: Any) -> list[Any]:
    """Parameters and losses of a small model, from values that no generator draws."""
    model = nn.Sequential(
        nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)
    )
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((torch.arange(p.numel()) * 0.7 + ME).sin().view(p.shape))  # rank 0's count
    parallel = nn.parallel.DistributedDataParallel(model, **options)
    optimizer = make(parallel.parameters())
    losses = []
    for step in range(5):
        x = (torch.arange(12) * 0.3 + step + ME).cos().view(3, 4)
        optimizer.zero_grad()
        loss = parallel(x).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*model.state_dict().values(), *losses]


def listed(value: Any) -> Any:
    if isinstance(value, list):
        return [listed(each) for each in value]
    return value.tolist()


own: dict[str, Any] = {
    f"{f.__name__} {str(dtype)[6:]}": listed(f(dtype)) for f in COLLECTIVES for dtype in DTYPES
}
own["sgd"] = listed(trained(lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)))
own["adam"] = listed(trained(lambda p: torch.optim.Adam(p, lr=0.01), gradient_as_bucket_view=True))
every: list[Any] = [None] * N
dist.all_gather_object(every, own)
if ME == 0:
    print(json.dumps(every))
dist.barrier()
dist.destroy_process_group()
