"""DTensor: one tensor, of which each process of a mesh has a part."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributed.collectives import broadcast
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor._layout import Layout, Placements, checked
from weft.distributed.tensor._level import Level
from weft.distributed.tensor._moves import move
from weft.distributed.tensor.placement_types import Partial, Placement, Replicate
from weft.nn.parameter import Parameter

Given = Sequence[Placement] | None


class DTensor(Tensor):
    """A tensor of which each process of a mesh has what `placements` say.

    It has the sizes of the whole, and operators work on the whole: each process computes from what
    it has, after collectives where that is not enough. `distribute_tensor` and
    `DTensor.from_local` make one. All processes of the mesh call the same operators in the same
    order, and backward.

    RuntimeError where an operator gets plain tensors beside it (but of no dimension),
    NotImplementedError for an operator without a rule.

    >>> import weft.distributed as dist
    >>> from weft.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> x = distribute_tensor(weft.ones(2, 3), mesh, [Shard(0)])
    >>> (x * 2).sum(1).placements, (x * 2).sum(1).full_tensor()
    ((Shard(dim=0),), tensor([6., 6.]))
    >>> dist.destroy_process_group()
    """

    _layout: Layout
    _refused_in_programs = "a DTensor, of which a process has a part; x.to_local() is a plain one"

    def __new__(cls, *args: Any, **kwargs: Any) -> DTensor:
        raise TypeError(
            "DTensor: expected a call of distribute_tensor or from_local, got one of it"
        )

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if _C._recorder() is not None:
            raise RuntimeError("DTensor: expected no jit.trace and no vmap around it, got one")
        if not _settings.plain_beside:
            _check_alike(func, [*args, *kwargs.values()])
        with LEVEL.active(), _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """One for each dimension of the mesh."""
        return self._layout.placements

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes that have it."""
        return self._layout.mesh

    @property
    def _local_tensor(self) -> Tensor:
        return self.to_local().detach()

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh,
        placements: Given = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Given = None,
    ) -> DTensor:
        """The tensor of which this process has `local_tensor`. Differentiable.

        Replicate by default. Without `shape` parts are as large as this one. run_check: all take
        what the first process has where it is replicated. The gradient of local_tensor lies as
        `grad_placements` (by default as itself).
        """
        placed = checked("from_local", device_mesh, placements, local_tensor.dim())
        sizes = list(local_tensor.shape) if shape is None else list(shape)
        for at, each in enumerate(placed):
            if each.is_shard() and shape is None:
                sizes[each.dim] *= device_mesh.size(at)  # type: ignore[attr-defined]
            if run_check and each.is_replicate():
                broadcast(local_tensor.detach(), group=device_mesh.get_group(at), group_src=0)
        layout = Layout(device_mesh, placed, tuple(sizes))
        if layout.local_shape() != tuple(local_tensor.shape):
            raise ValueError(
                f"from_local: expected a part of sizes {layout.local_shape()} of {tuple(sizes)}, "
                f"got {tuple(local_tensor.shape)}"
            )
        grads = _grads("from_local", layout, grad_placements)
        with LEVEL.outside():
            return LEVEL.wrap(move(local_tensor, layout, placed, grad_to=grads), layout)

    def to_local(self, *, grad_placements: Given = None) -> Tensor:
        """What this process has, as a plain tensor. Differentiable: its gradient lies as
        `grad_placements`; by default as itself, and of equal tensors and terms of sums it is the
        whole gradient in all processes."""
        layout = self._layout
        grads = _grads("to_local", layout, grad_placements)
        with LEVEL.outside():
            local = move(self, layout, layout.placements, grad_from=grads)
            return local.as_subclass(Tensor)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Given = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The tensor with other placements (Replicate by default). Differentiable. `async_op` has
        no effect.

        RuntimeError where something else would become Partial, NotImplementedError for another
        mesh and for dtypes.
        """
        layout = self._layout
        if forward_dtype or backward_dtype or device_mesh not in (None, layout.mesh):
            raise NotImplementedError(
                f"redistribute: expected {layout.mesh} and no dtypes, got {device_mesh}, "
                f"{forward_dtype} and {backward_dtype}"
            )
        target = checked("redistribute", layout.mesh, placements, len(layout.shape))
        for now, then in zip(layout.placements, target):
            if isinstance(then, Partial) and now != then:
                raise RuntimeError(
                    f"redistribute: expected Shard or Replicate, got {now} to {then}"
                )
        return LEVEL.redistributed(self, target)

    def full_tensor(self, *, grad_placements: Given = None) -> Tensor:
        """All of it, as a plain tensor in every process. Differentiable: its gradient is the same
        in all, or lies as `grad_placements`."""
        every = [Replicate()] * self._layout.mesh.ndim
        return self.redistribute(placements=every).to_local(grad_placements=grad_placements)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """As Tensor.backward, in all processes. `gradient` is a DTensor."""
        root = LEVEL.settled(self)
        if isinstance(gradient, DTensor):
            gradient = LEVEL.redistributed(gradient, root.placements).to_local()
        root.to_local().backward(gradient, retain_graph, create_graph, inputs)

    def _as_parameter(self, requires_grad: bool) -> Parameter:
        return leaf(DTensorParameter, self, self._layout, requires_grad)

    def __repr__(self, **options: Any) -> str:
        local = self.to_local().detach()
        shown = local.item() if local.dim() == 0 else local
        return (
            f"DTensor(local_tensor={shown}, device_mesh={self.device_mesh}, "
            f"placements={self.placements})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            local = self.to_local().detach().clone()
            memo[id(self)] = leaf(type(self), local, self._layout, self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "pickle: expected a tensor of one process, got a DTensor; save its full_tensor()"
        )


class DTensorParameter(DTensor, Parameter):
    """A DTensor that a module learns."""


LEVEL = Level(DTensor)


class _Settings(threading.local):
    plain_beside = False  # plain tensors count as replicated


_settings = _Settings()


@contextmanager
def plain_beside() -> Iterator[None]:
    """A block in which operators take plain tensors, the same in all processes, beside DTensors."""
    before, _settings.plain_beside = _settings.plain_beside, True
    try:
        yield
    finally:
        _settings.plain_beside = before


def _check_alike(func: Any, given: list[Any]) -> None:
    """RuntimeError for plain tensors with dimensions beside DTensors."""
    for each in given:
        for item in each if isinstance(each, (list, tuple)) else (each,):
            if isinstance(item, Tensor) and not isinstance(item, DTensor) and item.dim():
                name = getattr(func, "__name__", func)
                raise RuntimeError(
                    f"{name}: expected DTensors alone, got a plain tensor of sizes "
                    f"{tuple(item.shape)} beside them; distribute_tensor makes a DTensor of it"
                )


def _grads(what: str, layout: Layout, given: Given) -> Placements | None:
    return None if given is None else checked(what, layout.mesh, given, len(layout.shape))


def leaf(kind: type, local: Tensor, layout: Layout, requires_grad: bool) -> Any:
    with LEVEL.outside():
        made = Tensor._make_subclass(kind, local.detach(), requires_grad)
        made.__dict__["_layout"] = layout
        return made


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh,
    placements: Given = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """The DTensor of a tensor that all processes have: that of the process `src_data_rank` along
    each dimension of the mesh counts, or for None each process's own, without communication.

    A leaf that requires grad gives another one. Replicate by default. RuntimeError for a tensor
    that is no leaf, and for Partial; else as DTensor.

    >>> import weft.distributed as dist
    >>> from weft.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> x = distribute_tensor(weft.arange(3), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> x.shape, x.to_local()
    (torch.Size([3]), tensor([0, 1, 2]))
    >>> dist.destroy_process_group()
    """
    if not tensor.is_leaf:
        raise RuntimeError("distribute_tensor: expected a leaf, got the result of an operator")
    placed = checked("distribute_tensor", device_mesh, placements, tensor.dim())
    if isinstance(tensor, DTensor):
        if (tensor.device_mesh, tensor.placements) != (device_mesh, placed):
            raise ValueError(
                f"distribute_tensor: expected a plain tensor, got a DTensor of {tensor.placements}"
            )
        return tensor
    if any(isinstance(each, Partial) for each in placed):
        raise RuntimeError(f"distribute_tensor: expected Shard or Replicate, got {placed}")
    with no_grad():
        local = tensor.detach()
        if src_data_rank is not None:
            local = local.contiguous().clone()
            for at in range(device_mesh.ndim):
                broadcast(local, group=device_mesh.get_group(at), group_src=src_data_rank)
        layout = Layout(device_mesh, placed, tuple(tensor.shape))
        local = LEVEL.part(local, layout)
    kind = DTensorParameter if isinstance(tensor, Parameter) else DTensor
    return leaf(kind, local, layout, tensor.requires_grad)
