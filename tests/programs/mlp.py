"""A multilayer perceptron that tells three interleaved spirals apart."""

from __future__ import annotations

import math
from typing import Any


def spirals(torch: Any, per_arm: int, arms: int) -> tuple[Any, Any]:
    """Points [arms * per_arm, 2] on noisy spiral arms, and the arm of each."""
    points, labels = [], []
    radius = torch.linspace(0.1, 1.0, per_arm)
    for arm in range(arms):
        angle = radius * 4.0 + arm * 2 * math.pi / arms + torch.rand(per_arm) * 0.3
        points.append(torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1))
        labels.append(torch.full((per_arm,), arm, dtype=torch.long))
    return torch.cat(points), torch.cat(labels)


def train(torch: Any, steps: int = 50) -> list[float]:
    nn = torch.nn

    class Classifier(nn.Module):
        def __init__(self, hidden: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Linear(2, hidden),
                nn.ReLU(),
                nn.Dropout(0.1),
                nn.Linear(hidden, hidden),
                nn.Tanh(),
            )
            self.head = nn.Linear(hidden, 3)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x))

    torch.manual_seed(0)
    x, y = spirals(torch, per_arm=100, arms=3)
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)

    model = Classifier(32)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)

    losses: list[float] = []
    model.train()
    while True:
        for batch, target in loader:
            if len(losses) == steps:
                return losses
            loss = loss_fn(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
