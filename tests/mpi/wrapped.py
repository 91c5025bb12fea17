"""FullyShardedDataParallel in several processes beside the plain module in each."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import weft
import weft.distributed as dist
from weft import nn
from weft.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from weft.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    Shard,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from weft.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy

dist.init_process_group()
ME, N = dist.get_rank(), dist.get_world_size()
FULL, LOCAL = StateDictType.FULL_STATE_DICT, StateDictType.LOCAL_STATE_DICT
POLICIES = (
    None,
    ModuleWrapPolicy({nn.Linear}),
    functools.partial(size_based_auto_wrap_policy, min_num_params=30),
)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, 7, bias=False), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 3)
        )
        self.scale = nn.Parameter(weft.ones(3))

    def forward(self, x: Any) -> Any:
        return self.layers(x) * self.scale


def made(policy: Any = None, seed: int = 0, **options: Any) -> tuple[Any, Any, Any, Any]:
    """A plain module, a wrapped one, and their optimizers."""
    weft.manual_seed(seed)
    plain, other = Net(), Net()
    other.load_state_dict(plain.state_dict())
    wrapped = FullyShardedDataParallel(other, auto_wrap_policy=policy, **options)
    adams = [weft.optim.Adam(m.parameters(), lr=0.05, amsgrad=True) for m in (plain, wrapped)]
    return plain, wrapped, *adams


def step(model: Any, optimizer: Any, at: int, most: float = 1.0) -> Any:
    """A step on a batch that is the same in all processes; the norm of the gradients."""
    x = weft.randn(8, 5, generator=weft.Generator().manual_seed(at))
    optimizer.zero_grad()
    model(x).square().sum().backward()
    if isinstance(model, FullyShardedDataParallel):
        norm = model.clip_grad_norm_(most)
    else:
        norm = nn.utils.clip_grad_norm_(model.parameters(), most)
    optimizer.step()
    return norm


def same(got: Any, expected: Any) -> None:
    assert got.keys() == expected.keys(), (got.keys(), expected.keys())
    for name, value in expected.items():
        assert np.allclose(*(each.detach().numpy() for each in (got[name], value)), 1e-5, 1e-6), (
            name
        )


def check_curves_and_states() -> None:
    for policy in POLICIES:
        for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
            plain, wrapped, ours, theirs = made(policy, sharding_strategy=strategy)
            for at in range(4):
                norms = [step(m, o, at) for m, o in ((plain, ours), (wrapped, theirs))]
                assert np.allclose(*(norm.item() for norm in norms), 1e-5), norms
            same(wrapped.state_dict(), plain.state_dict())


def check_units() -> None:
    counts = [len(FullyShardedDataParallel.fsdp_modules(made(policy)[1])) for policy in POLICIES]
    assert counts == [1, 3, 3], counts
    wrapped = made(POLICIES[1])[1]
    assert (
        wrapped.layers[0].weight.shape == (-(-7 // N) if ME < N - 1 else 7 - -(-7 // N) * ME, 5)
        or N > 3
    )
    assert len(wrapped.layers) == 4 and wrapped.scale is wrapped.module.scale


def check_whole_parameters() -> None:
    plain, wrapped, *_ = made(POLICIES[1])
    before = {name: value.clone() for name, value in wrapped.state_dict().items()}
    with FullyShardedDataParallel.summon_full_params(wrapped):
        whole = {
            name.replace("_fsdp_wrapped_module.", ""): p for name, p in wrapped.named_parameters()
        }
        same(whole, dict(plain.named_parameters()))
        wrapped.layers[0].weight.data.mul_(2)
        wrapped.module.scale.data.add_(1)
    changed = before | {
        "layers.0.weight": before["layers.0.weight"] * 2,
        "scale": before["scale"] + 1,
    }
    same(wrapped.state_dict(), changed)
    with FullyShardedDataParallel.summon_full_params(wrapped, writeback=False):
        wrapped.module.scale.data.zero_()
    same(wrapped.state_dict(), changed)


def check_states_go_between() -> None:
    """A plain state into a wrapped module and back; that of an optimizer, after which both go on."""
    plain, wrapped, _, theirs = made(POLICIES[1], seed=1)
    for at in range(3):
        step(wrapped, theirs, at)
    with FullyShardedDataParallel.state_dict_type(
        wrapped,
        FULL,
        FullStateDictConfig(rank0_only=True),
        FullOptimStateDictConfig(rank0_only=True),
    ):
        states = wrapped.state_dict(), FullyShardedDataParallel.optim_state_dict(wrapped, theirs)
    assert [bool(state) for state in states] == [ME == 0] * 2
    state = wrapped.state_dict()
    whole = FullyShardedDataParallel.optim_state_dict(wrapped, theirs)
    assert whole["state"]["layers.0.weight"]["exp_avg"].shape == (7, 5)
    assert sorted(whole["param_groups"][0]["params"]) == sorted(dict(plain.named_parameters()))
    fresh = made(POLICIES[2], seed=2)
    other, optimizer = fresh[1], fresh[3]
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    optimizer.load_state_dict(
        FullyShardedDataParallel.optim_state_dict_to_load(other, optimizer, whole)
    )
    plain.load_state_dict(state)
    for at in range(3, 6):
        step(wrapped, theirs, at)
        step(other, optimizer, at)
    same(other.state_dict(), wrapped.state_dict())
    local = {}
    with FullyShardedDataParallel.state_dict_type(wrapped, LOCAL):
        local = wrapped.state_dict()
    assert local["layers.0.weight"].data_ptr() == wrapped.layers[0].weight.data_ptr()
    wrapped.load_state_dict(local)


def check_options_of_states() -> None:
    """Whole states of the first process go into a model of other units, spread and wrapped."""
    plain, wrapped, _, theirs = made(POLICIES[1])
    wrapped.layers[0].weight.requires_grad_(False)
    for at in range(2):
        step(wrapped, theirs, at)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    states = get_state_dict(wrapped, theirs, options=options)
    assert [bool(state) for state in states] == [ME == 0] * 2
    if ME == 0:
        plain.load_state_dict(states[0])
        assert states[1]["state"]["layers.3.weight"]["exp_avg"].shape == (3, 7)
    spread = Net()
    fully_shard(spread.layers[0])
    fully_shard(spread)
    for model in (spread, made(POLICIES[2], seed=3)[1]):
        model.layers[0].weight.requires_grad_(False)
        optimizer = weft.optim.Adam(model.parameters(), lr=1.0)
        found = set_state_dict(
            model,
            optimizer,
            model_state_dict=states[0],
            optim_state_dict=states[1],
            options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True),
        )
        assert str(found) == "<All keys matched successfully>"
        same(
            *(
                get_model_state_dict(m, options=StateDictOptions(full_state_dict=True))
                for m in (model, wrapped)
            )
        )
        assert optimizer.param_groups[0]["lr"] == 0.05
    trained = get_model_state_dict(wrapped, options=StateDictOptions(ignore_frozen_params=True))
    assert "layers.0.weight" not in trained and "layers.1.running_mean" in trained
    assert isinstance(trained["layers.3.weight"], Shard)
    for wrong in (
        StateDictOptions(broadcast_from_rank0=True),
        StateDictOptions(flatten_optimizer_state_dict=True),
    ):
        try:
            get_model_state_dict(wrapped, options=wrong)
        except (ValueError, NotImplementedError) as error:
            assert str(error).startswith("state_dict: expected"), error
        else:
            raise AssertionError(wrong)


def check_refusals() -> None:
    for options, text in (
        (
            {"sharding_strategy": ShardingStrategy.NO_SHARD},
            "expected sharding_strategy FULL_SHARD or SHARD_GRAD_OP, got ShardingStrategy.NO_SHARD",
        ),
        ({"ignored_modules": [nn.Linear(1, 1)]}, "expected no ignored modules and states"),
        ({"param_init_fn": print}, "expected no param_init_fn"),
    ):
        try:
            FullyShardedDataParallel(Net(), **options)
        except NotImplementedError as error:
            assert text in str(error), error
        else:
            raise AssertionError(options)


for name, check in sorted(globals().items()):
    if name.startswith("check_"):
        check()
        dist.barrier()
