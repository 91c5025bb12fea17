"""DistributedDataParallel: each process has the module, and its share of each batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import is_grad_enabled, no_grad
from weft.distributed.algorithms.join import Join, Joinable, JoinHook
from weft.distributed.collectives import all_reduce, broadcast
from weft.distributed.groups import ProcessGroup, member
from weft.distributed.objects import all_gather_object
from weft.distributed.operations import tensors_of
from weft.distributed.reductions import ReduceOp
from weft.futures import Future
from weft.nn.modules.module import Module
from weft.nn.parallel.reducer import GradBucket, Reducer
from weft.utils._pytree import tree_leaves

# Options of PyTorch's that are taken where they ask for nothing.
_LACKING = (
    *("delay_all_reduce_named_params", "param_to_hook_all_reduce", "mixed_precision"),
    *("skip_all_reduce_unused_params", "bucket_cap_mb_list", "batched_grad_copy"),
    "forward_sync_buffers",
)


class DistributedDataParallel(Module, Joinable):
    """Calls `module`, and averages its gradients over the processes of a group.

    All processes have the same module; parameters and buffers begin as those of the first one, and
    buffers are that one's before each forward (broadcast_buffers). Gradients are averaged in
    buckets of bucket_cap_mb while backward still runs. With find_unused_parameters or static_graph
    a forward need not use all parameters; gradients of those that no process uses stay as they are,
    and a backward follows each forward. With
    gradient_as_bucket_view gradients are views of the buckets, which saves their memory.

    ValueError before init_process_group; TypeError for options that weft lacks; RuntimeError where
    no parameter requires a gradient, where processes have different parameters, and where a
    backward left parameters without gradients.

    >>> import weft.distributed as dist
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> model = weft.nn.parallel.DistributedDataParallel(weft.nn.Linear(2, 1))
    >>> model(weft.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        device_mesh: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        for name, value in options.items():
            if value or name not in _LACKING:
                raise TypeError(f"DistributedDataParallel: expected no option {name}={value!r}")
        group = process_group if device_mesh is None else device_mesh.get_group()
        self.process_group = member("DistributedDataParallel", group)
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        named = {n: p for n, p in module.named_parameters() if n not in ignored}
        tensors_of("DistributedDataParallel", *named.values())
        trained = [parameter for parameter in named.values() if parameter.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel: expected a parameter that requires a gradient, got none"
            )
        self.module = module
        self.dim = dim
        self.device_ids = None
        self.output_device = output_device
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._has_hook = False
        self._buffers_to_send = [b for n, b in module.named_buffers() if n not in ignored]
        if init_sync:
            _check_alike(named, self.process_group)
            _send([*named.values(), *self._buffers_to_send], self.process_group)
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 2**20)
        self.reducer = Reducer(trained, self.process_group, cap, gradient_as_bucket_view)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        is_synced = is_grad_enabled() and self.require_backward_grad_sync
        source = 0
        if self._join_config.enable:
            self._active = Join.notify_join_context(self)
            source = _common_rank(self.process_group, True)
            _says_sync(self.process_group, is_synced)
            if not self._join_config.divides_by_initial:
                self.reducer.divisor = self._active
        if self.require_forward_param_sync and self.broadcast_buffers:
            _send(self._buffers_to_send, self.process_group, source)
        self.require_forward_param_sync = is_synced
        output = self.module(*inputs, **kwargs)
        if is_synced:
            tensors = [each for each in tree_leaves(output) if isinstance(each, Tensor)]
            self.reducer.prepare(tensors if self._finds_unused else None)
        return output

    @property
    def _finds_unused(self) -> bool:
        return self.find_unused_parameters or self.static_graph

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of forwards in this context add up in each process, and are averaged in the
        next backward outside of it."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> AbstractContextManager[None]:
        """A block in which processes may have different numbers of batches: those that are done
        count as gradients of zero, divided by the number of all processes or of those that still
        have batches. At its end all have the last one's parameters."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of `join`."""
        self._join_config.divides_by_initial = kwargs.get("divide_by_initial_world_size", True)
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return _C.device("cpu")

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group."""
        return self.process_group

    def register_comm_hook(
        self, state: object, hook: Callable[[object, GradBucket], Future[Any]]
    ) -> None:
        """Calls hook(state, bucket) in place of averaging: it gives a future of the bucket's new
        buffer."""
        if not callable(hook):
            raise TypeError(f"register_comm_hook: expected a callable, got {type(hook).__name__}")
        if self._has_hook:
            raise RuntimeError("register_comm_hook: expected one call, got a second")
        self._has_hook = True
        self.reducer.comm_hook = lambda bucket: hook(state, bucket)

    def set_static_graph(self) -> None:
        """Says that each step uses the same parameters."""
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, names: Sequence[str]) -> None:
        """Names parameters and buffers that each process keeps for itself."""
        object.__setattr__(module, "_ddp_params_and_buffers_to_ignore", list(names))

    def __getstate__(self) -> Any:
        raise TypeError("DistributedDataParallel: expected its `module` to be pickled, got itself")


class _Shadow(JoinHook):
    """Takes part in the steps of those that still have batches."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self._model = model

    def main_hook(self) -> None:
        model = self._model
        source = _common_rank(model.process_group, False)
        is_synced = _says_sync(model.process_group, False)
        if model.require_forward_param_sync and model.broadcast_buffers:
            _send(model._buffers_to_send, model.process_group, source)
        model.require_forward_param_sync = is_synced
        if is_synced:
            model.reducer._finds_unused = model._finds_unused
            model.reducer.join_with_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self._model
        source = _common_rank(model.process_group, is_last_joiner)
        model.reducer.divisor = model.process_group.size()
        _send([*model.module.parameters(), *model._buffers_to_send], model.process_group, source)


