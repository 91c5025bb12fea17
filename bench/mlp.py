"""Whole training steps."""

from __future__ import annotations

from typing import Any

from bench.case import Group

group = Group("mlp")


def training(torch: Any, net: Any, optimizer: Any, x: Any, y: Any) -> dict[str, Any]:
    """A step towards the classes `y`, and a forward pass, as names of a statement."""
    loss_of = torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()

    def infer() -> Any:
        with torch.no_grad():
            return net(x)

    return {"step": step, "infer": infer}


def _mlp(torch: Any) -> dict[str, Any]:
    nn = torch.nn
    net = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    return training(torch, net, optimizer, x, y)


def _digits(torch: Any) -> dict[str, Any]:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 16, 10),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,))
    return training(torch, net, optimizer, x, y)


group.add("MLP 784-256-128-10, batch 64: forward", "infer()", _mlp)
group.add("MLP 784-256-128-10, batch 64: Adam step", "step()", _mlp, seconds=0.5)
group.add("digits network, batch 64: forward", "infer()", _digits)
group.add("digits network, batch 64: Adam step", "step()", _digits, seconds=0.5)
