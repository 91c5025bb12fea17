"""Batches without samples, as the last ones of a detector: shapes, gradients of parameters and buffers as PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytestmark = pytest.mark.parity

CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Linear": (lambda nn: nn.Linear(3, 2), (0, 3)),
    "Conv1d": (lambda nn: nn.Conv1d(3, 2, 2), (0, 3, 4)),
    "Conv2d": (lambda nn: nn.Conv2d(3, 2, 3), (0, 3, 5, 5)),
    "Conv3d": (lambda nn: nn.Conv3d(4, 2, 2, stride=2, groups=2), (0, 4, 4, 5, 6)),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(3, 2, 2), (0, 3, 4)),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(3, 2, 2), (0, 3, 4, 4)),
    "ConvTranspose3d": (lambda nn: nn.ConvTranspose3d(4, 2, 2, groups=2), (0, 4, 4, 5, 6)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3), (0, 3)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3), (0, 3, 4, 4)),
    "BatchNorm2d of no rows": (lambda nn: nn.BatchNorm2d(3), (2, 3, 0, 4)),
    "BatchNorm2d in evaluation": (lambda nn: nn.BatchNorm2d(3).eval(), (0, 3, 4, 4)),
    "BatchNorm3d": (lambda nn: nn.BatchNorm3d(3), (0, 3, 4, 4, 4)),
    "BatchNorm1d without statistics": (
        lambda nn: nn.BatchNorm1d(3, track_running_stats=False),
        (0, 3),
    ),
    "BatchNorm1d without weights": (lambda nn: nn.BatchNorm1d(3, affine=False), (0, 3)),
    "LayerNorm": (lambda nn: nn.LayerNorm(3), (0, 3)),
    "GroupNorm": (lambda nn: nn.GroupNorm(1, 3), (0, 3, 4)),
    "RMSNorm": (lambda nn: nn.RMSNorm(3), (0, 3)),
    "PReLU": (lambda nn: nn.PReLU(3), (0, 3)),
    "MaxPool3d": (lambda nn: nn.MaxPool3d(2), (0, 3, 4, 4, 4)),
    "AvgPool3d": (lambda nn: nn.AvgPool3d(2), (0, 3, 4, 4, 4)),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d(2), (0, 1, 4, 4)),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2), (0, 3, 4, 4)),
    "ReflectionPad2d": (lambda nn: nn.ReflectionPad2d(1), (0, 1, 4, 4)),
    "Fold": (lambda nn: nn.Fold((4, 4), 2), (0, 4, 9)),
    "Unfold": (lambda nn: nn.Unfold(2), (0, 1, 4, 4)),
    "LocalResponseNorm": (lambda nn: nn.LocalResponseNorm(2), (0, 3, 4, 4)),
    "LSTM": (lambda nn: nn.LSTM(3, 2), (4, 0, 3)),
    "TransformerEncoderLayer": (
        lambda nn: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
        (0, 2, 4),
    ),
}


def outcome(t: Any, name: str) -> list[Any]:
    make, shape = CASES[name]
    module, x = make(t.nn), t.ones(shape, requires_grad=True)
    result = module(x)
    result = result[0] if isinstance(result, tuple) else result
    (result.sum() if result.requires_grad else (result * x.sum()).sum()).backward()
    return [
        tuple(result.shape),
        x.grad.tolist(),
        [None if p.grad is None else p.grad.tolist() for p in module.parameters()],
        [buffer.tolist() for buffer in module.buffers()],
    ]


@pytest.mark.parametrize("name", list(CASES))
def test_as_pytorch(name: str) -> None:
    assert outcome(weft, name) == outcome(torch, name)
