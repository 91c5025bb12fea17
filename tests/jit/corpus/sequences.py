"""Recurrent networks: cells in loops, decoders, beams."""

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class Tagger(nn.Module):
    """Words to tags, with a bidirectional LSTM."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4, padding_idx=0)
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(6, 5)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        mask = tokens != 0
        hidden, _ = self.lstm(self.embed(tokens))
        scores = F.log_softmax(self.out(hidden), dim=-1)
        return scores, scores.argmax(-1).masked_fill(~mask, -1)


class CellStack(nn.Module):
    """LSTM cells written out, time step by time step."""

    def __init__(self, size: int = 4, depth: int = 2):
        super().__init__()
        self.gates = nn.ModuleList([nn.Linear(2 * size, 4 * size) for _ in range(depth)])
        self.size = size

    def forward(
        self, x: Tensor, state: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        if state is None:
            zero = torch.zeros(x.size(1), self.size)
            state = [(zero, zero) for _ in range(len(self.gates))]
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            inputs = x[t]
            for index, linear in enumerate(self.gates):
                h, c = state[index]
                i, f, g, o = linear(torch.cat([inputs, h], 1)).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                state[index] = (h, c)
                inputs = h
            outputs.append(inputs)
        return torch.stack(outputs), state


class LengthGru(nn.Module):
    """A GRU that stops each sequence of the batch at its own length."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor, lengths: list[int]) -> Tensor:
        finals: list[Tensor] = []
        for row, length in enumerate(lengths):
            h = torch.zeros(1, 4)
            step = 0
            while True:
                if step >= length or step >= x.size(1):
                    break
                h = self.cell(x[row, step].unsqueeze(0), h)
                step += 1
            finals.append(h)
        return torch.cat(finals, dim=0)


class Attention(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, query: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        energy = self.score(torch.tanh(self.query(query).unsqueeze(1) + self.key(memory)))
        weights = torch.softmax(energy.squeeze(-1), dim=-1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


class Translator(nn.Module):
    """Encoder, attention and a greedy decoder that stops at the end mark."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.encoder = nn.GRU(4, 4, batch_first=True)
        self.attention = Attention(4)
        self.cell = nn.GRUCell(8, 4)
        self.out = nn.Linear(4, 8)
        self.end: int = 1

    def forward(self, source: Tensor, most: int) -> tuple[list[int], Tensor]:
        memory, last = self.encoder(self.embed(source))
        h = last[0]
        token = torch.zeros(source.size(0), dtype=torch.int64)
        words: list[int] = []
        total = torch.zeros(1)
        for _ in range(most):
            context, _ = self.attention(h, memory)
            h = self.cell(torch.cat([self.embed(token), context], -1), h)
            scores = torch.log_softmax(self.out(h), -1)
            best, token = scores.max(-1)
            total = total + best.sum()
            word = int(token[0].item())
            if word == self.end:
                break
            words.append(word)
        return words, total


class BeamSearch(nn.Module):
    """Beams as lists of (score, tokens)."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(5, 5))

    def forward(self, start: int, steps: int, width: int) -> list[tuple[float, list[int]]]:
        scores = torch.log_softmax(self.table, -1)
        beams = [(0.0, [start])]
        for _ in range(steps):
            grown: list[tuple[float, list[int]]] = []
            for score, tokens in beams:
                values, indices = scores[tokens[-1]].topk(width)
                for k in range(width):
                    grown.append((score + float(values[k]), tokens + [int(indices[k])]))
            best: list[tuple[float, list[int]]] = []
            while len(best) < width and len(grown) > 0:
                top = 0
                for i in range(1, len(grown)):
                    if grown[i][0] > grown[top][0]:
                        top = i
                best.append(grown.pop(top))
            beams = best
        return beams


def ctc_collapse(scores: Tensor, letters: str) -> list[str]:
    """The text of each row of frames: repeats joined, blanks (0) left out."""
    texts: list[str] = []
    for row in scores.argmax(-1):
        text, previous = "", 0
        for frame in row:
            symbol = int(frame)
            if symbol != previous and symbol != 0:
                text += letters[symbol - 1]
            previous = symbol
        texts.append(text)
    return texts


class Highway(nn.Module):
    def __init__(self, size: int = 4, depth: int = 3):
        super().__init__()
        self.transforms = nn.ModuleList([nn.Linear(size, size) for _ in range(depth)])
        self.gates = nn.ModuleList([nn.Linear(size, size) for _ in range(depth)])

    def forward(self, x: Tensor) -> Tensor:
        for transform, gate in zip(self.transforms, self.gates):
            g = torch.sigmoid(gate(x))
            x = g * F.relu(transform(x)) + (1 - g) * x
        return x


class SimpleRecurrentUnit(nn.Module):
    """Gates of all steps at once, then a cheap loop over time in both directions."""

    def __init__(self, size: int = 4):
        super().__init__()
        self.weight = nn.Linear(size, 3 * size)
        self.size = size

    def scan(self, x: Tensor, reverse: bool) -> Tensor:
        candidate, forget, out = self.weight(x).split(self.size, dim=-1)
        forget, out = forget.sigmoid(), out.sigmoid()
        c = torch.zeros_like(x[0])
        steps: list[Tensor] = []
        for step in range(x.size(0)):
            t = x.size(0) - 1 - step if reverse else step
            c = forget[t] * c + (1.0 - forget[t]) * candidate[t]
            steps.append(out[t] * torch.tanh(c) + (1.0 - out[t]) * x[t])
        if reverse:
            steps.reverse()
        return torch.stack(steps)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.scan(x, False), self.scan(x, True)], -1)


CASES = {
    "tagger": (Tagger, lambda: (torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]]),)),
    "lstm cell stack": (CellStack, lambda: (torch.randn(3, 2, 4),)),
    "lstm cell stack with state": (CellStack, lambda: (torch.randn(3, 2, 4), [(torch.randn(2, 4), torch.randn(2, 4)) for _ in range(2)])),
    "gru by lengths": (LengthGru, lambda: (torch.randn(3, 4, 3), [4, 1, 9])),
    "translator": (Translator, lambda: (torch.tensor([[3, 4, 5]]), 6)),
    "beam search": (BeamSearch, lambda: (0, 3, 2)),
    "ctc collapse": (lambda: ctc_collapse, lambda: (torch.randn(3, 9, 4), "abc")),
    "highway": (Highway, lambda: (torch.randn(3, 4),)),
    "simple recurrent unit": (SimpleRecurrentUnit, lambda: (torch.randn(4, 2, 4),)),
}  # fmt: skip
