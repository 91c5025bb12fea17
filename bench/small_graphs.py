"""Small graphs: forward and backward where overhead is everything."""

from __future__ import annotations

from typing import Any

from bench.case import Group

group = Group("small_graphs")


def _vectors(torch: Any) -> dict[str, Any]:
    return {"x": torch.ones(4, requires_grad=True), "b": torch.ones(4)}


def _chain(torch: Any) -> dict[str, Any]:
    def chain(x: Any, n: int = 100) -> None:
        y = x
        for _ in range(n):
            y = y * 1.01
        y.sum().backward()

    return {"x": torch.ones(4, requires_grad=True), "chain": chain}


def _tiny(torch: Any) -> dict[str, Any]:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(16, 8), torch.randn(16, 1)
    loss_of = nn.MSELoss()

    def step() -> None:
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()

    def infer() -> Any:
        with torch.no_grad():
            return net(x)

    return {"step": step, "net": net, "x": x, "infer": infer}


group.add("(x * b).sum().backward()", "(x * b).sum().backward()", _vectors)
group.add("chain of 100 products, backward", "chain(x)", _chain)
group.add("MLP 8-16-1, batch 16: forward", "net(x)", _tiny)
group.add("MLP 8-16-1, batch 16: no_grad forward", "infer()", _tiny)
group.add("MLP 8-16-1, batch 16: SGD step", "step()", _tiny)
