"""Elementwise operators from 64K to 16M floats, each into a fresh result."""

from __future__ import annotations

from typing import Any

from bench.case import Group

group = Group("elementwise")

_SIZES = {"64K": 1 << 16, "1M": 1 << 20, "16M": 1 << 24}
_STATEMENTS = {
    "x + y": "x + y",
    "x * 2.5": "x * 2.5",
    "x + row": "x2 + row",
    "where": "torch.where(mask, x, y)",
    "relu": "torch.relu(x)",
    "sqrt": "torch.sqrt(p)",
    "exp": "torch.exp(x)",
    "log": "torch.log(p)",
    "sigmoid": "torch.sigmoid(x)",
    "tanh": "torch.tanh(x)",
    "gelu": "torch.nn.functional.gelu(x)",
}


def _vectors(n: int) -> Any:
    def setup(torch: Any) -> dict[str, Any]:
        x, y = torch.randn(n), torch.randn(n)
        x2 = x.view(-1, 256)
        return {"x": x, "y": y, "p": y.abs(), "mask": x > 0, "x2": x2, "row": torch.randn(256)}

    return setup


for _label, _n in _SIZES.items():
    for _name, _statement in _STATEMENTS.items():
        group.add(f"{_name}, {_label}", _statement, _vectors(_n), seconds=0.2)
