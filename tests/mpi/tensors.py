"""DTensors against the plain tensors that they are: placements, operators, parallel modules."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import weft
import weft.distributed as dist
from weft import nn
from weft.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)
from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()
MESH = dist.init_device_mesh("cpu", (N,))
F = nn.functional


def made(*sizes: int, seed: float = 0.0) -> Any:
    """The same numbers in all processes."""
    count = weft.Size(sizes).numel()
    return (weft.arange(count, dtype=weft.float64) * 0.7 + 0.3 + seed).sin().view(sizes)


def close(what: str, got: Any, expected: Any) -> None:
    assert got.shape == expected.shape, f"{what}: {got.shape} is not {expected.shape}"
    assert weft.allclose(got, expected, 1e-10, 1e-10), f"{what}: {got} is not {expected}"


def placed(x: Any, placement: Any, mesh: Any = MESH) -> Any:
    """A DTensor leaf of a plain tensor; of a sum, terms that differ by process."""
    placements = placement if isinstance(placement, (list, tuple)) else [placement]
    if not any(each.is_partial() for each in placements):
        return distribute_tensor(x, mesh, placements).requires_grad_(x.is_floating_point())
    assert len(placements) == 1
    if placements[0].reduce_op == "sum":
        local = x / N + (x * (ME + 1) if ME < N - 1 else -x * (N - 1) * N / 2)
    else:
        local = x + (ME - (N - 1) / 2 if placements[0].reduce_op == "avg" else -ME)
    return DTensor.from_local(local, mesh, placements).detach().requires_grad_()


def check_placements() -> None:
    """Every change of placement leaves the tensor, and its gradient is that of the tensor."""
    sources = [Shard(0), Shard(1), Replicate(), Partial(), Partial("avg"), Partial("max")]
    for sizes in ((6, 12), (5, 3), (1, 2)):
        x, weight = made(*sizes), made(*sizes, seed=1.0)
        for source, target in itertools.product(sources, (Shard(0), Shard(1), Replicate())):
            what = f"{sizes} from {source} to {target} on {N}"
            tensor = placed(x, source)
            close(what, tensor.full_tensor(), x)
            result = tensor.redistribute(placements=[target])
            assert result.placements == (target,) and result.shape == x.shape
            close(what, result.full_tensor(), x)
            (result * placed(weight, target)).sum().backward()
            assert tensor.grad is tensor.grad
            if source != Partial("max") or ME == 0:
                factor = {"avg": 1 / N}.get(getattr(source, "reduce_op", ""), 1)
                got = (
                    tensor.grad.full_tensor()
                    if source != Partial("max")
                    else tensor.grad.to_local()
                )
                close(f"gradient of {what}", got, weight * factor)
        for source in sources:
            for target in (Partial(), Partial("max")):
                if source != target:
                    try:
                        placed(x, source).redistribute(placements=[target])
                    except RuntimeError as error:
                        assert "redistribute: expected Shard or Replicate, got" in str(error)
                    else:
                        raise AssertionError(f"{source} became {target}")


def mlp(hidden: int) -> Any:
    weft.manual_seed(3)
    return nn.Sequential(nn.Linear(6, hidden), nn.GELU(), nn.Linear(hidden, 5)).double()


def grads_equal(what: str, module: Any, plain: Any) -> None:
    for (name, one), (_, other) in zip(module.named_parameters(), plain.named_parameters()):
        grad = one.grad.full_tensor() if isinstance(one, DTensor) else one.grad
        close(f"{what}: gradient of {name}", grad, other.grad)


def check_mlp() -> None:
    train_mlp(12, use_local_output=True)
    train_mlp(10, use_local_output=False)  # parts of several sizes


def train_mlp(hidden: int, use_local_output: bool) -> None:
    plain = mlp(hidden)
    first = ColwiseParallel(use_local_output=use_local_output)
    module = parallelize_module(copy.deepcopy(plain), MESH, {"0": first, "2": RowwiseParallel()})
    assert [p.placements for p in module.parameters()] == [
        *((Shard(0),), (Shard(0),), (Shard(1),), (Replicate(),))
    ]
    optimizers = [weft.optim.AdamW(each.parameters(), 0.1) for each in (plain, module)]
    for step in range(3):
        x = made(4, 6, seed=float(step)).requires_grad_()
        other = x.detach().clone().requires_grad_()
        expected, got = plain(x), module(other)
        close("mlp", got, expected)
        expected.pow(3).sum().backward()
        got.pow(3).sum().backward()
        close("mlp: gradient of the input", other.grad, x.grad)
        grads_equal("mlp", module, plain)
        for each in optimizers:
            each.step()
            each.zero_grad()


CHECKS: list[Callable[[], None]] = [check_placements, check_mlp]

if __name__ == "__main__":
    for check in CHECKS:
        check()
    dist.destroy_process_group()
