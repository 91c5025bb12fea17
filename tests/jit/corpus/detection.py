"""Detection: anchors, boxes, suppression, heads that loop as long as the data say."""

# ruff: noqa: UP031, UP032, RUF012 (old ways of writing are meant)

import math
from typing import NamedTuple

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


def box_area(boxes: Tensor) -> Tensor:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    top = torch.max(a[:, None, :2], b[:, :2])
    bottom = torch.min(a[:, None, 2:], b[:, 2:])
    sides = (bottom - top).clamp(min=0)
    both = sides[:, :, 0] * sides[:, :, 1]
    return both / (box_area(a)[:, None] + box_area(b) - both)


def suppress(boxes: Tensor, scores: Tensor, limit: float) -> Tensor:
    """Indices of the boxes that stay, best first."""
    order = scores.argsort(descending=True)
    keep: list[int] = []
    while order.numel() > 0:
        first = order[0]
        keep.append(int(first))
        if order.numel() == 1:
            break
        rest = order[1:]
        overlap = box_iou(boxes[first].unsqueeze(0), boxes[rest])[0]
        order = rest[overlap <= limit]
    return torch.tensor(keep, dtype=torch.int64)


def random_boxes(count: int) -> Tensor:
    corner = torch.rand(count, 2) * 4
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * 3], 1)


class Anchors(nn.Module):
    def __init__(self, sizes: list[list[float]], ratios: list[float]):
        super().__init__()
        self.sizes = sizes
        self.ratios = ratios

    def cell(self, sizes: list[float]) -> Tensor:
        shapes: list[list[float]] = []
        for ratio in self.ratios:
            for size in sizes:
                h, w = size * math.sqrt(ratio), size / math.sqrt(ratio)
                shapes.append([-w / 2, -h / 2, w / 2, h / 2])
        return torch.tensor(shapes)

    def forward(self, grids: list[tuple[int, int]], stride: int) -> list[Tensor]:
        if len(grids) != len(self.sizes):
            raise ValueError(f"expected {len(self.sizes)} grids, got {len(grids)}")
        result: list[Tensor] = []
        for (rows, columns), sizes in zip(grids, self.sizes):
            y = torch.arange(rows) * stride
            x = torch.arange(columns) * stride
            yy, xx = torch.meshgrid(y, x, indexing="ij")
            shift = torch.stack([xx.reshape(-1), yy.reshape(-1)] * 2, dim=1)
            result.append((shift[:, None] + self.cell(sizes)[None]).reshape(-1, 4).round())
        return result


