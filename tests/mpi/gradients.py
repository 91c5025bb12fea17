"""First and second derivatives through collectives, against one process that has what all have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft
import weft.distributed as dist
import weft.distributed.nn.functional as through
from weft.distributed import ReduceOp

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()
ROOT = N - 1
ROWS = [2 * rank + 2 for rank in range(N)]  # of what each rank sends to each other one


def total(xs: Sequence[Any]) -> Any:
    return sum(xs[1:], xs[0])


def own(xs: Sequence[Any]) -> Any:
    """The rows that others send to each rank: those of its number in theirs."""
    return [weft.cat([x.split(ROWS)[rank] for x in xs]) for rank in range(N)]


def empty() -> Any:
    return weft.empty(N * ROWS[ME], 2, dtype=weft.float64)


def at_root(x: Any) -> list[Any]:
    return [x if rank == ROOT else None for rank in range(N)]


# Name, what a rank computes of its tensor, what all of them do of all tensors: results by rank, None
# where what the rank has does not count.
CASES: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("all_reduce", through.all_reduce, lambda xs: [total(xs)] * N),
    (
        "all_reduce AVG",
        lambda x: through.all_reduce(x, ReduceOp.AVG),
        lambda xs: [total(xs) / N] * N,
    ),
    ("broadcast", lambda x: through.broadcast(x, ROOT), lambda xs: [xs[ROOT]] * N),
    ("reduce", lambda x: through.reduce(x, ROOT), lambda xs: at_root(total(xs))),
    (
        "reduce AVG",
        lambda x: through.reduce(x, ROOT, ReduceOp.AVG),
        lambda xs: at_root(total(xs) / N),
    ),
    (
        "all_gather",
        lambda x: weft.cat(through.all_gather(x)),
        lambda xs: [weft.cat(list(xs))] * N,
    ),
    (
        "gather",
        lambda x: weft.cat(through.gather(x, ROOT)),
        lambda xs: at_root(weft.cat(list(xs))),
    ),
    (
        "scatter",
        lambda x: through.scatter(x.chunk(N), ROOT),
        lambda xs: list(xs[ROOT].chunk(N)),
    ),
    *(
        (
            f"reduce_scatter {op.name}",
            lambda x, op=op: through.reduce_scatter(weft.empty_like(x.chunk(N)[0]), x.chunk(N), op),
            lambda xs, by=by: [total(parts) / by for parts in zip(*(x.chunk(N) for x in xs))],
        )
        for op, by in ((ReduceOp.SUM, 1), (ReduceOp.AVG, N))
    ),
    (
        "all_to_all",
        lambda x: weft.cat(through.all_to_all(empty().chunk(N), x.split(ROWS))),
        own,
    ),
    (
        "all_to_all_single",
        lambda x: through.all_to_all_single(empty(), x, [ROWS[ME]] * N, ROWS),
        own,
    ),
]


def made(rank: int) -> Any:
    rows = sum(ROWS)
    x = (weft.arange(rows * 2, dtype=weft.float64) * 0.7 + rank).sin().view(rows, 2)
    return x.requires_grad_()


def loss_of(result: Any, rank: int) -> Any:
    return 0.0 if result is None else (result.pow(3) * (rank + 1)).sum()


def close(what: str, got: Any, expected: Any) -> None:
    assert weft.allclose(got, expected, 1e-12, 1e-12), f"{what}: {got} is not {expected}"


def check_case(name: str, here: Callable[[Any], Any], all_: Callable[[Any], Any]) -> None:
    xs = [made(rank) for rank in range(N)]
    losses = [loss_of(result, rank) for rank, result in enumerate(all_(xs))]
    firsts = weft.autograd.grad(sum(losses), xs, create_graph=True, materialize_grads=True)
    whole = sum((g.square() * (rank + 1)).sum() for rank, g in enumerate(firsts))
    seconds = weft.autograd.grad(whole, xs, materialize_grads=True)

    x = made(ME)
    result = here(x)
    counts = all_(xs)[ME] is not None
    if counts:
        close(name, result, all_(xs)[ME])
    # All processes run backward, so all have losses whose gradients depend on what they have.
    loss = loss_of(result, ME) if counts else loss_of(result, -1)
    (first,) = weft.autograd.grad(loss, x, create_graph=True)
    close(f"gradient of {name}", first, firsts[ME])
    (second,) = weft.autograd.grad((first.square() * (ME + 1)).sum(), x)
    close(f"second gradient of {name}", second, seconds[ME])


def check_other_reductions() -> None:
    """Of the greatest one there is no gradient by sums; PyTorch gives a wrong one."""
    for function in (through.all_reduce, lambda x, op: through.reduce(x, ROOT, op)):
        try:
            function(made(ME), ReduceOp.MAX).sum().backward()
        except RuntimeError as error:
            assert "expected SUM or AVG for a gradient, got MAX" in str(error), error
        else:
            raise AssertionError("a gradient of MAX")


def check_infinite_gradients() -> None:
    x = made(ME)
    (through.broadcast(x, ROOT) * float("inf")).sum().backward()
    assert x.grad.isinf().all() if ME == ROOT else not x.grad.any(), x.grad


for name, here, all_ in CASES:
    check_case(name, here, all_)
    dist.barrier()
check_other_reductions()
check_infinite_gradients()
