"""Segmentation by a U-Net: transposed convolutions, Dice loss, channels last, a hooked layer."""

from __future__ import annotations

from typing import Any

import numpy as np


def discs(count: int, size: int = 16) -> tuple[Any, Any]:
    """Pictures [count, 1, size, size] with a disc in noise, and where it is [count, size, size]."""
    rng = np.random.default_rng(6)
    y, x = np.mgrid[:size, :size]
    centre, radius = rng.uniform(4, 12, (count, 2, 1, 1)), rng.uniform(2, 4, (count, 1, 1))
    inside = (x - centre[:, 0]) ** 2 + (y - centre[:, 1]) ** 2 < radius**2
    picture = inside + 0.5 * rng.standard_normal((count, size, size))
    return picture[:, None].astype(np.float32), inside.astype(np.int64)


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class DoubleConv(nn.Module):
        """(convolution => [BN] => ReLU) * 2"""

        def __init__(self, inner: int, outer: int) -> None:
            super().__init__()
            self.double_conv = nn.Sequential(
                nn.Conv2d(inner, outer, kernel_size=3, padding=1, bias=False),
                nn.BatchNorm2d(outer),
                nn.ReLU(inplace=True),
                nn.Conv2d(outer, outer, kernel_size=3, padding="same", padding_mode="reflect"),
                nn.GroupNorm(2, outer),
                nn.ReLU(inplace=True),
            )

        def forward(self, x: Any) -> Any:
            return self.double_conv(x)

    class Up(nn.Module):
        def __init__(self, inner: int, outer: int, bilinear: bool) -> None:
            super().__init__()
            if bilinear:
                self.up = nn.Sequential(
                    nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                    nn.Conv2d(inner, inner // 2, 1),
                )
            else:
                self.up = nn.ConvTranspose2d(inner, inner // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(inner, outer)

        def forward(self, x: Any, skip: Any) -> Any:
            x = self.up(x)
            dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
            x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            return self.conv(torch.cat([skip, x], dim=1))

    class UNet(nn.Module):
        def __init__(self, channels: int = 1, classes: int = 2, width: int = 6) -> None:
            super().__init__()
            self.inc = DoubleConv(channels, width)
            self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
            self.down2 = nn.Sequential(nn.AvgPool2d(2), DoubleConv(2 * width, 4 * width))
            self.drop = nn.Dropout2d(0.1)
            self.up1 = Up(4 * width, 2 * width, bilinear=False)
            self.up2 = Up(2 * width, width, bilinear=True)
            self.outc = nn.Conv2d(width, classes, kernel_size=1)

        def forward(self, x: Any) -> Any:
            x1 = self.inc(x)
            x2 = self.down1(x1)
            x3 = self.drop(self.down2(x2))
            return self.outc(self.up2(self.up1(x3, x2), x1))

    def dice_loss(logits: Any, target: Any, eps: float = 1e-6) -> Any:
        share = F.softmax(logits, dim=1).double()
        hot = F.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2).double()
        inner = 2 * (share * hot).sum(dim=(-1, -2))
        union = share.sum(dim=(-1, -2)) + hot.sum(dim=(-1, -2))
        union = torch.where(union == 0, inner, union)
        return 1 - ((inner + eps) / (union + eps)).mean()

    torch.manual_seed(0)
    model = UNet().double().to(memory_format=torch.channels_last)
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    seen: list[Any] = []
    handle = model.down2.register_forward_hook(lambda m, args, out: seen.append(out.shape))
    dataset = torch.utils.data.TensorDataset(*map(torch.as_tensor, discs(40)))
    train_set, val_set = torch.utils.data.random_split(
        dataset, [32, 8], generator=torch.Generator().manual_seed(0)
    )
    loader = torch.utils.data.DataLoader(train_set, shuffle=True, batch_size=8)
    criterion = nn.CrossEntropyLoss(
        weight=torch.tensor([1.0, 2.0], dtype=torch.float64), label_smoothing=0.01
    )
    optimizer = torch.optim.RAdam(model.parameters(), lr=2e-2, weight_decay=1e-6)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=2)
    losses: list[float] = []
    while len(losses) < steps:
        model.train()
        for images, masks in loader:
            images = images.to(dtype=torch.float64, memory_format=torch.channels_last)
            logits = model(images)
            loss = criterion(logits, masks) + dice_loss(logits, masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.inference_mode():
            images, masks = next(iter(torch.utils.data.DataLoader(val_set, batch_size=8)))
            plateau.step(1 - dice_loss(model(images.double()), masks))
    handle.remove()
    assert set(seen) == {torch.Size([8, 24, 4, 4])}
    return losses[:steps]
