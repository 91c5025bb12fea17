"""loss_parallel: cross entropy of classes that are cut over processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.distributed.tensor._dtensor import plain_beside


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which cross_entropy takes plain targets, the same in all processes, beside a
    DTensor of scores. Scores whose classes are cut stay so, inside and outside of it.

    >>> import weft.distributed as dist
    >>> from weft.distributed.tensor import Shard, distribute_tensor
    >>> from weft.distributed.tensor.parallel import loss_parallel
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> scores = distribute_tensor(weft.zeros(1, 2), mesh, [Shard(1)])
    >>> with loss_parallel():
    ...     loss = weft.nn.functional.cross_entropy(scores, weft.tensor([0]))
    >>> loss.full_tensor()
    tensor(0.6931)
    >>> dist.destroy_process_group()
    """
    with plain_beside():
        yield
