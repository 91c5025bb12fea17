"""The words of FullyShardedDataParallel: what is spread, and what a state holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class ShardingStrategy(Enum):
    """FULL_SHARD lets go of whole parameters behind forward, SHARD_GRAD_OP behind backward."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When PyTorch gathers the next parameters of backward; here they are gathered on demand."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Whole tensors; the rows of this process; those, with their place in the whole."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class CPUOffload:
    """Parameters wait in the memory of the CPU, where they are in any case."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """Dtypes of computing and of sums of gradients: None are those of the parameters."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The same for fully_shard."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in the memory of the CPU, where they are in any case."""

    pin_memory: bool = True


@dataclass
class StateDictConfig:
    """What every state has; offload_to_cpu changes nothing on the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """rank0_only: other processes get an empty state."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of rows."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of rows with their place."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """The same for optimizers."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """rank0_only: other processes get an empty state."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of rows."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of rows with their place."""

    _use_dtensor: bool = False


_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


@dataclass
class StateDictSettings:
    """What state_dict and optim_state_dict give."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: Any = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: Any = field(default_factory=FullOptimStateDictConfig)

    @classmethod
    def of(cls, kind: StateDictType, config: Any, optim_config: Any) -> StateDictSettings:
        """Those of a kind; the configurations are the kind's where they are None. RuntimeError for
        one of another kind."""
        for given, expected in zip((config, optim_config), _CONFIGS[kind]):
            if given is not None and type(given) is not expected:
                raise RuntimeError(
                    f"state_dict_type: expected {expected.__name__} for {kind}, got {given}"
                )
        ours, optims = _CONFIGS[kind]
        return cls(kind, config or ours(), optim_config or optims())
