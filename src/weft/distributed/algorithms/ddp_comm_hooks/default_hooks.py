"""Hooks that average a bucket of gradients, as it is or in 16 bits.

>>> import weft.distributed as dist
>>> from weft.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
>>> dist.init_process_group(world_size=1, rank=0)
>>> model = weft.nn.parallel.DistributedDataParallel(weft.nn.Linear(2, 1))
>>> model.register_comm_hook(None, fp16_compress_hook)
>>> model(weft.ones(3, 2)).sum().backward()
>>> model.module.weight.grad
tensor([[3., 3.]])
>>> dist.destroy_process_group()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft.distributed.collectives import all_reduce
from weft.distributed.groups import ProcessGroup, member
from weft.futures import Future

Hook = Callable[[Any, Any], Future[Any]]


def _mean(group: ProcessGroup | None, tensor: Tensor) -> Future[Any]:
    """The mean of a tensor over a group, in place."""
    found = member("all_reduce", group)
    work = all_reduce(tensor.div_(found.size()), group=found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: Any) -> Future[Any]:
    """The mean of a bucket's gradients over a group, the world by default."""
    return _mean(process_group, bucket.buffer())


def _compressed(hook: Hook, dtype: Any) -> Hook:
    """The hook, with buckets that are of another dtype on their way."""

    def compressed(state: Any, bucket: Any) -> Future[Any]:
        buffer = bucket.buffer()
        narrow = _Narrow(bucket, buffer.to(dtype))

        def widened(done: Future[Any]) -> Tensor:
            value = done.value()
            return buffer.copy_(value[0] if isinstance(value, list) else value)

        return hook(state, narrow).then(widened)

    return compressed


class _Narrow:
    """A bucket with another buffer."""

    def __init__(self, bucket: Any, buffer: Tensor) -> None:
        self._bucket, self._buffer = bucket, buffer

    def buffer(self) -> Tensor:
        return self._buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """The hook, with buckets as float16."""
    return _compressed(hook, _C.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """The hook, with buckets as bfloat16."""
    return _compressed(hook, _C.bfloat16)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: Any) -> Future[Any]:
    """The mean of a bucket's gradients, summed as float16."""
    return fp16_compress_wrapper(allreduce_hook)(process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: Any) -> Future[Any]:
    """The mean of a bucket's gradients, summed as bfloat16."""
    return bf16_compress_wrapper(allreduce_hook)(process_group, bucket)


_list_own(vars())
