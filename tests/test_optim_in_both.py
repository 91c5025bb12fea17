"""Optimizers and schedules in both libraries: loaded states, parameters that stand twice."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
from libraries import both

STEPPING = (
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam",
    "RMSprop", "Rprop",
)  # fmt: skip


def stepped(lib: Any, name: str) -> tuple[Any, Any]:
    param = lib.nn.Parameter(lib.ones(2, 2))
    optimizer = getattr(lib.optim, name)([param])
    param.grad = lib.ones(2, 2)
    optimizer.step()
    return optimizer, param


@both
@pytest.mark.parametrize("name", STEPPING)
def test_states_of_files_that_count_in_numbers(lib: Any, name: str) -> None:
    (first, param), (second, other) = stepped(lib, name), stepped(lib, name)
    state = copy.deepcopy(first.state_dict())
    for values in state["state"].values():
        values["step"] = values["step"].item()
    second.load_state_dict(state)
    for _ in range(2):
        first.step(), second.step()
    assert lib.equal(param, other)
    assert second.state[other]["step"].item() == first.state[param]["step"].item() == 3


@both
def test_parameters_that_stand_twice(lib: Any) -> None:
    param, other = lib.nn.Parameter(lib.ones(1)), lib.nn.Parameter(lib.ones(1))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = lib.optim.SGD([param, param, other], 0.5)
    assert optimizer.state_dict()["param_groups"][0]["params"] == [1, 1, 2]
    param.grad = lib.ones(1)
    optimizer.step()
    assert param.item() == 0
    with pytest.raises(ValueError):
        optimizer.add_param_group({"params": [param]})
    optimizer = lib.optim.SGD([param, other], 0.5)
    optimizer.param_groups.extend(optimizer.param_groups)
    assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [[0, 1]] * 2


@both
def test_lbfgs_of_no_slope(lib: Any) -> None:
    param = lib.nn.Parameter(lib.ones(1))
    optimizer = lib.optim.LBFGS([param], tolerance_grad=-1)

    def loss() -> Any:
        optimizer.zero_grad()
        (param * 0).sum().backward()
        return (param * 0).sum()

    assert optimizer.step(loss).item() == 0 and param.item() == 1


@both
@pytest.mark.parametrize("start", [-0.5, 1.5, 1])
def test_one_cycle_refuses(lib: Any, start: float) -> None:
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], 0.1)
    with pytest.raises(ValueError):
        lib.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9, pct_start=start)


@both
def test_one_cycle_keeps_its_own_momentum(lib: Any) -> None:
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], 0.1, momentum=0.9)
    momentum = lib.tensor(0.95)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9, max_momentum=momentum)
    momentum.mul_(0.5)
    assert optimizer.param_groups[0]["max_momentum"] == pytest.approx(0.95)
