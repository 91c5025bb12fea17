"""Quantiles of noisy data by the pinball loss; mixtures of schedules, hooks on gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

QUANTILES = (0.1, 0.5, 0.9)


def noisy_line(count: int) -> tuple[Any, Any]:
    """Points x and y [count, 1]; the noise grows with x."""
    rng = np.random.default_rng(9)
    x = rng.uniform(0, 2, (count, 1))
    return x, 1.5 * x + (0.2 + 0.4 * x) * rng.standard_normal((count, 1))


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, sched = torch.nn, torch.optim.lr_scheduler
    levels = torch.tensor(QUANTILES)

    def pinball(predicted: Any, target: Any) -> Any:
        error = target - predicted
        return torch.maximum(levels * error, (levels - 1) * error).sum(dim=-1).mean()

    class Ordered(nn.Module):
        """Predictions that rise from each quantile to the next."""

        def __init__(self, hidden: int = 16) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(1, hidden), nn.Mish(), nn.Linear(hidden, hidden))
            self.norm, self.act = nn.LayerNorm(hidden), nn.PReLU(hidden)
            self.low, self.gaps = nn.Linear(hidden, 1), nn.Linear(hidden, len(QUANTILES) - 1)

        def forward(self, x: Any) -> Any:
            h = self.act(self.norm(self.body(x)))
            rises = nn.functional.softplus(self.gaps(h)).cumsum(dim=-1)
            return torch.cat([self.low(h), self.low(h) + rises], dim=-1)

    torch.manual_seed(0)
    x, y = (torch.tensor(each, dtype=torch.float32) for each in noisy_line(256))
    model = nn.utils.parametrizations.weight_norm(nn.Linear(1, 1))  # a baseline beside it
    model = nn.ModuleDict({"quantiles": Ordered(), "mean": model})
    decay = [p for n, p in model.named_parameters() if n.endswith("weight")]
    ids = set(map(id, decay))
    rest = [p for p in model.parameters() if id(p) not in ids]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 1e-2}, {"params": rest, "lr": 2e-2, "weight_decay": 0}],
        lr=1e-2,
    )
    schedule = sched.SequentialLR(
        optimizer,
        [sched.ConstantLR(optimizer, 0.5, 5), sched.CosineAnnealingWarmRestarts(optimizer, 15)],
        milestones=[5],
    )
    norms: list[float] = []
    for p in model.parameters():
        p.register_hook(lambda grad: norms.append(float(grad.norm())) or grad.clamp(-1, 1))
    sampler = torch.utils.data.WeightedRandomSampler(
        (0.5 + x.squeeze(1)).tolist(), num_samples=64 * steps, replacement=True
    )
    losses = []
    for chosen in torch.tensor(list(sampler)).split(64):
        optimizer.zero_grad()
        predicted = model["quantiles"](x[chosen])
        loss = pinball(predicted, y[chosen])
        (loss + nn.functional.huber_loss(model["mean"](x[chosen]), y[chosen])).backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        assert (predicted.diff(dim=-1) > 0).all()
    assert len(norms) == steps * len(list(model.parameters()))
    below = (y < model["quantiles"](x)).float().mean(0)
    assert torch.allclose(below, levels, atol=0.25)
    inner = torch.quantile(y - 1.5 * x, levels, dim=0, interpolation="linear").squeeze()
    assert inner.shape == (3,) and bool((inner[1:] > inner[:-1]).all())
    return losses
