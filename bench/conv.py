"""Convolution, pooling and batch norm over images."""

from __future__ import annotations

from typing import Any

from bench.case import Group

group = Group("conv")


def _conv(batch: int, inputs: int, outputs: int, kernel: int, size: int, **options: Any) -> Any:
    def setup(torch: Any) -> dict[str, Any]:
        net = torch.nn.Conv2d(inputs, outputs, kernel, **options)
        net.requires_grad_(False)
        return {"net": net, "x": torch.randn(batch, inputs, size, size)}

    return setup


def _training(torch: Any) -> dict[str, Any]:
    net = torch.nn.Conv2d(32, 64, 3, padding=1)
    x = torch.randn(64, 32, 14, 14, requires_grad=True)
    return {"net": net, "x": x}


def _image(torch: Any) -> dict[str, Any]:
    net = torch.nn.BatchNorm2d(64)
    return {"x": torch.randn(8, 64, 56, 56), "norm": net, "F": torch.nn.functional}


group.add("3x3 64->64, 56x56, batch 8", "net(x)", _conv(8, 64, 64, 3, 56, padding=1))
group.add("1x1 256->64, 56x56, batch 8", "net(x)", _conv(8, 256, 64, 1, 56))
group.add("7x7/2 3->64, 224x224, batch 4", "net(x)", _conv(4, 3, 64, 7, 224, stride=2, padding=3))
group.add(
    "3x3/2 128->128, 56x56, batch 4", "net(x)", _conv(4, 128, 128, 3, 56, stride=2, padding=1)
)
group.add(
    "depthwise 3x3 128, 56x56, batch 8", "net(x)", _conv(8, 128, 128, 3, 56, padding=1, groups=128)
)
group.add("3x3 1->32, 28x28, batch 64", "net(x)", _conv(64, 1, 32, 3, 28, padding=1))
group.add("3x3 32->64, 14x14, batch 64, with backward", "net(x).sum().backward()", _training)
group.add("max_pool2d 2, 8x64x56x56", "F.max_pool2d(x, 2)", _image)
group.add("batch_norm training, 8x64x56x56", "norm(x)", _image)
