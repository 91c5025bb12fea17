"""Reductions, row-wise operators and data movement."""

from __future__ import annotations

from typing import Any

from bench.case import Group

group = Group("rows")


def _matrix(torch: Any) -> dict[str, Any]:
    return {
        "x": torch.randn(512, 1024),
        "F": torch.nn.functional,
        "w": torch.randn(1024),
        "b": torch.randn(1024),
    }


def _million(torch: Any) -> dict[str, Any]:
    return {"x": torch.randn(1 << 20), "big": torch.randn(1 << 24)}


def _square(torch: Any) -> dict[str, Any]:
    return {
        "x": torch.randn(1024, 1024),
        "table": torch.randn(4096, 1024),
        "index": torch.randint(0, 4096, (4096,)),
    }


group.add("sum, 1M", "x.sum()", _million)
group.add("sum, 16M", "big.sum()", _million)
group.add("max, 1M", "x.max()", _million)
group.add("sum(0), 512x1024", "x.sum(0)", _matrix)
group.add("sum(1), 512x1024", "x.sum(1)", _matrix)
group.add("mean(1), 512x1024", "x.mean(1)", _matrix)
group.add("var(1), 512x1024", "x.var(1)", _matrix)
group.add("argmax(1), 512x1024", "x.argmax(1)", _matrix)
group.add("cumsum(1), 512x1024", "x.cumsum(1)", _matrix)
group.add("softmax(1), 512x1024", "F.softmax(x, 1)", _matrix)
group.add("log_softmax(1), 512x1024", "F.log_softmax(x, 1)", _matrix)
group.add("layer_norm, 512x1024", "F.layer_norm(x, (1024,), w, b)", _matrix)
group.add("transpose copy, 1024x1024", "x.t().contiguous()", _square)
group.add("cat, 2 of 1024x1024", "torch.cat([x, x])", _square)
group.add("rows table[index], 4096x1024", "table[index]", _square)
group.add("sort, 1M", "x.sort()", _million)