def _agreed(group: ProcessGroup, value: int) -> int:
    number = _C.frombuffer(bytearray(8), dtype=_C.int64).fill_(value)
    all_reduce(number, ReduceOp.MAX, group)
    return int(number)


def _common_rank(group: ProcessGroup, is_candidate: bool) -> int:
    """The last rank in the group that is a candidate."""
    return _agreed(group, group.rank() if is_candidate else -1)


def _says_sync(group: ProcessGroup, is_synced: bool) -> bool:
    """Whether backward of this step averages gradients: those that have batches say so."""
    return bool(_agreed(group, int(is_synced)))


def _check_alike(named: Mapping[str, Tensor], group: ProcessGroup) -> None:
    own = [(name, list(value.shape), str(value.dtype)) for name, value in named.items()]
    all_: list[Any] = [None] * group.size()
    all_gather_object(all_, own, group)
    for rank, other in enumerate(all_):
        if other != all_[0]:
            here, there = next(
                (p for p in zip(all_[0], other) if p[0] != p[1]), (len(all_[0]), len(other))
            )
            raise RuntimeError(
                "DistributedDataParallel: expected the same parameters in all processes, got "
                f"{here} on rank {group.ranks[0]} and {there} on rank {group.ranks[rank]}"
            )


def _send(tensors: Sequence[Tensor], group: ProcessGroup, source: int = 0) -> None:
    """Gives all processes the tensors of one: all of a dtype in one message."""
    if group.size() == 1:
        return
    by_dtype: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
    with no_grad():
        for members in by_dtype.values():
            sizes = [member.numel() for member in members]
            flat = members[0].new_empty(sum(sizes))
            parts = flat.split(sizes)
            if group.rank() == source:
                for member_, part in zip(members, parts):
                    part.copy_(member_.reshape(-1))
            broadcast(flat, group=group, group_src=source)
            for member_, part in zip(members, parts):
                member_.copy_(part.view(member_.shape))
