"""A variational autoencoder of 8 x 8 pictures of blobs."""

from __future__ import annotations

from typing import Any


def blobs(torch: Any, count: int) -> Any:
    """Pictures [count, 64] with one soft blob each, values in [0, 1]."""
    centre = torch.rand(count, 2) * 5 + 1.5
    width = torch.rand(count, 1, 1) + 0.8
    place = torch.arange(8).float()
    dy = place.view(1, 8, 1) - centre[:, 0].view(-1, 1, 1)
    dx = place.view(1, 1, 8) - centre[:, 1].view(-1, 1, 1)
    return torch.exp(-(dx**2 + dy**2) / (2 * width**2)).view(count, 64)


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self, hidden: int = 48, latent: int = 4) -> None:
            super().__init__()
            self.encoder = nn.Linear(64, hidden)
            self.mu = nn.Linear(hidden, latent)
            self.logvar = nn.Linear(hidden, latent)
            self.decoder = nn.Sequential(
                nn.Linear(latent, hidden),
                nn.ELU(),
                nn.Linear(hidden, 64),
                nn.Sigmoid(),
            )

        def reparameterize(self, mu: Any, logvar: Any) -> Any:
            std = torch.exp(0.5 * logvar)
            return mu + torch.randn_like(std) * std

        def forward(self, x: Any) -> tuple[Any, Any, Any]:
            h = F.softplus(self.encoder(x))
            mu, logvar = self.mu(h), self.logvar(h)
            return self.decoder(self.reparameterize(mu, logvar)), mu, logvar

    def loss_function(recon: Any, x: Any, mu: Any, logvar: Any) -> Any:
        bce = F.binary_cross_entropy(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / len(x)

    torch.manual_seed(2)
    data = blobs(torch, 256)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(steps):
        batch = data[(step % 4) * 64 : (step % 4 + 1) * 64]
        optimizer.zero_grad()
        loss = loss_function(*_with_input(model(batch), batch))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _with_input(result: tuple[Any, Any, Any], x: Any) -> tuple[Any, Any, Any, Any]:
    recon, mu, logvar = result
    return recon, x, mu, logvar
