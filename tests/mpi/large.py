"""Messages of more than 2^31 bytes between two processes: in pieces by elements, and in one."""

from __future__ import annotations

import weft
import weft.distributed as dist
from weft import memory

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()
BYTES = 2**31 + 64


def made(dtype: weft.dtype) -> weft.Tensor:
    """The rank and one at the beginning, other numbers in the middle and at the end."""
    x = weft.full((BYTES // dtype.itemsize,), ME + 1, dtype=dtype)
    x[len(x) // 2], x[-1] = ME + 3, ME + 5
    return x


def holds(x: weft.Tensor, *numbers: float) -> None:
    found = [x[0].item(), x[-2].item(), x[len(x) // 2].item(), x[-1].item()]
    assert found == [numbers[0], *numbers], found


def check_gather(x: weft.Tensor) -> None:
    places = [weft.empty_like(x) for _ in range(N)] if ME == 0 else None
    dist.gather(x, places)
    for rank, place in enumerate(places or ()):
        holds(place, rank + 1, rank + 3, rank + 5)


def check_transfer(x: weft.Tensor) -> None:
    if ME == 1:
        dist.send(x, 0)
        return
    y = weft.empty_like(x)
    dist.recv(y, 1)
    holds(y, 2, 4, 6)


def check_parts(x: weft.Tensor) -> None:
    half = weft.full((len(x) // 2,), ME + 1, dtype=x.dtype)
    half[-1] = ME + 7
    dist.all_gather_into_tensor(x, half)
    assert [x[len(half) * rank - 1].item() for rank in range(1, N + 1)] == [7, 8]
    assert [x[len(half) * rank].item() for rank in range(N)] == [1, 2]
    dist.reduce_scatter_tensor(half, x)
    assert (half[0].item(), half[-1].item()) == (2 * ME + 2, 2 * ME + 14), half


for dtype in (weft.int8, weft.float32):
    x = made(dtype)
    for check in (check_gather, check_transfer):
        check(x)
        memory.empty_cache()  # blocks of this size would fill the machine
    dist.all_reduce(x)
    holds(x, 3, 7, 11)
    dist.broadcast(x, 1)
    check_parts(x)
    del x
    memory.empty_cache()
