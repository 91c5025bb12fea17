"""Steps of optimizers that are recorded: gradients flow through them to the start, to lr and to weight_decay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from libraries import both

import weft

#: an optimizer, its options, and which of them are tensors that gradients flow to
CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("SGD", {"lr": 0.1}, ["lr", "weight_decay"]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}, []),
    ("Adam", {"lr": 0.1}, ["lr", "weight_decay", "betas"]),
    ("Adam", {"lr": 0.1, "amsgrad": True, "maximize": True}, ["betas"]),
    ("AdamW", {"lr": 0.1}, ["lr", "weight_decay"]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}, []),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}, []),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.6)}, []),  # divided by the root at once
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.5}, []),
    ("RMSprop", {"lr": 0.1, "weight_decay": 0.1}, []),
    ("Rprop", {"lr": 0.1}, []),
    ("ASGD", {"lr": 0.1, "t0": 1, "lambd": 0.1}, []),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}, []),
    ("Adadelta", {"lr": 1.0, "eps": 0.1}, []),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}, []),
]  # fmt: skip
MOMENTUM = 1  # the case of SGD with momentum
cases = pytest.mark.parametrize("number", range(len(CASES)))
START = np.array([[0.9, -0.4, 1.6], [-1.2, 0.3, 0.7]])
SLOPE = np.array([[0.5, 1.0, -0.8], [1.4, -0.6, 0.9]])
VALUES = {"lr": [0.1], "weight_decay": [0.2], "betas": [0.8, 0.9]}


def trained(lib: Any, number: int, x: list[float], dtype: str) -> tuple[Any, list[Any]]:
    """A loss after two steps, and the leaves that it comes from: a start, a factor, options."""
    name, options, tensors = CASES[number]
    leaves = [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in x]
    start, factor, *rest = leaves
    chosen = dict(options, differentiable=True)
    for option in tensors:
        taken = [rest.pop(0) for _ in VALUES[option]]
        chosen[option] = tuple(taken) if option == "betas" else taken[0]
    slope = lib.tensor(SLOPE)
    turned = START * (1 + 0.5j) if dtype == "complex128" else START
    p = lib.tensor(turned) * start
    optimizer = getattr(lib.optim, name)([lib.nn.Parameter(p.detach())], **chosen)
    for parameter, state in list(optimizer.state.items()):  # Adagrad begins at once
        optimizer.state[p] = state
        del optimizer.state[parameter]
    optimizer.param_groups[0]["params"] = [p]
    for _ in range(2):
        before = p.clone()  # which the step does not write
        p.grad = before * before.abs() + slope * factor
        optimizer.step()
    return (p.abs().square() * slope).sum(), leaves


def inputs(number: int) -> list[float]:
    return [1.0, 1.3] + [v for option in CASES[number][2] for v in VALUES[option]]


def gradient(lib: Any, number: int, dtype: str) -> list[float]:
    loss, leaves = trained(lib, number, inputs(number), dtype)
    found = lib.autograd.grad(loss, leaves, allow_unused=True)
    return [0.0 if g is None else g.item() for g in found]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@cases
def test_gradients_by_differences(number: int, dtype: str) -> None:
    found, x, width = gradient(weft, number, dtype), inputs(number), 1e-5
    if number == MOMENTUM:  # the first gradient enters it without its history, as in PyTorch
        assert found[0] != 0
        return
    for i, slope in enumerate(found):
        sides = [
            trained(weft, number, [v + s * (j == i) for j, v in enumerate(x)], dtype)[0].item()
            for s in (width, -width)
        ]
        numeric = (sides[0] - sides[1]) / (2 * width)
        # the error of a central difference: width**2 of the third derivative, eps / width of the loss
        assert abs(slope - numeric) <= 1e-6 * (1 + abs(numeric)), f"input {i}"
    assert any(found)


@pytest.mark.parity
@cases
def test_gradients_beside_torch(number: int) -> None:
    torch = pytest.importorskip("torch")
    name, options, _ = CASES[number]
    if name in ("Rprop", "Adamax") or "amsgrad" in options or "centered" in options:
        with pytest.raises(RuntimeError, match="inplace"):  # it writes what it recorded
            gradient(torch, number, "float64")
        return
    # PyTorch's bias corrections are of float32
    np.testing.assert_allclose(
        gradient(weft, number, "float64"), gradient(torch, number, "float64"), rtol=1e-4, atol=1e-6
    )


@both
@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("SGD", {"fused": True, "differentiable": True}, RuntimeError),
        ("Adam", {"fused": True, "differentiable": True}, RuntimeError),
        ("Adagrad", {"fused": True, "foreach": True}, RuntimeError),
        ("Adam", {"foreach": True, "lr": "tensor"}, ValueError),
        ("AdamW", {"foreach": True, "betas": "tensor"}, ValueError),
    ],
)
def test_implementations_that_exclude_each_other(
    lib: Any, name: str, options: dict[str, Any], error: type[Exception]
) -> None:
    tensors = {"lr": lib.tensor(0.1), "betas": (lib.tensor(0.9), lib.tensor(0.99))}
    given = {n: tensors[n] if v == "tensor" else v for n, v in options.items()}
    with pytest.raises(error):
        getattr(lib.optim, name)([lib.nn.Parameter(lib.ones(2))], **given)
