"""Networks in the manner of well-known ones, for any library with PyTorch's interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import weft


class Network(NamedTuple):
    """How a module is made, and the shape of its input: floats, or tokens below `vocabulary`."""

    make: Callable[[], Any]
    sizes: tuple[int, ...]
    vocabulary: int = 0


def residual(torch: Any, depths: tuple[int, ...], bottleneck: bool) -> Any:
    """ResNet for images of 1,000 classes; `depths`: blocks of each of the four stages."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        """Two convolutions of 3x3, or with `bottleneck` one between two of 1x1."""

        def __init__(self, inside: int, width: int, stride: int) -> None:
            super().__init__()
            outside = width * 4 if bottleneck else width
            # Channels, size and stride of each convolution.
            convolutions = [(width, 3, stride), (outside, 3, 1)]
            if bottleneck:
                convolutions = [(width, 1, 1), (width, 3, stride), (outside, 1, 1)]
            layers: list[Any] = []
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

        def forward(self, x):  # type: ignore[no-untyped-def]
            return torch.relu(self.body(x) + self.shortcut(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inside = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for index in range(depth):
            layers.append(Block(inside, width, 2 if stage and not index else 1))
            inside = width * 4 if bottleneck else width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000)]
    return nn.Sequential(*layers)


def encoder(torch: Any) -> Any:
    """A transformer encoder of six layers of 384 features."""
    layer = torch.nn.TransformerEncoderLayer(384, 6, 1536, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)


def recurrent(torch: Any) -> Any:
    """An LSTM of two layers of 256 features; the class of a sequence."""
    nn = torch.nn

    class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(256, 256, 2, batch_first=True)
            self.head = nn.Linear(256, 10)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.head(self.lstm(x)[0][:, -1])

    return Recurrent()


def gpt(torch: Any) -> Any:
    """A decoder of 10.7 million parameters over 128 tokens of 65 kinds."""
    nn = torch.nn

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inputs = nn.Linear(384, 1152, bias=False)
            self.output = nn.Linear(384, 384, bias=False)

        def forward(self, x):  # type: ignore[no-untyped-def]
            parts = self.inputs(x).unflatten(-1, [3, 6, 64]).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
            return self.output(seen.transpose(1, 2).flatten(2))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.attend = nn.Sequential(nn.LayerNorm(384), Attention())
            self.think = nn.Sequential(
                nn.LayerNorm(384), nn.Linear(384, 1536), nn.GELU(), nn.Linear(1536, 384)
            )

        def forward(self, x):  # type: ignore[no-untyped-def]
            x = x + self.attend(x)
            return x + self.think(x)

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(65, 384)
            self.place = nn.Embedding(128, 384)
            self.blocks = nn.Sequential(*(Block() for _ in range(6)), nn.LayerNorm(384))
            self.head = nn.Linear(384, 65, bias=False)

        def forward(self, x):  # type: ignore[no-untyped-def]
            places = torch.arange(x.shape[1])
            return self.head(self.blocks(self.token(x) + self.place(places)))

    return Decoder()


def unet(torch: Any) -> Any:
    """A U-Net of three levels with 16 to 64 channels."""
    nn = torch.nn

    def pair(inside: int, outside: int) -> Any:
        convolutions = [nn.Conv2d(inside, outside, 3, 1, 1), nn.Conv2d(outside, outside, 3, 1, 1)]
        norms = [nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)]
        return nn.Sequential(
            convolutions[0], norms[0], nn.ReLU(), convolutions[1], norms[1], nn.ReLU()
        )

    class Level(nn.Module):  # type: ignore[misc, name-defined]
        """Convolutions, and a level of half the size between two of them."""

        def __init__(self, inside: int, width: int, below: Any) -> None:
            super().__init__()
            self.before, self.below = pair(inside, width), below
            self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
            self.after = pair(2 * width, width)

        def forward(self, x):  # type: ignore[no-untyped-def]
            x = self.before(x)
            below = self.up(self.below(nn.functional.max_pool2d(x, 2)))
            return self.after(torch.cat([x, below], 1))

    return nn.Sequential(Level(3, 16, Level(16, 32, pair(32, 64))), nn.Conv2d(16, 2, 1))


def mobile(torch: Any) -> Any:
    """MobileNetV2 for images of 1,000 classes: blocks that widen, convolve each channel alone, and
    narrow again."""
    nn = torch.nn

    def convolution(inside: int, outside: int, size: int, stride: int, groups: int) -> list[Any]:
        padding = size // 2
        layer = nn.Conv2d(inside, outside, size, stride, padding, groups=groups, bias=False)
        return [layer, nn.BatchNorm2d(outside)]

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int, stride: int, wider: int) -> None:
            super().__init__()
            width = inside * wider
            self.adds = stride == 1 and inside == outside
            self.body = nn.Sequential(
                *convolution(inside, width, 1, 1, 1),
                nn.ReLU6(),
                *convolution(width, width, 3, stride, width),
                nn.ReLU6(),
                *convolution(width, outside, 1, 1, 1),
            )

        def forward(self, x):  # type: ignore[no-untyped-def]
            return x + self.body(x) if self.adds else self.body(x)

    layers = [*convolution(3, 32, 3, 2, 1), nn.ReLU6()]
    inside = 32
    # How much wider, channels, blocks, stride of the first one.
    for wider, outside, blocks, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for index in range(blocks):
            layers.append(Block(inside, outside, 1 if index else stride, wider))
            inside = outside
    layers += [*convolution(320, 1280, 1, 1, 1), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


@cache
def networks(torch: Any) -> dict[str, Network]:
    """By name. The seed is set before each is made: a library makes the same one every time."""

    def seeded(make: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        def made() -> Any:
            torch.manual_seed(0)
            return make(torch, *arguments)

        return made

    resnet_18 = seeded(residual, (2, 2, 2, 2), False)
    return {
        "ResNet-18": Network(resnet_18, (1, 3, 224, 224)),
        "ResNet-18, batch 8": Network(resnet_18, (8, 3, 224, 224)),
        "ResNet-50": Network(seeded(residual, (3, 4, 6, 3), True), (1, 3, 224, 224)),
        "MobileNet": Network(seeded(mobile), (1, 3, 224, 224)),
        "MobileNet, batch 4": Network(seeded(mobile), (4, 3, 224, 224)),
        "transformer encoder": Network(seeded(encoder), (1, 128, 384)),
        "LSTM": Network(seeded(recurrent), (4, 64, 256)),
        "GPT, batch 8": Network(seeded(gpt), (8, 128), 65),
        "U-Net, batch 4": Network(seeded(unet), (4, 3, 64, 64)),
    }


# Those that run without training; the others are trained.
INFERENCE = (
    "ResNet-18",
    "ResNet-50",
    "ResNet-18, batch 8",
    "MobileNet",
    "transformer encoder",
    "LSTM",
)
_FOLDER = TemporaryDirectory(prefix="weft-bench-")


def input_of(torch: Any, name: str) -> Any:
    """The same input for each library."""
    network = networks(torch)[name]
    torch.manual_seed(1)
    if network.vocabulary:
        return torch.randint(0, network.vocabulary, network.sizes)
    return torch.randn(network.sizes)


@cache
def archive(name: str) -> Path:
    """The file of a network's archive, ready for inference; it lives as long as the process."""
    path = Path(_FOLDER.name) / f"{name}.pt"
    weft.jit.save(weft.jit.script(networks(weft)[name].make().eval()), path)
    return path
