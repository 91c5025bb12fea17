"""New tensors over several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor._dtensor import LEVEL, DTensor, Given, leaf
from weft.distributed.tensor._layout import Layout, checked


def _new(
    what: str,
    size: Any,
    make: Callable[..., Tensor],
    mesh: DeviceMesh,
    placements: Given,
    options: dict[str, Any],
    drawn: bool = False,
) -> DTensor:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    layout = Layout(mesh, checked(what, mesh, placements, len(shape)), shape)
    if any(each.is_partial() for each in layout.placements):
        raise RuntimeError(f"{what}: expected Shard or Replicate, got {layout.placements}")
    requires_grad = options.pop("requires_grad", False)
    if drawn:
        local = LEVEL.part(make(shape, **options), layout)
    else:
        local = make(layout.local_shape(), **options)
    return leaf(DTensor, local, layout, requires_grad)


def zeros(*size: Any, device_mesh: DeviceMesh, placements: Given = None, **options: Any) -> DTensor:
    """Zeros of the sizes `size`, each process its own part. Options as weft.zeros, errors as
    distribute_tensor.

    >>> import weft.distributed as dist
    >>> from weft.distributed.tensor import zeros, Shard
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> zeros(2, 3, device_mesh=dist.init_device_mesh("cpu", (1,)), placements=[Shard(0)]).shape
    torch.Size([2, 3])
    >>> dist.destroy_process_group()
    """
    return _new("zeros", size, _C.zeros, device_mesh, placements, options)


def ones(*size: Any, device_mesh: DeviceMesh, placements: Given = None, **options: Any) -> DTensor:
    """Ones, as `zeros`."""
    return _new("ones", size, _C.ones, device_mesh, placements, options)


def empty(*size: Any, device_mesh: DeviceMesh, placements: Given = None, **options: Any) -> DTensor:
    """Elements that are not set, as `zeros`."""
    return _new("empty", size, _C.empty, device_mesh, placements, options)


def full(
    size: Any, fill_value: Any, *, device_mesh: DeviceMesh, placements: Given = None, **options: Any
) -> DTensor:
    """Elements that are `fill_value`, as `zeros`."""
    made = lambda shape, **more: _C.full(shape, fill_value, **more)  # noqa: E731
    return _new("full", (size,), made, device_mesh, placements, options)


def rand(*size: Any, device_mesh: DeviceMesh, placements: Given = None, **options: Any) -> DTensor:
    """Numbers of [0, 1): those that one process would draw, where all have one seed."""
    return _new("rand", size, _C.rand, device_mesh, placements, options, drawn=True)


def randn(*size: Any, device_mesh: DeviceMesh, placements: Given = None, **options: Any) -> DTensor:
    """Normal numbers, as `rand`."""
    return _new("randn", size, _C.randn, device_mesh, placements, options, drawn=True)
