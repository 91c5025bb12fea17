"""Matrix products."""

from __future__ import annotations

from typing import Any

from bench.case import Group

group = Group("matmul")


def _pair(m: int, k: int, n: int) -> Any:
    return lambda torch: {"a": torch.randn(m, k), "b": torch.randn(k, n)}


def _pair_of_float64(n: int) -> Any:
    return lambda torch: {name: torch.randn(n, n, dtype=torch.float64) for name in "ab"}


def _batched(torch: Any) -> dict[str, Any]:
    return {"a": torch.randn(16, 64, 64), "b": torch.randn(16, 64, 64)}


def _linear(torch: Any) -> dict[str, Any]:
    return {"net": torch.nn.Linear(784, 256), "x": torch.randn(64, 784)}


for _n in (64, 128, 256, 512, 1024, 2048):
    group.add(f"{_n} x {_n} x {_n}", "a @ b", _pair(_n, _n, _n), seconds=0.4)
for _n in (64, 512):
    group.add(f"{_n} x {_n} x {_n}, float64", "a @ b", _pair_of_float64(_n))
group.add("8 x 768 x 3072", "a @ b", _pair(8, 768, 3072))
group.add("1 x 1024 x 1024", "a @ b", _pair(1, 1024, 1024))
group.add("16 of 64 x 64 x 64", "a @ b", _batched)
group.add("Linear 64 x 784 -> 256", "net(x)", _linear)
