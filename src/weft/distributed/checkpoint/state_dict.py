"""States of modules and optimizers by the names of parameters, with what is sharded as shards.

Names are those of the plain module: wrapped by DistributedDataParallel or spread by fully_shard, a
model has the same ones, so checkpoints go from one to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from weft.autograd.grad_mode import no_grad
from weft.distributed.fsdp.api import StateDictType
from weft.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel,
    own_part,
    plain_name,
    stored,
)
from weft.distributed.groups import get_rank, is_initialized
from weft.distributed.objects import broadcast_object_list
from weft.nn.modules.module import Module
from weft.nn.parallel.distributed import DistributedDataParallel
from weft.nn.parameter import Parameter
from weft.optim.optimizer import Optimizer


@dataclass
class StateDictOptions:
    """What states hold, and how they are loaded.

    full_state_dict: whole tensors instead of shards; with cpu_offload the first process alone gets
    them. ignore_frozen_params: without parameters that need no gradient. strict: names have to
    match. broadcast_from_rank0: the first process alone has the whole state that is loaded.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    @property
    def kind(self) -> StateDictType:
        """What tensors of a state are."""
        full = self.full_state_dict
        return StateDictType.FULL_STATE_DICT if full else StateDictType.SHARDED_STATE_DICT

    def kept(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state, where this process gets it."""
        first = self.full_state_dict and self.cpu_offload
        return {} if first and is_initialized() and get_rank() else state

    def given(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state that is loaded."""
        if not self.broadcast_from_rank0:
            return state
        found: list[Any] = [state]
        broadcast_object_list(found, 0)
        return found[0]


def _checked(options: StateDictOptions | None, submodules: Any = None) -> StateDictOptions:
    found = options or StateDictOptions()
    if found.broadcast_from_rank0 and not found.full_state_dict:
        raise ValueError("state_dict: expected full_state_dict=True to broadcast from rank 0")
    if submodules or found.flatten_optimizer_state_dict or not found.keep_submodule_prefixes:
        raise NotImplementedError(
            "state_dict: expected whole models and states that are not flattened, got "
            f"submodules {submodules} and {found}"
        )
    return found


def _parameters(model: Module) -> dict[str, Parameter]:
    """The parameters of the plain model by name, also where modules share them."""
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    named = plain.named_parameters(remove_duplicate=False)
    return {plain_name(name): parameter for name, parameter in named}


def _names(model: Module) -> dict[int, str]:
    return {id(p): name for name, p in reversed(_parameters(model).items())}


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of a module; tensors are the module's own memory, but for whole ones of shards."""
    found = _checked(options, submodules)
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    parameters = _parameters(model)
    with FullyShardedDataParallel.state_dict_type(plain, StateDictType.LOCAL_STATE_DICT), no_grad():
        state = {
            name: stored(value, found.kind, parameters.get(name))
            for name, value in plain.state_dict().items()
            if not (found.ignore_frozen_params and _is_frozen(parameters.get(name)))
        }
    return found.kept(state)


def _is_frozen(parameter: Parameter | None) -> bool:
    return parameter is not None and not parameter.requires_grad


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of optimizers by the names of the model's parameters.

    An optimizer that has not stepped yet has no state; `load` fills only what is there, so step
    once before that (with gradients of zero and a learning rate of zero, say), as PyTorch does.
    """
    found, named = _checked(options, submodules), _names(model)
    state: dict[str, Any] = {}
    groups: list[Any] = []
    for optimizer in [optimizers] if isinstance(optimizers, Optimizer) else optimizers:
        for group in optimizer.param_groups:
            names = [named[id(parameter)] for parameter in group["params"]]
            groups.append({**group, "params": names})
            for name, parameter in zip(names, group["params"]):
                values = optimizer.state.get(parameter, {})
                with no_grad():
                    state[name] = {k: stored(v, found.kind, parameter) for k, v in values.items()}
    return found.kept({"state": state, "param_groups": groups})


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads what get_model_state_dict gave, with the same options."""
    found, parameters = _checked(options), _parameters(model)
    state = found.given(model_state_dict)
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    rows = {name: own_part(value, parameters.get(name)) for name, value in state.items()}
    return plain.load_state_dict(rows, strict=found.strict)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads what get_optimizer_state_dict gave, with the same options."""
    state, named = _checked(options).given(optim_state_dict), _names(model)
    groups = iter(state["param_groups"])
    for optimizer in [optimizers] if isinstance(optimizers, Optimizer) else optimizers:
        for group in optimizer.param_groups:
            settings = {name: value for name, value in next(groups).items() if name != "params"}
            group.update(settings)
            for parameter in group["params"]:
                values = state["state"].get(named[id(parameter)], {})
                with no_grad():
                    optimizer.state[parameter] = {
                        key: own_part(value, parameter) for key, value in values.items()
                    }


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Both; the names that the model lacks or did not get, as load_state_dict gives them."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
