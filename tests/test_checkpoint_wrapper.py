"""Modules wrapped as checkpoints: names, gradients, states."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import weft
from weft import nn
from weft.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.tag = "block"
        self.calls = 0

    def forward(self, x: weft.Tensor, scale: float | weft.Tensor = 1.0) -> weft.Tensor:
        self.calls += 1
        return self.linear(x).tanh() * scale


def gradients(model: nn.Module, x: weft.Tensor) -> list[Any]:
    model.zero_grad()
    model(x).sum().backward()
    return [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("way", list(CheckpointImpl))
def test_wrapped_models_run_twice_and_give_the_same_gradients(way: CheckpointImpl) -> None:
    model = nn.Sequential(Block(), Block(), nn.Linear(4, 1))
    x = weft.arange(8.0).reshape(2, 4).requires_grad_()
    plain, names = gradients(model, x), list(model.state_dict())
    wrap = functools.partial(checkpoint_wrapper, checkpoint_impl=way)
    apply_activation_checkpointing(model, wrap, lambda module: isinstance(module, Block))
    assert [type(layer) for layer in model] == [CheckpointWrapper, CheckpointWrapper, nn.Linear]
    model[0]._checkpoint_wrapped_module.calls = 0
    assert all(map(weft.equal, gradients(model, x), plain))
    assert model[0].calls == 2 and model[0].tag == "block"
    assert list(model.state_dict()) == names
    assert str(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"


def test_names_are_those_of_the_module() -> None:
    wrapped = checkpoint_wrapper(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    assert [name for name, _ in wrapped.named_parameters()] == ["0.weight", "0.bias"]
    assert isinstance(wrapped[0], nn.Linear)
    with pytest.raises(AttributeError):
        wrapped.absent  # noqa: B018


def test_arguments_by_name_inside_of_backward() -> None:
    x, scale = weft.ones(1, 4, requires_grad=True), weft.full((1,), 2.0, requires_grad=True)
    wrapped = checkpoint_wrapper(Block(), CheckpointImpl.REENTRANT)
    wrapped(x, scale=scale).sum().backward()
    expected = wrapped._checkpoint_wrapped_module(x).sum()
    weft.testing.assert_close(scale.grad[0], expected)


def test_another_function_and_offloading() -> None:
    seen: list[dict[str, Any]] = []

    def run(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        seen.append(kwargs)
        return module(*args)

    checkpoint_wrapper(nn.ReLU(), checkpoint_fn=run, level=1)(weft.ones(1))
    assert seen == [{"level": 1}]
    model = Block()
    x = weft.ones(2, 4)
    assert all(map(weft.equal, gradients(offload_wrapper(model), x), gradients(model, x)))


def test_a_policy_picks_and_shared_modules_stay_one() -> None:
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.Linear(2, 9), nn.Sequential(shared))

    def small(module: nn.Module, recurse: bool, nonwrapped_numel: int) -> bool:
        return isinstance(module, nn.Linear) and not recurse and nonwrapped_numel < 10

    apply_activation_checkpointing(model, auto_wrap_policy=small)
    assert isinstance(model[0], CheckpointWrapper) and model[0] is model[2][0]
    assert isinstance(model[1], nn.Linear)
