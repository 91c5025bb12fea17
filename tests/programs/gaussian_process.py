"""Gaussian process regression: the marginal likelihood by Cholesky, fitted by L-BFGS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def train(torch: Any, steps: int = 50) -> list[float]:
    """The marginal likelihood before each step."""
    nn, parametrize = torch.nn, torch.nn.utils.parametrize

    class Positive(nn.Module):
        def forward(self, x: Any) -> Any:
            return nn.functional.softplus(x)

        def right_inverse(self, y: Any) -> Any:
            return y + torch.log(-torch.expm1(-y))

    class RBF(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.lengthscale = nn.Parameter(torch.full((size,), 2.0))
            self.outputscale = nn.Parameter(torch.tensor(0.5))
            for name in ("lengthscale", "outputscale"):
                parametrize.register_parametrization(self, name, Positive())

        def forward(self, a: Any, b: Any) -> Any:
            square = torch.cdist(a / self.lengthscale, b / self.lengthscale).square()
            return self.outputscale * torch.exp(-0.5 * square)

    class ExactGP(nn.Module):
        def __init__(self, x: Any, y: Any) -> None:
            super().__init__()
            self.kernel, self.mean = RBF(x.shape[1]), nn.Parameter(torch.zeros(()))
            self.raw_noise = nn.Parameter(torch.tensor(-1.0))
            self.register_buffer("x", x)
            self.register_buffer("y", y)

        def factor(self) -> Any:
            noise = (self.raw_noise.exp() + 1e-6) * torch.eye(len(self.x))
            return torch.linalg.cholesky(self.kernel(self.x, self.x) + noise)

        def loss(self) -> Any:
            root, rest = self.factor(), (self.y - self.mean).unsqueeze(-1)
            fit = 0.5 * (rest.mT @ torch.cholesky_solve(rest, root)).squeeze()
            complexity = root.diagonal(dim1=-2, dim2=-1).log().sum()
            return (fit + complexity) / len(self.x) + 0.5 * math.log(2 * math.pi)

        @torch.no_grad()
        def posterior(self, at: Any) -> Any:
            root, between = self.factor(), self.kernel(self.x, at)
            half = torch.linalg.solve_triangular(root, between, upper=False)
            rest = (self.y - self.mean)[:, None]
            mean = self.mean + (between.T @ torch.cholesky_solve(rest, root)).squeeze(-1)
            covariance = self.kernel(at, at) - half.T @ half + 1e-6 * torch.eye(len(at))
            return torch.distributions.MultivariateNormal(mean, covariance_matrix=covariance)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        rng = np.random.default_rng(0)
        x = rng.uniform(-3, 3, (24, 1))
        y = torch.from_numpy(np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(24))
        model = ExactGP(torch.from_numpy(x), y)
        optimizer = torch.optim.LBFGS(
            model.parameters(), lr=1, max_iter=1, history_size=8, line_search_fn="strong_wolfe"
        )

        def closure() -> Any:
            optimizer.zero_grad()
            loss = model.loss()
            loss.backward()
            return loss

        # Not what the line search tries: near the minimum rounding decides how often it does.
        losses: list[float] = []
        while len(losses) < steps:
            losses.append(model.loss().item())
            optimizer.step(closure)
        at = torch.linspace(-2.5, 2.5, 9).unsqueeze(-1)
        posterior = model.posterior(at)
        assert (posterior.mean - torch.sin(2 * at[:, 0])).abs().max() < 0.5
        assert torch.isfinite(posterior.log_prob(posterior.rsample((3,)))).all()
    finally:
        torch.set_default_dtype(before)
    return losses
