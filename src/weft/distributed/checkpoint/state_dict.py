"""States of modules and optimizers by the names of parameters, with what is sharded as shards.

Names are those of the plain module: wrapped by DistributedDataParallel or spread by fully_shard, a
model has the same ones, so checkpoints go from one to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributed.fsdp.unit import Shard, shard_of
from weft.nn.modules.module import Module
from weft.nn.parallel.distributed import DistributedDataParallel
from weft.optim.optimizer import Optimizer


def _plain(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def _as_shard(value: Any, parameter: Any) -> Any:
    """A tensor with the rows of a sharded parameter as a shard of it."""
    sharding = None if parameter is None else shard_of(parameter)
    if sharding is None or not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    return Shard(value.detach(), *sharding)


def get_model_state_dict(model: Module, **_: Any) -> dict[str, Any]:
    """The state of a module; tensors are the module's own memory."""
    plain = _plain(model)
    parameters = dict(plain.named_parameters(remove_duplicate=False))
    state = plain.state_dict()
    return {name: _as_shard(value, parameters.get(name)) for name, value in state.items()}


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], **_: Any
) -> dict[str, Any]:
    """The state of optimizers by the names of the model's parameters.

    An optimizer that has not stepped yet has no state; `load` fills only what is there, so step
    once before that (with gradients of zero and a learning rate of zero, say), as PyTorch does.
    """
    named = {id(p): name for name, p in _plain(model).named_parameters()}
    state: dict[str, Any] = {}
    groups: list[Any] = []
    for optimizer in [optimizers] if isinstance(optimizers, Optimizer) else optimizers:
        for group in optimizer.param_groups:
            names = [named[id(parameter)] for parameter in group["params"]]
            groups.append({**group, "params": names})
            for name, parameter in zip(names, group["params"]):
                values = optimizer.state.get(parameter, {})
                state[name] = {key: _as_shard(v, parameter) for key, v in values.items()}
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], **options: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both."""
    return get_model_state_dict(model), get_optimizer_state_dict(model, optimizers)


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], **_: Any) -> Any:
    """Loads what get_model_state_dict gave."""
    rows = {n: v.rows if isinstance(v, Shard) else v for n, v in model_state_dict.items()}
    return _plain(model).load_state_dict(rows)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    **_: Any,
) -> None:
    """Loads what get_optimizer_state_dict gave."""
    named = {id(p): name for name, p in _plain(model).named_parameters()}
    groups = iter(optim_state_dict["param_groups"])
    for optimizer in [optimizers] if isinstance(optimizers, Optimizer) else optimizers:
        for group in optimizer.param_groups:
            options = {name: value for name, value in next(groups).items() if name != "params"}
            group.update(options)
            for parameter in group["params"]:
                values = optim_state_dict["state"].get(named[id(parameter)], {})
                with no_grad():
                    optimizer.state[parameter] = {
                        key: value.rows if isinstance(value, Shard) else value
                        for key, value in values.items()
                    }


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    **_: Any,
) -> Any:
    """Both; the names that the model lacks or did not get, as load_state_dict gives them."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict)
    return set_model_state_dict(model, model_state_dict)
