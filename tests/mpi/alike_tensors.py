"""DTensors by PyTorch with gloo and by weft with MPI: prints what each of two processes has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel
from torch.nn import functional as F

dist.init_process_group("gloo")
MESH = init_device_mesh("cpu", (dist.get_world_size(),))


def made(placement: Any, *sizes: int) -> Any:
    x = (torch.arange(torch.Size(sizes).numel()) * 3 % 7).float().view(sizes)
    if placement.is_partial():
        return DTensor.from_local(x * (dist.get_rank() + 1), MESH, [placement])
    return distribute_tensor(x, MESH, [placement])


ONE: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "shard 0": lambda x: x.redistribute(MESH, [Shard(0)]),
    "shard 1": lambda x: x.redistribute(MESH, [Shard(-1)]),
    "replicate": lambda x: x.redistribute(placements=[Replicate()]),
    "scalar": lambda x: x * 2,
    "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(),
    "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1, keepdim=True),
    "max": lambda x: x.max(),
    "amin": lambda x: x.amin(0),
    "t": lambda x: x.t(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "permute": lambda x: x.permute(1, 0),
    "view": lambda x: x.view(4, 3, 2),
    "flatten": lambda x: x.flatten(),
    "expand": lambda x: x.expand(2, 4, 6),
    "softmax": lambda x: x.redistribute(placements=[Shard(0)]).softmax(1),
    "layer_norm": lambda x: F.layer_norm(x.redistribute(placements=[Shard(0)]), (6,)),
    "sort": lambda x: x.redistribute(placements=[Shard(0)]).sort(1)[0],
    "zeros": lambda x: torch.zeros_like(x),
    "clone": lambda x: x.clone(),
    "square": lambda x: x**2,
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "product": lambda x, y: x @ y.t(),
    "linear": lambda x, y: F.linear(x, y),
    "mm": lambda x, y: torch.mm(x.t(), y),
    "cat": lambda x, y: torch.cat([x, y]),
}
PLACEMENTS = (Replicate(), Partial(), Shard(0), Shard(1))


def shown(function: Callable[..., Any], *given: Any) -> Any:
    try:
        result = function(*given)
    except RuntimeError:  # which every process raises
        return None
    local = result.to_local()
    return [str(result.placements), list(result.shape), list(local.shape), local.tolist()]


def results() -> dict[str, Any]:
    found = {}
    for one in PLACEMENTS:
        for name, function in ONE.items():
            found[f"{name} {one}"] = shown(function, made(one, 4, 6))
            if name in ("itself", "replicate", "shard 0", "shard 1", "sum 0", "scalar"):
                found[f"{name} {one} uneven"] = shown(function, made(one, 3, 5))
        for two in PLACEMENTS:
            for name, binary in TWO.items():
                found[f"{name} {one} {two}"] = shown(binary, made(one, 4, 6), made(two, 4, 6))
    styles = (ColwiseParallel(), RowwiseParallel(), SequenceParallel(), Shard(-1), Partial("avg"))
    found["reprs"] = [repr(each) for each in styles] + [str(each) for each in PLACEMENTS]
    return found


if __name__ == "__main__":
    everywhere: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, results())
    if dist.get_rank() == 0:
        print(json.dumps(everywhere))
    dist.destroy_process_group()
