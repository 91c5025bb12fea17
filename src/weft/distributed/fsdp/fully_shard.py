"""fully_shard: parameters, gradients and optimizer state spread over processes, unit by unit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from weft.distributed.collectives import broadcast
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.fsdp.api import MixedPrecisionPolicy, OffloadPolicy
from weft.distributed.fsdp.bundle import Location
from weft.distributed.fsdp.unit import Unit
from weft.distributed.groups import ProcessGroup, member
from weft.memory import empty_cache
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class FSDPModule:
    """What fully_shard adds to the class of a module."""

    _unit: Unit

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        with self._unit.whole():
            return super().__call__(*inputs, **kwargs)  # type: ignore[misc]

    def unshard(self, async_op: bool = False) -> None:
        """Begins to gather the whole parameters."""
        self._unit.gather()

    def reshard(self) -> None:
        """Lets go of the whole parameters."""
        self._unit.free()

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are let go of behind forward, here and below; behind backward
        they always are."""
        for unit in _units(self) if recurse else [self._unit]:
            unit.reshards = reshard_after_forward


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | ProcessGroup | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Any = None,
) -> Any:
    """Spreads the parameters of a module over the processes of a group (`mesh`, which may be a
    DeviceMesh of one dimension; the world's by default): each keeps some rows of each, their
    gradients, and so their optimizer state.

    Call it for layers first, then for the module that holds them; each call makes a unit, whose
    parameters are gathered together before its forward, the next unit's ahead of use, and again in
    backward. Modules of one unit may share parameters. Parameters begin as those of the first
    process. Make the optimizer behind it. The module itself is changed and returned; gradients are
    means over the processes.

    Where parameters wait (offload_policy) changes nothing. NotImplementedError for an mp_policy
    with dtypes, shard_placement_fn and ignored_params.

    ValueError before init_process_group, for parameters that are no floating numbers or have no
    dimension, and for one that modules of two units share.
    """
    mixed = mp_policy or MixedPrecisionPolicy()
    if shard_placement_fn or ignored_params or mixed.param_dtype or mixed.reduce_dtype:
        raise NotImplementedError(
            "fully_shard: expected no shard_placement_fn, ignored_params and dtypes of mp_policy, "
            f"got {shard_placement_fn}, {ignored_params} and {mp_policy}"
        )
    own = mesh.get_group() if isinstance(mesh, DeviceMesh) else mesh
    group = member("fully_shard", own)
    reshards = reshard_after_forward is None or bool(reshard_after_forward)
    locations: dict[Parameter, list[Location]] = {}
    for owner, name, parameter in _free_parameters(module):
        locations.setdefault(parameter, []).append((owner, name))
    for parameter in locations:
        broadcast(parameter.detach(), group=group, group_src=0)
    unit = Unit(list(locations.items()), group, reshards)
    locations.clear()
    # Whole parameters leave blocks of sizes that shards do not use.
    empty_cache()
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"_unit": unit})
    units = list(_units(module))
    for each, following in itertools.pairwise(units):
        each.next = following
    return module


def _units(module: Any) -> Iterator[Unit]:
    """The units of a module and of those below, in the order of their registration."""
    if isinstance(module, FSDPModule):
        yield module._unit
    for child in module.children():
        yield from _units(child)


def _free_parameters(module: Module) -> Iterator[tuple[Module, str, Parameter]]:
    """The parameters of a module and of those below that are in no unit."""
    for name, parameter in module.named_parameters(recurse=False):
        yield module, name, parameter
    for child in module.children():
        if not isinstance(child, FSDPModule):
            yield from _free_parameters(child)
