"""A denoising diffusion model of short signals, with an average of its weights that draws."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np


def signals(count: int, size: int = 16) -> Any:
    """Waves [count, 1, size] of any phase."""
    phase = np.random.default_rng(1).uniform(0, 2 * math.pi, (count, 1, 1))
    return np.sin(np.linspace(0, 2 * math.pi, size)[None, None] + phase).astype(np.float32)


def extract(values: Any, t: Any, shape: Any) -> Any:
    """The value of each sample's time, to be multiplied with samples of the shape."""
    return values.gather(-1, t).reshape(len(t), *((1,) * (len(shape) - 1)))


def classes(torch: Any) -> Any:
    """The classes of a denoising network and of the diffusion around it."""
    nn, F = torch.nn, torch.nn.functional

    class TimeEmbedding(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            rates = torch.exp(torch.arange(dim // 2) * (-math.log(1000) / (dim // 2 - 1)))
            self.register_buffer("rates", rates, persistent=False)

        def forward(self, t: Any) -> Any:
            angles = t[:, None] * self.rates[None, :]
            return torch.cat((angles.sin(), angles.cos()), dim=-1)

    class Block(nn.Module):
        def __init__(self, dim_in: int, dim_out: int, *, time_dim: int, groups: int = 4) -> None:
            super().__init__()
            self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))
            self.proj = nn.Conv1d(dim_in, dim_out, 3, padding=1)
            self.norm = nn.GroupNorm(groups, dim_out)
            self.act = nn.SiLU()
            self.skip = nn.Conv1d(dim_in, dim_out, 1) if dim_in != dim_out else nn.Identity()

        def forward(self, x: Any, t: Any) -> Any:
            scale, shift = self.mlp(t)[..., None].chunk(2, dim=1)
            return self.act(self.norm(self.proj(x)) * (scale + 1) + shift) + self.skip(x)

    class Denoiser(nn.Module):
        def __init__(self, dim: int = 8) -> None:
            super().__init__()
            self.time = nn.Sequential(TimeEmbedding(dim), nn.Linear(dim, dim * 4), nn.GELU())
            self.inner = nn.ModuleList()
            for dim_in, dim_out in ((1, dim), (dim, dim * 2), (dim * 2, dim)):
                self.inner.append(Block(dim_in, dim_out, time_dim=dim * 4))
            self.final = nn.Conv1d(dim, 1, 1)

        def forward(self, x: Any, t: Any) -> Any:
            t = self.time(t)
            for block in self.inner:
                x = block(x, t)
            return self.final(x)

    class Diffusion(nn.Module):
        def __init__(self, model: Any, timesteps: int = 20) -> None:
            super().__init__()
            self.model, self.timesteps = model, timesteps
            betas = torch.linspace(1e-2, 0.3, timesteps, dtype=torch.float64)
            kept = torch.cumprod(1.0 - betas, dim=0)
            before = F.pad(kept[:-1], (1, 0), value=1.0)
            self.register_buffer("betas", betas.float())
            self.register_buffer("kept", kept.float())
            self.register_buffer("variance", (betas * (1 - before) / (1 - kept)).float())

        def forward(self, x: Any) -> Any:
            t = torch.randint(0, self.timesteps, (x.shape[0],)).long()
            noise = torch.randn_like(x)
            kept = extract(self.kept, t, x.shape)
            loss = F.mse_loss(
                self.model(kept.sqrt() * x + (1 - kept).sqrt() * noise, t), noise, reduction="none"
            )
            return loss.flatten(1).mean(dim=1).mean()

        @torch.inference_mode()
        def sample(self, shape: Any) -> Any:
            x = torch.randn(shape)
            for step in reversed(range(self.timesteps)):
                t = torch.full((shape[0],), step, dtype=torch.long)
                beta, kept = extract(self.betas, t, shape), extract(self.kept, t, shape)
                mean = (x - beta * self.model(x, t) / (1 - kept).sqrt()) / (1 - beta).sqrt()
                x = mean + extract(self.variance, t, shape).sqrt() * torch.randn_like(x)
            return x.clamp_(-1.5, 1.5)

    return Denoiser, Diffusion


def train(torch: Any, steps: int = 50) -> list[float]:
    """The losses, and in the end the size of drawn signals beside that of the data."""
    torch.manual_seed(0)
    denoiser, diffusion = classes(torch)
    model = diffusion(denoiser())
    average = copy.deepcopy(model).eval().requires_grad_(False)
    data = torch.utils.data.DataLoader(signals(128), batch_size=32, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-4)
    losses: list[float] = []
    while len(losses) < steps:
        for batch in data:
            optimizer.zero_grad(set_to_none=True)
            loss = model(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            for current, ema in zip(model.parameters(), average.parameters(), strict=True):
                ema.data.lerp_(current.data, 0.1)
            losses.append(loss.item())
    drawn = average.sample((16, 1, 16))
    assert drawn.is_inference() and 0.2 < drawn.std().item() < 1.3
    return losses[:steps]
