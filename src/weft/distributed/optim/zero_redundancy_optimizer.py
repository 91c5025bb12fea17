"""ZeroRedundancyOptimizer: each process keeps the optimizer's state of its share of parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.distributed.algorithms.join import Join, Joinable, JoinHook
from weft.distributed.collectives import broadcast
from weft.distributed.groups import ProcessGroup, member, rank_in
from weft.distributed.objects import gather_object
from weft.optim.optimizer import Optimizer


class _Steps(JoinHook):
    """Steps with those that still have batches."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of `optimizer_class` over a share of the parameters in each process.

    All processes have the same parameters and gradients. Each steps its share, and sends it to the
    others: the values are those of optimizer_class, with 1/n of its state in each of n processes.
    Options behind optimizer_class are that class's. In a `Join`, behind DistributedDataParallel,
    processes without batches go on to step their share.

    ValueError for overlap_with_ddp, which weft lacks, and before init_process_group; RuntimeError
    for a state_dict that was not consolidated.

    >>> import weft.distributed as dist
    >>> from weft.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> ZeroRedundancyOptimizer([p], optimizer_class=weft.optim.SGD, lr=0.25).step()
    >>> p
    tensor([0.5000], requires_grad=True)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise ValueError("ZeroRedundancyOptimizer: expected overlap_with_ddp=False, got True")
        Joinable.__init__(self)
        self.process_group = member("ZeroRedundancyOptimizer", process_group)
        self._class, self._loads = optimizer_class, [0] * self.process_group.size()
        self._owners: list[list[int]] = []  # of each group's parameters, ranks in the group
        self._gathered: list[Any] | None = None
        self.optim: Optimizer | None = None
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, and shares them: the largest first, each to who has least."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        owners = [0] * len(group["params"])
        for at in sorted(range(len(owners)), key=lambda at: -group["params"][at].numel()):
            owners[at] = self._loads.index(min(self._loads))
            self._loads[owners[at]] += group["params"][at].numel()
        self._owners.append(owners)
        own = {**group, "params": self._own(len(self._owners) - 1)}
        if self.optim is None:
            self.optim = self._class([own], **self.defaults)
        else:
            self.optim.add_param_group(own)
        for name, value in self.optim.param_groups[-1].items():
            group.setdefault(name, value)

    def _own(self, at: int) -> list[Tensor]:
        pairs = zip(self.param_groups[at]["params"], self._owners[at])
        return [param for param, owner in pairs if owner == self.process_group.rank()]

    def _local(self) -> Optimizer:
        """The optimizer of the share, with the options of the groups, which schedulers set."""
        assert self.optim is not None
        for group, own in zip(self.param_groups, self.optim.param_groups):
            own.update({name: value for name, value in group.items() if name != "params"})
        return self.optim

    def step(self, closure: Callable[[], Any] | None = None, **_: Any) -> Any:
        """Steps the share of this process, and gives and takes what has changed."""
        Join.notify_join_context(self)
        loss = self._local().step(closure)
        works = [
            broadcast(param.detach(), group=self.process_group, group_src=owner, async_op=True)
            for group, owners in zip(self.param_groups, self._owners)
            for param, owner in zip(group["params"], owners)
        ]
        for work in works:
            assert work is not None
            work.wait()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of a Join."""
        return _Steps(self)

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return _C.device("cpu")

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group."""
        return self.process_group

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collects the state of all processes at the process `to`, which may then ask for it."""
        own = self._local().state_dict()["state"]
        root = rank_in("consolidate_state_dict", self.process_group, to)
        is_root = self.process_group.rank() == root
        gathered: list[Any] | None = [None] * self.process_group.size() if is_root else None
        gather_object(own, gathered, group=self.process_group, group_dst=root)
        self._gathered = gathered

    def _positions(self) -> list[tuple[int, int]]:
        """Of each parameter of all groups: its owner, and its number among that one's."""
        owners = [owner for group in self._owners for owner in group]
        return [(owner, owners[:at].count(owner)) for at, owner in enumerate(owners)]

    def state_dict(self) -> dict[str, Any]:
        """The state as optimizer_class would give it for all parameters."""
        if self._gathered is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer.state_dict: expected consolidate_state_dict before, on "
                "the process that asks, got no state of the others"
            )
        result = super().state_dict()
        result["state"] = {
            at: copy.deepcopy(self._gathered[owner][number])
            for at, (owner, number) in enumerate(self._positions())
            if number in self._gathered[owner]
        }
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict gave: each process the state of its share."""
        super().load_state_dict({**state_dict, "state": {}})
        local, me = self._local(), self.process_group.rank()
        own = local.state_dict()
        own["state"] = {
            number: state_dict["state"][at]
            for at, (owner, number) in enumerate(self._positions())
            if owner == me and at in state_dict["state"]
        }
        local.load_state_dict(own)
