"""Callbacks at the end of backward, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytestmark = pytest.mark.parity


def run(t: Any, use_grad: bool) -> list[Any]:
    """The order of hooks, callbacks and ends of two backwards."""
    engine, steps = t.autograd.Variable._execution_engine, []
    x = t.tensor([3.0], requires_grad=True)
    y = x * 2

    def hook(grad: Any) -> None:
        steps.append("hook")
        engine.queue_callback(
            lambda: steps.append(("first", None if x.grad is None else x.grad.item()))
        )
        engine.queue_callback(further)

    def further() -> None:
        steps.append("second")
        engine.queue_callback(lambda: steps.append("third"))

    y.register_hook(hook)
    for _ in range(2):
        if use_grad:
            t.autograd.grad((y * y).sum(), x, retain_graph=True)
        else:
            (y * y).sum().backward(retain_graph=True)
        steps.append("end")
    return steps


@pytest.mark.parametrize("use_grad", [False, True])
def test_order(use_grad: bool) -> None:
    assert run(weft, use_grad) == run(torch, use_grad)


def test_a_failing_callback_ends_backward() -> None:
    x = weft.ones(1, requires_grad=True)
    y = x * 2

    def fail() -> None:
        raise KeyError("callback")

    y.register_hook(lambda grad: weft.autograd.Variable._execution_engine.queue_callback(fail))
    with pytest.raises(KeyError, match="callback"):
        y.sum().backward()
    assert x.grad.item() == 2


def test_refusals() -> None:
    for t in (weft, torch):
        with pytest.raises(RuntimeError, match="during backward"):
            t.autograd.Variable._execution_engine.queue_callback(lambda: None)
    with pytest.raises(TypeError, match="queue_callback"):
        weft.autograd.Variable._execution_engine.queue_callback(3)
