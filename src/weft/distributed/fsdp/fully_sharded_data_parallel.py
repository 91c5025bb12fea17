"""FullyShardedDataParallel: `fully_shard` as a module around another, with its states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributed.collectives import all_reduce, broadcast
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    MixedPrecision,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from weft.distributed.fsdp.fully_shard import fully_shard
from weft.distributed.fsdp.unit import Shard, gathered, own_rows, shard_of
from weft.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, wrap_below
from weft.distributed.groups import ProcessGroup, get_rank, member
from weft.distributed.reductions import ReduceOp
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter
from weft.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm

__all__ = ["CustomPolicy", "FullyShardedDataParallel", "ModuleWrapPolicy"]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."


class FullyShardedDataParallel(Module):
    """Spreads the parameters of `module` over the processes of a group, and calls it.

    auto_wrap_policy (see `wrap`) first wraps modules below, which become units of their own: their
    parameters are gathered for their forward and backward, and let go of. Parameters begin as those
    of the first process, buffers too with sync_module_states. Make the optimizer behind it.
    Options that only say when to gather or where memory lies change nothing.

    Raises NotImplementedError for sharding strategies other than FULL_SHARD and SHARD_GRAD_OP,
    MixedPrecision with dtypes, ignored modules and states, and param_init_fn; else as fully_shard.
    """

    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | None = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mixed = mixed_precision or MixedPrecision()
        for what, value in (
            ("sharding_strategy FULL_SHARD or SHARD_GRAD_OP", strategy.value > 2 and strategy),
            ("no dtypes of mixed_precision",
             mixed.param_dtype or mixed.reduce_dtype or mixed.buffer_dtype),
            ("no ignored modules and states", list(ignored_modules or ignored_states or ())),
            ("no param_init_fn", param_init_fn),
        ):  # fmt: skip
            if value:
                raise NotImplementedError(f"FullyShardedDataParallel: expected {what}, got {value}")
        mesh = device_mesh if process_group is None else process_group
        if auto_wrap_policy is not None:
            options = {"sharding_strategy": strategy, "process_group": mesh}
            count = sum(p.numel() for p in module.parameters())
            if not callable(auto_wrap_policy) or auto_wrap_policy(
                module=module, recurse=True, nonwrapped_numel=count
            ):
                wrap_below(
                    module,
                    auto_wrap_policy,
                    lambda child, **own: FullyShardedDataParallel(child, **{**options, **own}),
                )
        own = mesh.get_group() if isinstance(mesh, DeviceMesh) else mesh
        self.process_group = member("FullyShardedDataParallel", own)
        if sync_module_states:
            for buffer in module.buffers():
                broadcast(buffer, group=self.process_group, group_src=0)
        reshards = strategy is ShardingStrategy.FULL_SHARD
        setattr(
            self, FSDP_WRAPPED_MODULE, fully_shard(module, mesh=own, reshard_after_forward=reshards)
        )
        self._state_settings = StateDictSettings()
        self.register_load_state_dict_pre_hook(_load_own_part)

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._modules[FSDP_WRAPPED_MODULE]

    def __getattr__(self, name: str) -> Any:
        """Other attributes are the module's."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(self.module, name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*args, **kwargs)

    def no_sync(self) -> Any:
        """A block whose gradients add up. They are summed over the processes at each backward:
        whole ones would not fit."""
        return nullcontext()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scales all gradients so that their norm over all processes is at most max_norm; the norm
        they had."""
        with no_grad():
            parameters = list(self.parameters())
            total = get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type)
            if norm_type == float("inf"):
                all_reduce(total, ReduceOp.MAX, group=self.process_group)
            else:
                total = total**norm_type
                all_reduce(total, group=self.process_group)
                total = total ** (1 / norm_type)
            clip_grads_with_norm_(parameters, max_norm, total)
        return total

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Those of a module and below; with root_only those that are in no other."""
        if isinstance(module, FullyShardedDataParallel) and root_only:
            return [module]
        own = [module] if isinstance(module, FullyShardedDataParallel) else []
        below = [FullyShardedDataParallel.fsdp_modules(c, root_only) for c in module.children()]
        return [*own, *(each for part in below for each in part)]

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A block in which the modules have whole parameters. With `writeback` each process keeps
        its rows of what they became. Whole gradients raise NotImplementedError."""
        if with_grads:
            raise NotImplementedError("summon_full_params: expected with_grads=False, got True")
        found = FullyShardedDataParallel.fsdp_modules(module)
        units = [each.module._unit for each in (found if recurse else found[:1])]
        owners = [owner for unit in units for owner in unit._owners]
        with no_grad():
            whole = [Parameter(gathered(o.parameter.detach(), o.parameter)) for o in owners]
        for owner, value in zip(owners, whole):
            _place(owner, value)
        try:
            yield
        finally:
            for owner, value in zip(owners, whole):
                _place(owner, owner.parameter)
                if writeback:
                    owner.parameter.data.copy_(own_rows(value.detach(), owner.parameter))

    # ---- states ----

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:
        """What states of a module and those below hold from now on; the settings before."""
        settings = StateDictSettings.of(state_dict_type, state_dict_config, optim_state_dict_config)
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._state_settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What states of a module hold."""
        for each in FullyShardedDataParallel.fsdp_modules(module):
            return each._state_settings
        return StateDictSettings()

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """A block of other settings."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for each in FullyShardedDataParallel.fsdp_modules(module):
                each._state_settings = before

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """The state under the names of the plain module. All processes call it."""
        inside = self.module.state_dict(prefix=prefix, keep_vars=True)
        settings = self._state_settings
        found = inside if destination is None else destination
        with no_grad():
            values = {
                name: stored(value, settings.state_dict_type) for name, value in inside.items()
            }
        if destination is None:
            found.clear()
        if not (getattr(settings.state_dict_config, "rank0_only", False) and get_rank()):
            found.update(values)
        return found

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer (as `optim_state_dict`, if given) by the names of the plain
        model's parameters, as the settings say. All processes call it."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        return _by_name(
            model,
            optim_state_dict or optim.state_dict(),
            optim,
            settings.state_dict_type,
            getattr(settings.optim_state_dict_config, "rank0_only", False),
        )

    @staticmethod
    def full_optim_state_dict(
        model: Module,
        optim: Any,
        optim_input: Any = None,
        rank0_only: bool = True,
        group: Any = None,
    ) -> dict[str, Any]:
        """The whole state of an optimizer by name; empty elsewhere with rank0_only."""
        kind = StateDictType.FULL_STATE_DICT
        return _by_name(model, optim.state_dict(), optim, kind, rank0_only)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """What optim.load_state_dict takes, of what optim_state_dict gave."""
        ids = {name: at for at, (name, _) in enumerate(_named(model, optim))}
        parameters = dict(_named(model, optim))
        state = {
            ids[name]: {key: own_part(value, parameters[name]) for key, value in values.items()}
            for name, values in optim_state_dict["state"].items()
        }
        groups = [
            {**each, "params": [ids[name] for name in each["params"]]}
            for each in optim_state_dict["param_groups"]
        ]
        found = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(found)
        return found


def plain_name(name: str) -> str:
    """The name of a parameter in the module without wrappers.

    >>> plain_name("_fsdp_wrapped_module.0._fsdp_wrapped_module.weight")
    '0.weight'
    """
    return name.replace(FSDP_PREFIX, "")


def _place(owner: Any, parameter: Parameter) -> None:
    for module, name in owner.locations:
        module.__dict__.pop(name, None)
        module._parameters[name] = parameter


def stored(value: Any, kind: StateDictType, parameter: Any = None) -> Any:
    """A tensor of a state. With `parameter` it belongs to that, else it is one."""
    parameter = value if parameter is None else parameter
    sharding = shard_of(parameter)
    if not isinstance(value, Tensor) or sharding is None or value.shape != parameter.shape:
        return value.detach() if isinstance(value, Tensor) else value
    if kind is StateDictType.FULL_STATE_DICT:
        return gathered(value.detach(), parameter)
    return (
        value.detach()
        if kind is StateDictType.LOCAL_STATE_DICT
        else Shard(value.detach(), *sharding)
    )


def own_part(value: Any, parameter: Parameter | None) -> Any:
    """What this process keeps of a stored tensor of a parameter."""
    if isinstance(value, Shard):
        return value.rows
    if parameter is None or not isinstance(value, Tensor):
        return value
    sharding = shard_of(parameter)
    if sharding is not None and tuple(value.shape) == sharding[1]:
        return own_rows(value, parameter).clone()
    return value


def _load_own_part(module: FullyShardedDataParallel, state: Any, prefix: str, *rest: Any) -> None:
    """Before a module reads its part of a state: names with the wrapper, rows of its unit."""
    for name in [name for name in state if name.startswith(prefix)]:
        state[prefix + FSDP_PREFIX + name[len(prefix) :]] = state.pop(name)
    unit = {id(each) for each in module.module._unit.shards()}
    for name, parameter in module.module.named_parameters(remove_duplicate=False):
        key = prefix + FSDP_PREFIX + name
        if id(parameter) in unit and key in state:
            state[key] = own_part(state[key], parameter)


def _named(model: Module, optim: Any) -> list[tuple[str, Parameter]]:
    """The parameters of an optimizer in the order of its state, with their plain names."""
    names = {id(p): plain_name(name) for name, p in model.named_parameters()}
    return [(names[id(p)], p) for group in optim.param_groups for p in group["params"]]


def _by_name(
    model: Module, state: Any, optim: Any, kind: StateDictType, rank0_only: bool
) -> dict[str, Any]:
    named = _named(model, optim)
    with no_grad():
        values = {
            named[at][0]: {key: stored(value, kind, named[at][1]) for key, value in each.items()}
            for at, each in sorted(state["state"].items())
        }
    groups = [
        {**each, "params": [named[at][0] for at in each["params"]]}
        for each in state["param_groups"]
    ]
    return {} if rank0_only and get_rank() else {"state": values, "param_groups": groups}