class Proposals(nn.Module):
    """Scores and boxes on a grid, decoded and suppressed, picture by picture."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.score = nn.Conv2d(4, 1, 1)
        self.delta = nn.Conv2d(4, 4, 1)
        self.limit: float = 0.4

    def decode(self, delta: Tensor) -> Tensor:
        n, _, h, w = delta.shape
        y, x = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
        centres = torch.stack([x, y], 0) + delta[:, :2]
        halves = 0.5 * torch.exp(delta[:, 2:].clamp(max=math.log(16.0))) * 2
        boxes = torch.cat([centres - halves, centres + halves], 1)
        return boxes.permute(0, 2, 3, 1).reshape(n, h * w, 4)

    def forward(self, pictures: Tensor) -> list[dict[str, Tensor]]:
        hidden = F.relu(self.conv(pictures))
        boxes = self.decode(self.delta(hidden))
        scores = torch.sigmoid(self.score(hidden)).flatten(1)
        found: list[dict[str, Tensor]] = []
        for picture in range(pictures.shape[0]):
            keep = suppress(boxes[picture], scores[picture], self.limit)[:5]
            found.append({"boxes": boxes[picture][keep], "scores": scores[picture][keep]})
        return found


class Matches(NamedTuple):
    indices: Tensor
    positive: Tensor
    counts: tuple[int, int]


class Matcher:
    LOW: int = -1
    BETWEEN: int = -2

    def __init__(self, high: float, low: float):
        self.high = high
        self.low = low

    def match(self, overlap: Tensor) -> Matches:
        best, indices = overlap.max(dim=0)
        low = best < self.low
        between = (best >= self.low) & (best < self.high)
        indices[low] = -1
        indices[between] = -2
        positive = indices >= 0
        return Matches(indices, positive, (int(positive.sum()), int(low.sum().item())))


torch.jit.script(Matcher)


def match_boxes(truth: Tensor, anchors: Tensor, high: float, low: float) -> Matches:
    assert low <= high, "low must not be above high"
    return Matcher(high, low).match(box_iou(truth, anchors))


class RegionPool(nn.Module):
    """The mean of the picture under each box; small boxes give zeros."""

    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))

    def forward(self, picture: Tensor, boxes: Tensor) -> tuple[Tensor, list[str]]:
        rows: list[Tensor] = []
        notes: list[str] = []
        for i in range(boxes.size(0)):
            corners: list[float] = boxes[i].tolist()
            x0, y0, x1, y1 = [int(v) for v in corners]
            if x1 <= x0 or y1 <= y0:
                rows.append(torch.zeros(picture.size(0)))
                notes.append("empty %d" % i)
                continue
            rows.append(picture[:, y0:y1, x0:x1].mean(dim=(1, 2)))
            notes.append("{}x{}".format(x1 - x0, y1 - y0))
        return self.head(torch.stack(rows)), notes


class GridDecoder(nn.Module):
    """Cells of a grid above a threshold, as a list of (class, score, box)."""

    def __init__(self, classes: list[str]):
        super().__init__()
        self.classes = classes
        self.conv = nn.Conv2d(2, 5 + len(classes), 1)

    def forward(self, x: Tensor, threshold: float) -> tuple[list[tuple[str, float]], Tensor]:
        out = self.conv(x)[0]
        objectness = out[0].sigmoid()
        found: list[tuple[str, float]] = []
        boxes: list[Tensor] = []
        for cell in torch.nonzero(objectness > threshold):
            row, column = int(cell[0]), int(cell[1])
            values = out[:, row, column]
            scores = values[5:].softmax(0)
            best = int(scores.argmax())
            found.append((self.classes[best], round(float(scores[best]), 3)))
            centre = torch.stack([values[1].sigmoid() + column, values[2].sigmoid() + row])
            boxes.append(torch.cat([centre, values[3:5].exp()]))
        if not boxes:
            return found, torch.zeros(0, 4)
        return found, torch.stack(boxes)


class FocalLoss(nn.Module):
    __constants__ = ["alpha", "gamma"]

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "mean"):
        super().__init__()
        self.alpha, self.gamma, self.reduction = alpha, gamma, reduction

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        right = p * targets + (1 - p) * (1 - targets)
        loss = ce * ((1 - right) ** self.gamma)
        if self.alpha >= 0:
            loss = (self.alpha * targets + (1 - self.alpha) * (1 - targets)) * loss
        if self.reduction == "mean":
            return loss.mean()
        elif self.reduction == "sum":
            return loss.sum()
        return loss


CASES = {
    "box overlap": (lambda: box_iou, lambda: (random_boxes(3), random_boxes(4))),
    "suppression": (lambda: suppress, lambda: (random_boxes(9), torch.rand(9), 0.3)),
    "anchors": (lambda: Anchors([[2.0], [4.0, 6.0]], [0.5, 1.0]), lambda: ([(2, 3), (1, 2)], 4)),
    "proposals": (Proposals, lambda: (torch.randn(2, 3, 4, 4),)),
    "matcher": (lambda: match_boxes, lambda: (random_boxes(3), random_boxes(8), 0.3, 0.1)),
    "region pool": (RegionPool, lambda: (torch.randn(2, 6, 6), torch.tensor([[0.0, 1.0, 3.0, 4.0], [2.0, 2.0, 2.0, 5.0], [1.0, 0.0, 6.0, 6.0]]))),
    "grid decoder": (lambda: GridDecoder(["cat", "dog", "bird"]), lambda: (torch.randn(1, 2, 3, 3), 0.5)),
    "focal loss": (FocalLoss, lambda: (torch.randn(4, 3), torch.rand(4, 3).round())),
}  # fmt: skip
