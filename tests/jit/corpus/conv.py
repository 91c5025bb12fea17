"""Convolutional networks: classifiers, a U-Net, an autoencoder."""

# ruff: noqa: RUF007

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        shortcut = None
        if stride != 1 or inputs != outputs:
            shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.shortcut is not None:
            identity = self.shortcut(x)
        out += identity
        return self.relu(out)


class ResidualNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layers = nn.ModuleList([Block(4, 4), Block(4, 8, 2), Block(8, 8)])
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        for layer in self.layers:
            x = layer(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.head(torch.flatten(x, 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduced: int):
        super().__init__()
        self.down = nn.Conv2d(channels, reduced, 1)
        self.up = nn.Conv2d(reduced, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = x.mean((2, 3), keepdim=True)
        scale = F.hardsigmoid(self.up(F.relu(self.down(scale))))
        return x * scale


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int, stride: int):
        super().__init__()
        self.use_skip = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.Hardswish(),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.Hardswish(),
            SqueezeExcite(hidden, 4),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.use_skip:
            return x + self.body(x)
        return self.body(x)


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            InvertedResidual(3, 6, 4, 2), InvertedResidual(4, 8, 4, 1), InvertedResidual(4, 8, 6, 2)
        )
        self.classifier = nn.Sequential(nn.Linear(6, 8), nn.Hardswish(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.classifier(x.mean([2, 3]))


class DenseLayer(nn.Module):
    def __init__(self, inputs: int, growth: int):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, growth, 3, padding=1)

    def forward(self, features: list[Tensor]) -> Tensor:
        return self.conv(F.relu(self.norm(torch.cat(features, 1))))


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({f"layer{i}": DenseLayer(3 + 2 * i, 2) for i in range(3)})

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for _name, layer in self.layers.items():
            features.append(layer(features))
        return torch.cat(features, 1)


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch1 = nn.Conv2d(3, 2, 1)
        self.branch3 = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Conv2d(2, 3, 3, padding=1))
        self.branch5 = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Conv2d(2, 2, 5, padding=2))
        self.pool = nn.Conv2d(3, 2, 1)

    def _branches(self, x: Tensor) -> list[Tensor]:
        pooled = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
        return [self.branch1(x), self.branch3(x), self.branch5(x), self.pool(pooled)]

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        outputs = self._branches(x)
        return torch.cat(outputs, 1), len(outputs)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    n, c, h, w = x.shape
    x = x.view(n, groups, c // groups, h, w)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(n, c, h, w)


class ShuffleUnit(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1, groups=2)
        self.point = nn.Conv2d(2, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=1)
        out = torch.cat((left, self.point(self.conv(right))), dim=1)
        return channel_shuffle(out, 2)


class ConvNext(nn.Module):
    def __init__(self, channels: int = 4):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand = nn.Linear(channels, 4 * channels)
        self.shrink = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), 0.1))
        self.beta = nn.Parameter(torch.zeros(4 * channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = F.gelu(self.expand(self.norm(y)))
        response = torch.sqrt((y * y).sum((1, 2), keepdim=True) + 1e-6)
        y = y + y * (response / (response.mean(dim=-1, keepdim=True) + 1e-6)) + self.beta
        y = self.gamma * self.shrink(y)
        return x + y.permute(0, 3, 1, 2)


def double_conv(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU()
    )


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (4, 6, 8)):
        super().__init__()
        self.first = double_conv(1, widths[0])
        self.downs = nn.ModuleList([double_conv(a, b) for a, b in zip(widths, widths[1:])])
        self.ups = nn.ModuleList(
            [nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths[-2::-1], widths[:0:-1])]
        )
        self.merges = nn.ModuleList([double_conv(2 * a, a) for a in widths[-2::-1]])
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips: list[Tensor] = []
        x = self.first(x)
        for down in self.downs:
            skips.append(x)
            x = down(F.max_pool2d(x, 2))
        for up, merge in zip(self.ups, self.merges):
            skip = skips.pop()
            x = up(x)
            rows = skip.size(2) - x.size(2)
            if rows > 0:
                x = torch.cat([x, x.new_zeros((x.size(0), x.size(1), rows, x.size(3)))], dim=2)
            x = merge(torch.cat([x, skip], dim=1))
        return self.last(x)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 3, 3, 2, 1), nn.LeakyReLU(0.1))
        self.mean = nn.Linear(12, 3)
        self.scale = nn.Linear(12, 3)
        self.decoder = nn.Linear(3, 16)

    def reparameterize(self, mean: Tensor, log_var: Tensor) -> Tensor:
        if self.training:
            return mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        return mean

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = torch.flatten(self.encoder(x), start_dim=1)
        mean, log_var = self.mean(hidden), self.scale(hidden)
        z = self.reparameterize(mean, log_var)
        picture = torch.sigmoid(self.decoder(z)).reshape(x.shape)
        divergence = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp(), dim=1)
        return {"picture": picture, "z": z, "loss": F.mse_loss(picture, x) + divergence.mean()}


def picture(channels, size=8):
    return lambda: (torch.randn(2, channels, size, size),)


CASES = {
    "residual net": (ResidualNet, picture(3)),
    "mobile net": (MobileNet, picture(3)),
    "dense net": (DenseNet, picture(3, 5)),
    "inception": (Inception, picture(3, 6)),
    "shuffle unit": (ShuffleUnit, picture(4, 5)),
    "convnext": (ConvNext, picture(4, 5)),
    "u-net": (UNet, picture(1, 8)),
    "autoencoder": (AutoEncoder, picture(1, 4)),
}
