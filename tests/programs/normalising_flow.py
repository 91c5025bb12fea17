"""A normalising flow of coupling layers, fitted to two moons, as a torch.distributions transform."""

from __future__ import annotations

from typing import Any

import numpy as np


def moons(count: int) -> Any:
    rng = np.random.default_rng(3)
    angle, upper = rng.uniform(0, np.pi, count), rng.random(count) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], 1) + 0.05 * rng.standard_normal((count, 2))


def train(torch: Any, steps: int = 50) -> list[float]:
    """Negative log-likelihoods of batches; float64, in which a flow can be inverted exactly."""
    nn, dist = torch.nn, torch.distributions
    constraints = dist.constraints

    class Coupling(nn.Module):
        def __init__(self, mask: Any) -> None:
            super().__init__()
            self.register_buffer("mask", mask)
            self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 4))
            nn.init.zeros_(self.net[-1].weight)

        def parts(self, x: Any) -> tuple[Any, Any]:
            scale, shift = self.net(x * self.mask).chunk(2, dim=-1)
            return torch.tanh(scale) * (1 - self.mask), shift * (1 - self.mask)

    class CouplingTransform(dist.Transform):
        domain = codomain = constraints.real_vector
        bijective = True

        def __init__(self, layer: Any) -> None:
            super().__init__(cache_size=1)
            self.layer = layer

        def _call(self, x: Any) -> Any:
            scale, shift = self.layer.parts(x)
            return x * scale.exp() + shift

        def _inverse(self, y: Any) -> Any:
            scale, shift = self.layer.parts(y)
            return (y - shift) * (-scale).exp()

        def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
            return self.layer.parts(x)[0].sum(-1)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        masks = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(2, 1)
        layers = nn.ModuleList(Coupling(mask) for mask in masks)
        prior = nn.Parameter(torch.zeros(2))
        affine = dist.AffineTransform(torch.tensor([0.5, 0.25]), 0.8, event_dim=1)
        optimizer = torch.optim.NAdam([*layers.parameters(), prior], lr=3e-2)
        data = torch.as_tensor(moons(256))
        losses = []
        for batch in torch.utils.data.BatchSampler(
            torch.utils.data.RandomSampler(data, num_samples=64 * steps), 64, drop_last=True
        ):
            base = dist.Independent(dist.Normal(prior, 1.0), 1)
            flow = dist.TransformedDistribution(base, [*map(CouplingTransform, layers), affine])
            optimizer.zero_grad()
            loss = -flow.log_prob(data[batch]).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        back = dist.ComposeTransform(flow.transforms)
        drawn = flow.rsample(torch.Size([5]))
        assert torch.allclose(back(back.inv(drawn.clone())), drawn)
    finally:
        torch.set_default_dtype(before)
    return losses
