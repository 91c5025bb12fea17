"""Collectives that return new tensors, and their gradients, against what all processes have."""

from __future__ import annotations

from typing import Any

import weft
import weft.distributed as dist
from weft.distributed import _functional_collectives as collectives

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()
MESH = dist.init_device_mesh("cpu", (N,))
GROUPS = (dist.group.WORLD, MESH, (MESH, 0), list(range(N)))


def made(rank: int, *sizes: int) -> Any:
    count = weft.Size(sizes).numel()
    return (weft.arange(count, dtype=weft.float64) * 0.7 + rank).sin().view(sizes)


def check(what: str, got: Any, expected: Any, x: Any, grad: Any) -> None:
    assert weft.allclose(got, expected), f"{what}: {got} is not {expected}"
    (got * weft.ones_like(got)).sum().backward()
    assert weft.allclose(x.grad, weft.full_like(x, grad)), f"{what}: gradient {x.grad}"


def raises(error: type[Exception], function: Any, *args: Any) -> None:
    try:
        function(*args)
    except error:
        return
    raise AssertionError(f"{function} does not raise {error}")


every = [made(rank, 2 * N, 3 * N) for rank in range(N)]
total = sum(every[1:], every[0])
for group in GROUPS:
    for name, expected, grad in (("sum", total, N), ("avg", total / N, 1.0)):
        x = every[ME].clone().requires_grad_()
        check(name, collectives.all_reduce(x, name, group), expected, x, grad)
        for dim in (0, 1, -1):
            x = every[ME].clone().requires_grad_()
            got = collectives.reduce_scatter_tensor(x, name, dim, group)
            check(f"reduce_scatter {dim}", got, expected.chunk(N, dim)[ME], x, grad / N)
    for dim in (0, 1, -1):
        x = every[ME].clone().requires_grad_()
        check("gather", collectives.all_gather_tensor(x, dim, group), weft.cat(every, dim), x, N)
    x = every[ME].clone().requires_grad_()
    sent = weft.cat([each.chunk(N)[ME] for each in every])
    check("all_to_all", collectives.all_to_all_single(x, None, None, group), sent, x, 1)
    x = every[ME].clone().requires_grad_()
    got = collectives.broadcast(x, N - 1, group)
    check("broadcast", got, every[N - 1], x, N if ME == N - 1 else 0)
    assert collectives.wait_tensor(x) is x
    got = collectives.all_reduce_coalesced([every[ME], every[ME] * 2], "max", group)
    assert weft.equal(got[1], weft.stack(every).amax(0) * 2)
raises(ValueError, collectives.all_reduce, x, "most", dist.group.WORLD)
raises(ValueError, collectives.all_reduce, x, "sum", [0, N + 1])
if N > 1:
    raises(ValueError, collectives.reduce_scatter_tensor, made(0, N + 1), "sum", 0, MESH)
dist.destroy_process_group()
