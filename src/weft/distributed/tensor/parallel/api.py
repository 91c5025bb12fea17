"""parallelize_module: styles for the modules in a module, by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.parallel.style import ParallelStyle
from weft.nn.modules.module import Module

Styles = ParallelStyle | Mapping[str, ParallelStyle] | None


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: Styles = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """The module itself, cut over the processes of a mesh of one dimension.

    parallelize_plan: a style for it, or styles by name of the modules in it, "layers.*.mlp" for
    several. Parameters are those of the process src_data_rank; None: each takes its own. All
    processes call it. Warns of a plan that is missing, and of names that no module has.
    ValueError without a mesh and for one of several dimensions.

    >>> import weft.distributed as dist
    >>> from weft.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> layer = parallelize_module(weft.nn.Linear(2, 4), mesh, ColwiseParallel())
    >>> layer.weight.placements, layer(weft.ones(1, 2)).shape
    ((Shard(dim=0),), torch.Size([1, 4]))
    >>> dist.destroy_process_group()
    """
    if device_mesh is None or device_mesh.ndim != 1:
        raise ValueError(f"parallelize_module: expected a mesh of one dimension, got {device_mesh}")
    if parallelize_plan is None:
        warnings.warn("parallelize_module: expected a plan, got none: nothing is cut", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, device_mesh)
    for pattern, style in parallelize_plan.items():
        found = list(_matching(module, pattern.split(".") if pattern else []))
        if not found:
            warnings.warn(
                f"parallelize_module: expected the name of a module, got {pattern!r}", stacklevel=2
            )
        for each in found:
            parallelize_module(each, device_mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module: Module, parts: list[str]) -> Iterator[Module]:
    if not parts:
        yield module
        return
    for name, child in module.named_children():
        if fnmatchcase(name, parts[0]):
            yield from _matching(child, parts[1:])
