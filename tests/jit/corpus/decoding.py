"""Decoding step by step: state that is None at first, hypotheses in heaps and dicts, lattices."""

# ruff: noqa: UP045, UP006, UP035, SIM102 (old ways of writing are meant)

from typing import Dict, List, NamedTuple, Optional, Tuple

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class CachedAttention(nn.Module):
    """Attention that keeps what it has seen, in attributes that are None before the first step."""

    keys: Optional[Tensor]
    values: Optional[Tensor]

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.keys = None
        self.values = None

    def reset(self) -> None:
        self.keys = None
        self.values = None

    def forward(self, x: Tensor, keep: bool = False) -> Tensor:
        n, steps, width = x.shape
        parts = self.project(x).view(n, steps, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if keep:
            seen, held = self.keys, self.values
            if seen is not None and held is not None:
                k = torch.cat((seen, k), dim=2)
                v = torch.cat([held, v], 2)
            self.keys, self.values = k, v
        length = k.size(2)
        mask = torch.ones(steps, length, dtype=torch.bool).tril(diagonal=length - steps)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(n, steps, width))


class StepwiseDecoder(nn.Module):
    """The same sequence at once and token by token."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([CachedAttention(4, 2) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(4) for _ in range(2)])

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        whole = x
        for layer, norm in zip(self.layers, self.norms):
            layer.reset()
            whole = whole + layer(norm(whole))
        steps: List[Tensor] = []
        for t in range(x.size(1)):
            h = x[:, t : t + 1]
            for block, before in zip(self.layers, self.norms):
                h = h + block(before(h), keep=True)
            steps.append(h)
        return whole, torch.cat(steps, dim=1)


class Predictor(nn.Module):
    """The part of a transducer that looks at the labels given so far."""

    def __init__(self, labels: int, width: int):
        super().__init__()
        self.embed = nn.Embedding(labels, width)
        self.cell = nn.LSTMCell(width, width)

    def forward(
        self, label: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        x = self.embed(label)
        if state is None:
            zeros = torch.zeros(label.size(0), self.cell.hidden_size)
            state = (zeros, zeros)
        h, c = self.cell(x, state)
        return h, (h, c)


class Transducer(nn.Module):
    """Greedy decoding of frames: at most so many labels each, until the blank."""

    def __init__(self, most: int = 2):
        super().__init__()
        self.blank = 0
        self.most = most
        self.encoder = nn.Linear(6, 5)
        self.predictor = Predictor(4, 5)
        self.joint = nn.Sequential(nn.Tanh(), nn.Linear(5, 4))

    def forward(self, frames: Tensor) -> Tuple[List[int], Tensor]:
        given: List[int] = []
        total = torch.zeros(())
        state: Optional[Tuple[Tensor, Tensor]] = None
        g, following = self.predictor(torch.full([1], self.blank, dtype=torch.long), state)
        for t in range(frames.size(0)):
            frame = self.encoder(frames[t].unsqueeze(0))
            count = 0
            while count < self.most:
                scores = self.joint(frame + g)[0].log_softmax(0)
                best = int(scores.argmax(0).item())
                total = total + scores[best]
                if best == self.blank:
                    break
                given.append(best)
                state = following
                g, following = self.predictor(torch.tensor([best]), state)
                count += 1
        return given, total


class Hypothesis(NamedTuple):
    labels: List[int]
    score: float


class Heap:
    """The hypotheses of the lowest score first, in an array."""

    def __init__(self, limit: int):
        self.limit = limit
        self.items: List[Hypothesis] = []

    def __len__(self) -> int:
        return len(self.items)

    def swap(self, a: int, b: int) -> None:
        self.items[a], self.items[b] = self.items[b], self.items[a]

    def push(self, item: Hypothesis) -> None:
        self.items.append(item)
        at = len(self.items) - 1
        while at > 0 and self.items[at].score < self.items[(at - 1) // 2].score:
            self.swap(at, (at - 1) // 2)
            at = (at - 1) // 2
        if len(self.items) > self.limit:
            self.pop()

    def pop(self) -> Hypothesis:
        self.swap(0, -1)
        last = self.items.pop()
        at = 0
        while True:
            least = at
            for child in [2 * at + 1, 2 * at + 2]:
                if child < len(self.items):
                    if self.items[child].score < self.items[least].score:
                        least = child
            if least == at:
                break
            self.swap(at, least)
            at = least
        return last


def prefix_beams(scores: Tensor, width: int) -> Tuple[List[List[int]], List[float]]:
    """The best sequences of labels: those that end in the same way are one."""
    beams = [Hypothesis([0], 0.0)]
    for t in range(scores.size(0)):
        merged: Dict[str, Hypothesis] = {}
        for beam in beams:
            best, labels = scores[t].topk(width)
            for i in range(width):
                label = int(labels[i])
                longer = beam.labels if label == beam.labels[-1] else beam.labels + [label]
                key = " ".join([str(each) for each in longer])
                score = beam.score + float(best[i])
                if key not in merged or merged[key].score < score:
                    merged[key] = Hypothesis(longer, score)
        heap = Heap(width)
        for hypothesis in merged.values():
            heap.push(hypothesis)
        beams = [Hypothesis([0], 0.0) for _ in range(0)]
        while len(heap) > 0:
            beams.append(heap.pop())
    return [beam.labels for beam in beams], [round(beam.score * 1000.0) / 1000.0 for beam in beams]


class Lattice(nn.Module):
    """A conditional random field: the sum over all paths, and the best path of each sequence."""

    def __init__(self):
        super().__init__()
        self.change = nn.Parameter(torch.randn(3, 3))

    def forward(self, emissions: Tensor, mask: Tensor) -> Tuple[Tensor, List[List[int]]]:
        n, steps, _ = emissions.shape
        total = emissions[:, 0]
        best = emissions[:, 0]
        back: List[Tensor] = []
        for t in range(1, steps):
            inside = mask[:, t].unsqueeze(1)
            here = emissions[:, t]
            paths = torch.logsumexp(total.unsqueeze(2) + self.change + here.unsqueeze(1), dim=1)
            total = torch.where(inside, paths, total)
            highest, places = (best.unsqueeze(2) + self.change).max(dim=1)
            best = torch.where(inside, highest + here, best)
            back.append(places)
        ends = mask.long().sum(1) - 1
        found: List[List[int]] = []
        for i in range(n):
            label = int(best[i].argmax())
            path = [label]
            for k in range(int(ends[i]) - 1, -1, -1):
                label = int(back[k][i][label])
                path.append(label)
            path.reverse()
            found.append(path)
        return total.logsumexp(1), found


def nucleus(scores: Tensor, most: int, mass: float) -> Tensor:
    """What is left of a distribution: so many labels at most, and so much of it."""
    highest, _ = torch.topk(scores, min(most, scores.size(-1)))
    scores = scores.masked_fill(scores < highest[:, [-1]], -float("inf"))
    chances, order = F.softmax(scores, -1).sort(dim=-1, descending=True)
    cut = chances.cumsum(-1) - chances > mass
    chances = torch.where(cut, torch.zeros_like(chances), chances)
    chances = chances / chances.sum(-1, keepdim=True)
    return torch.zeros_like(scores).scatter(-1, order, chances)


CASES = {
    "stepwise decoder": (StepwiseDecoder, lambda: (torch.randn(2, 3, 4),)),
    "transducer": (Transducer, lambda: (torch.randn(4, 6),)),
    "prefix beams": (lambda: prefix_beams, lambda: (torch.randn(4, 5).log_softmax(-1), 3)),
    "lattice": (Lattice, lambda: (torch.randn(2, 4, 3), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool())),
    "nucleus": (lambda: nucleus, lambda: (torch.randn(2, 6), 4, 0.8)),
}  # fmt: skip
