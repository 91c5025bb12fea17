"""Gradients of several processes become one, in buckets, while backward still runs.

Parameters lie in buckets in the reverse of their order, which is about that of backward. When the
last gradient of a bucket has arrived, and all buckets before it are on their way, it is summed over
the processes without waiting. When all are on their way the last hook of backward waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.autograd.graph import get_gradient_edge
from weft.distributed.collectives import all_reduce
from weft.distributed.groups import ProcessGroup
from weft.distributed.reductions import ReduceOp
from weft.futures import Future

_FIRST_BYTES = 2**20  # a small first bucket: its sum begins early


class GradBucket:
    """Gradients of some parameters in one flat buffer."""

    def __init__(self, index: int, parameters: Sequence[Tensor]) -> None:
        self._index, self._parameters = index, list(parameters)
        sizes = [parameter.numel() for parameter in parameters]
        self._buffer = parameters[0].detach().new_zeros(sum(sizes))
        self.views = [
            part.view(parameter.shape)
            for part, parameter in zip(self._buffer.split(sizes), parameters)
        ]
        self._is_last = False
        self.missing: set[int] = set()
        self.done: Future[Any] | None = None

    def index(self) -> int:
        """The place among the buckets: the first is summed first."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, flat: those of this process, not divided."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Fills the buffer."""
        self._buffer.copy_(buffer)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        return self.views

    def is_last(self) -> bool:
        """Whether no bucket comes after it."""
        return self._is_last


def buckets_of(parameters: Iterable[Tensor], cap: int) -> list[GradBucket]:
    """Buckets of at most `cap` bytes, or of one parameter; each of one dtype."""
    lists: list[list[Tensor]] = []
    open_: dict[Any, tuple[list[Tensor], int]] = {}  # by dtype: the bucket and its bytes
    for parameter in reversed(list(parameters)):
        members, used = open_.get(parameter.dtype, ([], 0))
        limit = min(cap, _FIRST_BYTES) if members and members is lists[0] else cap
        if not members or used + parameter.nbytes > limit:
            members, used = [], 0
            lists.append(members)
        members.append(parameter)
        open_[parameter.dtype] = (members, used + parameter.nbytes)
    buckets = [GradBucket(index, members) for index, members in enumerate(lists)]
    buckets[-1]._is_last = True
    return buckets


class Reducer:
    """The buckets of a module's parameters, filled by hooks of their gradients."""

    def __init__(
        self, parameters: Sequence[Tensor], group: ProcessGroup, cap: int, as_views: bool
    ) -> None:
        self._group, self._as_views = group, as_views
        self.buckets = buckets_of(parameters, cap)
        self.divisor = group.size()
        self.comm_hook: Callable[[GradBucket], Future[Any]] = self._averaged
        self._nodes = {get_gradient_edge(p).node: p for p in parameters}
        self._used = parameters[0].new_zeros(len(parameters), dtype=_C.uint8)
        self._order = {
            id(p): at for at, p in enumerate(p for b in self.buckets for p in b._parameters)
        }
        self._finds_unused = False
        self._reached_before: set[int] = set()  # by forwards that no backward followed yet
        self._forgotten: set[int] = set()  # of those what the last forward does not reach
        self._next = 0  # the bucket that is summed next
        self._is_armed = self._has_begun = False
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._hook(bucket, at))
            for bucket in self.buckets
            for at, parameter in enumerate(bucket._parameters)
        ]

    def _averaged(self, bucket: GradBucket) -> Future[Any]:
        bucket.buffer().div_(self.divisor)
        work = all_reduce(bucket.buffer(), ReduceOp.SUM, self._group, async_op=True)
        assert work is not None
        return work.get_future()

    def _hook(self, bucket: GradBucket, at: int) -> Callable[[Tensor], None]:
        def arrived(parameter: Tensor) -> None:
            if id(parameter) in self._forgotten:
                raise RuntimeError(
                    "DistributedDataParallel: expected a backward behind each forward with "
                    "find_unused_parameters, got a gradient of an earlier one"
                )
            if self._is_armed:
                self._has_begun = True
                self._used[self._order[id(parameter)]] = 1
                self._ready(bucket, at)

        return arrived

    def prepare(self, outputs: Sequence[Tensor] | None) -> None:
        """Expects the next backward. With its outputs it finds the parameters that they do not
        depend on. RuntimeError where the last one left parameters without gradients."""
        if self._has_begun:
            missing = sum(len(bucket.missing) for bucket in self.buckets)
            raise RuntimeError(
                "DistributedDataParallel: expected gradients of all parameters in the last "
                f"backward, got none for {missing}; find_unused_parameters=True allows that"
            )
        for bucket in self.buckets:
            bucket.missing = set(range(len(bucket.views)))
            bucket.done = None
        before = self._reached_before if self._is_armed else set()
        self._forgotten = set()
        self._next, self._is_armed = 0, True
        self._finds_unused = outputs is not None
        self._used.zero_()
        if outputs is not None:
            used = self._reached(outputs)
            self._forgotten, self._reached_before = before - used, before | used
            for bucket in self.buckets:
                for at, parameter in enumerate(bucket._parameters):
                    if id(parameter) not in used:
                        self._ready(bucket, at)

    def _reached(self, outputs: Sequence[Tensor]) -> set[int]:
        """The parameters on which outputs depend, by identity."""
        waiting = [get_gradient_edge(each).node for each in outputs if each.requires_grad]
        seen = set(waiting)
        while waiting:
            for node, _ in waiting.pop().next_functions:
                if node is not None and node not in seen:
                    seen.add(node)
                    waiting.append(node)
        return {id(parameter) for node, parameter in self._nodes.items() if node in seen}

    def join_with_zeros(self) -> None:
        """Takes part in one backward of the others with gradients of zero."""
        for bucket in self.buckets:
            bucket.buffer().zero_()
            bucket.done = self.comm_hook(bucket)
        if self._finds_unused:
            self._used.zero_()
            all_reduce(self._used, ReduceOp.MAX, self._group)
        for bucket in self.buckets:
            if bucket.done is not None:
                bucket.done.wait()

    def _ready(self, bucket: GradBucket, at: int) -> None:
        view, gradient = bucket.views[at], bucket._parameters[at].grad
        with no_grad():
            if gradient is None:
                view.zero_()
            elif gradient.is_sparse:
                raise RuntimeError(
                    "DistributedDataParallel: expected dense gradients, got a sparse one"
                )
            elif gradient.data_ptr() != view.data_ptr():
                view.copy_(gradient)
            bucket.missing.discard(at)
            while self._next < len(self.buckets) and not self.buckets[self._next].missing:
                ready = self.buckets[self._next]
                self._next += 1
                ready.done = self.comm_hook(ready)
            if self._next == len(self.buckets):
                self._finish()

    def _finish(self) -> None:
        self._is_armed = self._has_begun = False
        if self._finds_unused:
            all_reduce(self._used, ReduceOp.MAX, self._group)
            used = self._used.tolist()
        for bucket in self.buckets:
            assert bucket.done is not None
            result = bucket.done.wait()
            bucket.done = None
            result = result[0] if isinstance(result, list) else result
            if result.data_ptr() != bucket.buffer().data_ptr():
                bucket.set_buffer(result)
            for parameter, view in zip(bucket._parameters, bucket.views):
                if not self._finds_unused or used[self._order[id(parameter)]]:
                    self._give_back(parameter, view)

    def _give_back(self, parameter: Tensor, view: Tensor) -> None:
        if self._as_views:
            parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)
