"""Modules whose parameters are DTensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor._dtensor import DTensor, distribute_tensor
from weft.nn.modules.module import Module


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """The module itself, with DTensors for its parameters and buffers.

    partition_fn(name, module, mesh) is called for each module in it, and puts DTensors in place of
    parameters; those that it leaves are replicated. input_fn(module, inputs, mesh) gives what
    forward takes, output_fn(module, outputs, mesh) what the call gives. All processes of the mesh
    call it. Errors as of distribute_tensor.

    >>> import weft.distributed as dist
    >>> from weft.distributed.tensor import distribute_module
    >>> dist.init_process_group(world_size=1, rank=0)
    >>> layer = distribute_module(weft.nn.Linear(2, 2), dist.init_device_mesh("cpu", (1,)))
    >>> layer.weight.placements
    (Replicate(),)
    >>> dist.destroy_process_group()
    """
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, device_mesh)
        _replicate(each, device_mesh)
    if input_fn is not None:
        before = input_fn
        module.register_forward_pre_hook(lambda own, inputs: before(own, inputs, device_mesh))
    if output_fn is not None:
        behind = output_fn
        module.register_forward_hook(lambda own, _, result: behind(own, result, device_mesh))
    return module


def _replicate(module: Module, mesh: DeviceMesh) -> None:
    for name, parameter in module.named_parameters(recurse=False):
        if not isinstance(parameter, DTensor):
            setattr(module, name, distribute_tensor(parameter, mesh))
    for name, buffer in module.named_buffers(recurse=False):
        if not isinstance(buffer, DTensor):
            setattr(module, name, distribute_tensor(buffer, mesh))
