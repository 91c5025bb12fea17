"""Model-agnostic meta-learning of sine waves: a step of descent for each task, and one through it."""

from __future__ import annotations

import math
from typing import Any


def tasks(torch: Any, count: int, points: int) -> Any:
    """Points [count, points, 1] of waves of different height and phase, and their values."""
    height = 0.5 + 2 * torch.rand(count, 1, 1)
    phase = math.pi * torch.rand(count, 1, 1)
    x = 6 * torch.rand(count, points, 1) - 3
    return x, height * torch.sin(x + phase)


def train(torch: Any, steps: int = 50) -> list[float]:
    func, nn = torch.func, torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1)
    )
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return nn.functional.mse_loss(func.functional_call(model, parameters, (x,)), y)

    def adapted_loss(parameters: Any, x: Any, y: Any) -> Any:
        gradients = func.grad(loss)(parameters, x[:10], y[:10])
        adapted = {name: p - 0.05 * gradients[name] for name, p in parameters.items()}
        return loss(adapted, x[10:], y[10:])

    losses: list[float] = []
    for _ in range(steps):
        x, y = tasks(torch, 16, 20)
        total = torch.vmap(adapted_loss, in_dims=(None, 0, 0))(parameters, x, y).mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())
    return losses
