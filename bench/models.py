"""Modules in the manner of well-known ones, of weft's layers, and their archives."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import weft
from weft import Tensor, nn


class Block(nn.Module):
    """The residual block of ResNet: two convolutions of 3x3, or with `bottleneck` one between two
    of 1x1."""

    def __init__(self, inside: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        outside = width * 4 if bottleneck else width
        # Channels, size and stride of each convolution.
        convolutions = [(width, 3, stride), (outside, 3, 1)]
        if bottleneck:
            convolutions = [(width, 1, 1), (width, 3, stride), (outside, 1, 1)]
        layers: list[nn.Module] = []
        channels = inside
        for target, size, step in convolutions:
            layers += [
                nn.Conv2d(channels, target, size, step, size // 2, bias=False),
                nn.BatchNorm2d(target),
                nn.ReLU(),
            ]
            channels = target
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """Images to 1,000 classes; `depths`: blocks of each of the four stages."""

    def __init__(self, depths: tuple[int, ...], bottleneck: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, inside = [], 64
        for stage, depth in enumerate(depths):
            width = 64 * 2**stage
            for index in range(depth):
                blocks.append(Block(inside, width, 2 if stage and not index else 1, bottleneck))
                inside = width * 4 if bottleneck else width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inside, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean([2, 3]))


class Encoder(nn.Module):
    """A transformer encoder of four layers."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class Recurrent(nn.Module):
    """An LSTM of two layers; the class of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


# By name: the module, and the shape of its input.
MODELS = {
    "ResNet-18": (lambda: ResNet((2, 2, 2, 2), False), (1, 3, 224, 224)),
    "ResNet-50": (lambda: ResNet((3, 4, 6, 3), True), (1, 3, 224, 224)),
    "transformer encoder": (Encoder, (4, 64, 256)),
    "LSTM": (Recurrent, (4, 50, 128)),
}
_FOLDER = TemporaryDirectory(prefix="weft-bench-")


@cache
def archive(name: str) -> Path:
    """The file of a model's archive, ready for inference; it lives as long as the process."""
    weft.manual_seed(0)
    path = Path(_FOLDER.name) / f"{name}.pt"
    weft.jit.save(weft.jit.script(MODELS[name][0]().eval()), path)
    return path
