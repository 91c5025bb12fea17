"""DTensors against the plain tensors that they are: placements, operators, parallel modules."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import weft
import weft.distributed as dist
import weft.distributed.tensor as tensor_module
from weft import nn
from weft.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()
MESH = dist.init_device_mesh("cpu", (N,))


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


def fails(kind: type[Exception], text: str, function: Callable[..., Any], *args: Any) -> None:
    try:
        function(*args)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"expected {kind.__name__}: {text}")


def check_meshes() -> None:
    """All changes of two placements, also where both cut one dimension."""
    if N == 4:
        for shape in ((2, 2), (4, 1)):
            mesh = dist.init_device_mesh("cpu", shape)
            x = made(7, 5)
            both = list(itertools.product((Shard(0), Shard(1), Replicate()), repeat=2))
            for source, target in itertools.product(both, both):
                tensor = placed(x, source, mesh)
                result = tensor.redistribute(placements=target)
                assert result.to_local().shape == result._layout.local_shape()
                close(f"{source} to {target}", result.full_tensor(), x)
                (result * placed(x, target, mesh)).sum().backward()
                close(f"{source} to {target}: gradient", tensor.grad.full_tensor(), x)
                product = tensor @ placed(x, target, mesh).t()
                close(f"{source} and {target}", product.full_tensor(), x @ x.t())


def check_local() -> None:
    """Gradients of what from_local takes and to_local gives."""
    local = made(2, 3, seed=float(ME)).requires_grad_()
    x = DTensor.from_local(local, MESH, [Shard(0)])
    assert x.shape == (2 * N, 3)
    weight = made(2 * N, 3)
    (x.full_tensor() * weight).sum().backward()
    close("from_local", local.grad, weight[2 * ME : 2 * ME + 2])
    same = made(2, 3).requires_grad_()
    x = DTensor.from_local(same, MESH, [Replicate()])
    (x.to_local(grad_placements=[Partial()]) * (ME + 1)).sum().backward()
    close("grad_placements", same.grad, weft.full_like(same, N * (N + 1) / 2))
    other = DTensor.from_local(local, MESH, [Shard(0)], shape=(2 * N, 3))
    (second,) = weft.autograd.grad(other.pow(3).sum(), local, create_graph=True)
    (third,) = weft.autograd.grad(second.sum(), local)
    close("second derivative", third, 6 * local.detach())
    different = made(2, 3, seed=float(ME))
    x = DTensor.from_local(different, MESH, [Replicate()], run_check=True)
    close("run_check", x.to_local(), made(2, 3))


def check_new() -> None:
    """Factories, and numbers that are drawn as one process would."""
    options = {"device_mesh": MESH, "placements": [Shard(1)]}
    for name in ("zeros", "ones", "rand", "randn"):
        weft.manual_seed(5)
        expected = getattr(weft, name)(3, 5)
        weft.manual_seed(5)
        got = getattr(tensor_module, name)(3, 5, **options)
        assert got.placements == (Shard(1),)
        close(name, got.full_tensor(), expected)
    got = tensor_module.full((3, 5), 7.0, **options, requires_grad=True)
    assert got.requires_grad and got.is_leaf
    close("full", got.full_tensor(), weft.full((3, 5), 7.0))
    assert tensor_module.empty([3, 5], dtype=weft.int32, **options).dtype == weft.int32
    weft.manual_seed(6)
    expected = weft.empty(3, 5).normal_()
    weft.manual_seed(6)
    close("normal_", tensor_module.empty(3, 5, **options).normal_().full_tensor(), expected)


def check_in_place() -> None:
    x = placed(made(5, 3), Shard(0)).detach()
    x += 1
    x.mul_(placed(made(3), Shard(0)).detach()).clamp_(-1, 1)
    expected = (made(5, 3) + 1).mul_(made(3)).clamp_(-1, 1)
    close("in place", x.full_tensor(), expected)
    x.copy_(placed(expected * 2, Replicate()).detach())
    close("copy_", x.full_tensor(), expected * 2)
    assert x.placements == (Shard(0),)
    term = DTensor.from_local(made(5, 3), MESH, [Partial()])
    fails(RuntimeError, "exp_: expected operands that leave the placements", term.exp_)


def check_elements() -> None:
    x = placed(made(5, 3), Shard(0)).detach()
    close("item", weft.tensor(x.sum().item(), dtype=weft.float64), made(5, 3).sum())
    assert bool((x.abs() < 2).all()) and len(x) == 5 and x.stride() == (3, 1) and x.numel() == 15
    assert [row.shape for row in x] == [(3,)] * 5 and x.size(0) == 5
    assert "placements=(Shard(dim=0),))" in repr(x)
    for name in ("numpy", "tolist"):
        fails(RuntimeError, f"{name}: expected a plain tensor, got a DTensor", getattr(x, name))
    fails(RuntimeError, "add: expected DTensors alone, got a plain", lambda: x + made(5, 3))
    fails(NotImplementedError, "linalg_svd: expected an operator with a rule", weft.linalg.svd, x)
    for wrong in (
        lambda x: x.sum(5),
        lambda x: x.transpose(0, 7),
        lambda x: x.select(0, 9),
        lambda x: x + x[:4],
        lambda x: x @ x,
    ):
        messages = []
        for each in (x, made(5, 3)):
            try:
                wrong(each)
            except (IndexError, RuntimeError) as error:
                messages.append(f"{type(error)} {error}")
        assert len(messages) == 2 and len(set(messages)) == 1, messages
    fails(RuntimeError, "view: expected sizes of 15 elements, got [7]", x.view, 7)
    fails(RuntimeError, "all_reduce: expected plain tensors, got a DTensor", dist.all_reduce, x)
    ddp = nn.parallel.DistributedDataParallel
    linear = tensor_module.distribute_module(nn.Linear(2, 2), MESH)
    fails(RuntimeError, "expected plain tensors, got a DTensor", ddp, linear)
    fails(RuntimeError, "broadcast: expected plain tensors", dist.fsdp.fully_shard, linear)
    fails(RuntimeError, "no vmap around it", weft.func.vmap(lambda row: row * 2), x)
    program = weft.jit.CompilationUnit("def f(x):\n    return x.sum(0)\n").f
    fails(NotImplementedError, "expected a plain tensor in a program, got a DTensor", program, x)
    compiled = weft.compile(lambda x: x.sum(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close("compile", compiled(x).full_tensor(), made(5, 3).sum(0))
        module = weft.compile(tensor_module.distribute_module(nn.Linear(3, 2).double(), MESH))
        assert module(x).placements == (Shard(0),)
    fails(TypeError, "pickle: expected a tensor of one process", pickle.dumps, x)
    assert copy.deepcopy(x).placements == x.placements


CHECKS: list[Callable[[], None]] = [
    check_placements,
    check_meshes,
    check_local,
    check_new,
    check_in_place,
    check_elements,
]

if __name__ == "__main__":
    for check in CHECKS:
        check()
    dist.destroy_process_group()
