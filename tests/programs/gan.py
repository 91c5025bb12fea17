"""A generative adversarial network with a gradient penalty, on points of a ring."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def ring(count: int) -> Any:
    """Points [count, 2] about a circle beside the origin."""
    rng = np.random.default_rng(4)
    angle = rng.uniform(0, 2 * math.pi, count)
    radius = 1 + 0.05 * rng.standard_normal(count)
    return np.stack([2 + radius * np.cos(angle), 1 + radius * np.sin(angle)], 1)


def weights_init(torch: Any, module: Any) -> None:
    if type(module).__name__.find("Linear") != -1:
        torch.nn.init.normal_(module.weight.data, 0.0, 0.3)
        module.bias.data.fill_(0)


def gradient_penalty(torch: Any, critic: Any, real: Any, fake: Any) -> Any:
    alpha = torch.rand(real.size(0), 1, dtype=real.dtype)
    between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = critic(between)
    (gradient,) = torch.autograd.grad(
        outputs=out, inputs=between, grad_outputs=torch.ones_like(out), create_graph=True
    )
    return ((gradient.view(len(real), -1).norm(2, dim=1) - 1) ** 2).mean()


def train(torch: Any, steps: int = 50) -> list[float]:
    """The distance between the means of the drawn and the real points, step by step."""
    nn, data = torch.nn, torch.utils.data
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 2))
    critic = nn.Sequential(
        nn.utils.spectral_norm(nn.Linear(2, 32)),
        nn.LeakyReLU(0.2),
        nn.Linear(32, 32),
        nn.Softplus(),
        nn.Linear(32, 1),
    )
    generator.apply(lambda module: weights_init(torch, module)).double()
    critic.double()
    points = data.TensorDataset(torch.from_numpy(ring(256)))
    loader = data.DataLoader(points, batch_size=64, shuffle=True, drop_last=True)
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.9))
    opt_d = torch.optim.Adam(critic.parameters(), lr=3e-2, betas=(0.5, 0.9))
    fixed_noise = torch.randn(64, 4, dtype=torch.float64)

    losses: list[float] = []
    while len(losses) < steps:
        for (real,) in loader:
            noise = torch.randn(real.size(0), 4, dtype=real.dtype)
            fake = generator(noise)
            critic.zero_grad()
            wasserstein = critic(fake.detach()).mean() - critic(real).mean()
            penalty = gradient_penalty(torch, critic, real, fake.detach())
            (wasserstein + penalty).backward()
            opt_d.step()

            critic.requires_grad_(False)
            opt_g.zero_grad()
            critic(fake).mean().neg().backward()
            opt_g.step()
            critic.requires_grad_(True)
            with torch.no_grad():
                shown = generator(fixed_noise).mean(0)
            losses.append(torch.dist(shown, points.tensors[0].mean(0)).item())
    return losses[:steps]
