"""Detection of squares in pictures: anchors, focal and box losses, suppression of doubles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SIZE, STRIDE = 32, 4


def pictures(count: int) -> list[tuple[Any, Any, Any]]:
    """Pictures [1, 32, 32] with one or two squares, their boxes (x1, y1, x2, y2) and classes."""
    rng = np.random.default_rng(5)
    made = []
    for _ in range(count):
        picture = 0.1 * rng.standard_normal((1, SIZE, SIZE)).astype(np.float32)
        boxes, labels = [], []
        for _ in range(rng.integers(1, 3)):
            x, y = rng.integers(1, SIZE - 11, 2)
            side, label = int(rng.integers(7, 10)), int(rng.integers(0, 2))
            picture[0, y : y + side, x : x + side] += 1.0 if label else -1.0
            boxes.append([x, y, x + side, y + side])
            labels.append(label)
        made.append((picture, np.array(boxes, np.float32), np.array(labels)))
    return made


def box_iou(torch: Any, a: Any, b: Any) -> Any:
    """Intersection over union of each pair of boxes, [len(a), len(b)]."""
    area_a, area_b = ((x[:, 2:] - x[:, :2]).prod(dim=1) for x in (a, b))
    top = torch.max(a[:, None, :2], b[None, :, :2])
    bottom = torch.min(a[:, None, 2:], b[None, :, 2:])
    inner = (bottom - top).clamp(min=0).prod(-1)
    return inner / (area_a[:, None] + area_b - inner)


def nms(torch: Any, boxes: Any, scores: Any, threshold: float) -> Any:
    """Indices of the boxes that stay, the best first."""
    order, kept = scores.argsort(descending=True, stable=True), []
    while order.numel() > 0:
        best, order = order[0], order[1:]
        kept.append(best)
        order = order[box_iou(torch, boxes[best][None], boxes[order])[0] <= threshold]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)


def encode(torch: Any, boxes: Any, anchors: Any) -> Any:
    """Boxes as offsets and logarithms of sizes, relative to their anchors."""
    size, base = boxes[:, 2:] - boxes[:, :2], anchors[:, 2:] - anchors[:, :2]
    shift = (boxes[:, :2] + size / 2 - anchors[:, :2] - base / 2) / base
    return torch.hstack([shift, torch.log(size / base)])


def decode(torch: Any, deltas: Any, anchors: Any) -> Any:
    base = anchors[:, 2:] - anchors[:, :2]
    centre = anchors[:, :2] + base / 2 + deltas[:, :2] * base
    half = base * torch.exp(deltas[:, 2:].clamp(max=math.log(4))) / 2
    return torch.cat((centre - half, centre + half), 1).clamp_(0, SIZE)


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class Squares(torch.utils.data.Dataset):
        items = pictures(32)

        def __len__(self) -> int:
            return len(self.items)

        def __getitem__(self, i: int) -> Any:
            picture, boxes, labels = map(torch.from_numpy, self.items[i])
            return picture, {"boxes": boxes, "labels": labels, "image_id": i}

    class Detector(nn.Module):
        def __init__(self, width: int = 16, classes: int = 2) -> None:
            super().__init__()
            layers: list[Any] = []
            for inner, outer in ((1, width), (width, width)):
                layers += [nn.Conv2d(inner, outer, 3, stride=2, padding=1), nn.Hardswish()]
            self.backbone = nn.Sequential(*layers, nn.Conv2d(width, width, 3, padding=1), nn.SiLU())
            self.cls = nn.Conv2d(width, classes, 3, padding=1)
            self.reg = nn.Conv2d(width, 4, 3, padding=1)
            for head in (self.cls, self.reg):
                nn.init.normal_(head.weight, std=0.01)
            nn.init.constant_(self.cls.bias, -math.log((1 - 0.01) / 0.01))
            centre = (torch.arange(SIZE // STRIDE) + 0.5) * STRIDE
            y, x = torch.meshgrid(centre, centre, indexing="ij")
            anchors = torch.stack((x - 4, y - 4, x + 4, y + 4), dim=-1).reshape(-1, 4)
            self.register_buffer("anchors", anchors)

        def forward(self, images: Any) -> tuple[Any, Any]:
            features = self.backbone(images)
            heads = (self.cls(features), self.reg(features))
            scores, deltas = (h.permute(0, 2, 3, 1).flatten(1, 2).contiguous() for h in heads)
            return scores, deltas

    def focal_loss(logits: Any, targets: Any, alpha: float = 0.25, gamma: float = 2.0) -> Any:
        p = torch.sigmoid(logits)
        entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        weight = alpha * targets + (1 - alpha) * (1 - targets)
        return (weight * entropy * (1 - p_t) ** gamma).sum()

    def loss_of(model: Any, scores: Any, deltas: Any, target: Any) -> Any:
        iou = box_iou(torch, target["boxes"], model.anchors)
        overlap, match = iou.max(dim=0)
        match[iou.argmax(dim=1)] = torch.arange(len(target["boxes"]))
        hit = overlap >= 0.4
        hit[iou.argmax(dim=1)] = True
        wanted = torch.zeros_like(scores)
        wanted[hit, target["labels"][match[hit]]] = 1.0
        fits = encode(torch, target["boxes"][match[hit]], model.anchors[hit])
        box_loss = F.smooth_l1_loss(deltas[hit], fits, beta=1 / 9, reduction="sum")
        return (focal_loss(scores, wanted) + box_loss) / max(1, hit.sum().item())

    torch.manual_seed(0)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=5)
    loader = torch.utils.data.DataLoader(
        Squares(), batch_size=4, shuffle=True, collate_fn=lambda batch: tuple(zip(*batch))
    )
    losses: list[float] = []
    while len(losses) < steps:
        for images, targets in loader:
            scores, deltas = model(torch.stack(images))
            loss = torch.stack([loss_of(model, *each) for each in zip(scores, deltas, targets)])
            optimizer.zero_grad()
            loss.mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0, norm_type=2)
            optimizer.step()
            warm.step()
            losses.append(loss.mean().item())
    model.eval()
    with torch.no_grad():
        scores, deltas = model(torch.from_numpy(Squares.items[0][0])[None])
        best, _ = scores[0].sigmoid().max(-1)
        boxes = decode(torch, deltas[0], model.anchors)
        kept = nms(torch, boxes, best, 0.3)
    assert 0 < len(kept) < len(boxes)
    apart = box_iou(torch, boxes[kept], boxes[kept]).fill_diagonal_(0)
    assert (apart <= 0.3).all()
    return losses[:steps]
