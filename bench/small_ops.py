"""Operators on four floats: what one call costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.case import Group

group = Group("small_ops")


def _operands(torch: Any) -> dict[str, Any]:
    return {
        "a": torch.ones(4),
        "b": torch.ones(4),
        "g": torch.ones(4, requires_grad=True),
        "m": torch.ones(2, 2),
        "one": torch.ones(1),
        "array": np.ones(4, dtype=np.float32),
        "values": [1.0, 2.0, 3.0, 4.0],
    }


for _name, _statement in {
    "a + b": "a + b",
    "a + b, requires_grad": "g + b",
    "a + 1.0": "a + 1.0",
    "a * b": "a * b",
    "a.add_(b)": "a.add_(b)",
    "a < b": "a < b",
    "relu(a)": "torch.relu(a)",
    "exp(a)": "torch.exp(a)",
    "a.sum()": "a.sum()",
    "m.sum(dim=0, keepdim=True)": "m.sum(dim=0, keepdim=True)",
    "m @ m": "m @ m",
    "a.view(2, 2)": "a.view(2, 2)",
    "m.t()": "m.t()",
    "a[0]": "a[0]",
    "a[1:3]": "a[1:3]",
    "a[0] = 1.0": "a[0] = 1.0",
    "one.item()": "one.item()",
    "empty(4)": "torch.empty(4)",
    "zeros(4)": "torch.zeros(4)",
    "tensor(list of 4)": "torch.tensor(values)",
    "from_numpy": "torch.from_numpy(array)",
    "numpy()": "a.numpy()",
}.items():
    group.add(_name, _statement, _operands, seconds=0.15)
