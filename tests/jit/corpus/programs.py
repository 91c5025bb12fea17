"""Programs around the layers: text, lists, dicts, tuples, enums, classes, early returns."""

# ruff: noqa: UP032, UP045, RUF007, C416 (old ways of writing are meant)

import enum
from typing import NamedTuple, Optional

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class Tokenizer(nn.Module):
    """Words to numbers, as long a match as the vocabulary has, and their mean."""

    def __init__(self, words: list[str]):
        super().__init__()
        self.vocabulary = {word: i + 2 for i, word in enumerate(words)}
        self.embed = nn.Embedding(20, 3)

    def pieces(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word):
            end = len(word)
            while end > start and word[start:end] not in self.vocabulary:
                end -= 1
            if end == start:
                return [1]
            found.append(self.vocabulary[word[start:end]])
            start = end
        return found

    def forward(self, text: str) -> tuple[Tensor, list[int]]:
        tokens: list[int] = []
        for word in text.lower().strip().split():
            tokens.extend(self.pieces(word))
        if len(tokens) == 0:
            return torch.zeros(3), tokens
        return self.embed(torch.tensor(tokens)).mean(0), tokens


def parse_options(lines: list[str]) -> dict[str, dict[str, str]]:
    """Sections of name = value lines; # starts a comment."""
    sections: dict[str, dict[str, str]] = {}
    current = "main"
    for number, line in enumerate(lines):
        line = line.split("#")[0].strip()
        if line == "":
            continue
        if line.startswith("[") and line.endswith("]"):
            current = line[1:-1]
            continue
        parts = line.split("=")
        if len(parts) != 2:
            raise ValueError("line {}: expected name = value, got {}".format(number, line))
        if current not in sections:
            sections[current] = {}
        sections[current][parts[0].strip()] = parts[1].strip()
    return sections


class Pooling(enum.Enum):
    MEAN = "mean"
    MAX = "max"
    LAST = "last"


class Pool(nn.Module):
    def __init__(self, kind: Pooling):
        super().__init__()
        self.kind = kind
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Tensor, dim: int = 0) -> tuple[Tensor, str]:
        x = self.linear(x)
        if self.kind == Pooling.MEAN:
            return x.mean(dim), self.kind.value
        elif self.kind == Pooling.MAX:
            return x.amax(dim), self.kind.value
        return x.select(dim, -1), self.kind.name


class State(NamedTuple):
    position: Tensor
    velocity: Tensor
    step: int


class Swarm(nn.Module):
    """A NamedTuple that goes round a loop."""

    def __init__(self):
        super().__init__()
        self.force = nn.Linear(2, 2)

    def move(self, state: State, dt: float) -> State:
        velocity = state.velocity + dt * torch.tanh(self.force(state.position))
        return State(state.position + dt * velocity, velocity, state.step + 1)

    def forward(self, position: Tensor, steps: int, limit: float = 3.0) -> State:
        state = State(position, torch.zeros_like(position), 0)
        for _ in range(steps):
            state = self.move(state, dt=0.25)
            if bool((state.position.abs() > limit).any()):
                return state
        return state


@torch.jit.script
class Statistics:
    """Mean and variance of the values so far."""

    def __init__(self, decay: Optional[float]):
        self.decay = decay
        self.count = 0
        self.mean = torch.zeros(1)
        self.spread = torch.zeros(1)

    def update(self, value: Tensor) -> None:
        self.count += 1
        decay = self.decay
        rate = 1.0 / self.count if decay is None else 1.0 - decay
        change = value - self.mean
        self.mean = self.mean + rate * change
        self.spread = (1.0 - rate) * (self.spread + rate * change * change)


def summarize(values: Tensor, decay: Optional[float] = None) -> dict[str, Tensor]:
    statistics = Statistics(decay)
    for value in values:
        statistics.update(value)
    return {"mean": statistics.mean, "variance": statistics.spread}


class Version:
    """Compared part by part; the class is named in its own methods."""

    def __init__(self, text: str):
        self.parts = [int(part) for part in text.split(".")]

    def __lt__(self, other: "Version") -> bool:
        for a, b in zip(self.parts, other.parts):
            if a != b:
                return a < b
        return len(self.parts) < len(other.parts)

    def bumped(self) -> "Version":
        return Version(
            ".".join([str(part) for part in self.parts[:-1]] + [str(self.parts[-1] + 1)])
        )


def newest(texts: list[str]) -> tuple[str, list[int]]:
    best, best_text = Version("0"), "none"
    for text in texts:
        version = Version(text)
        if best < version:
            best, best_text = version, text
    return best_text, best.bumped().parts


def first_match(x: Tensor, limits: list[float], default: Optional[Tensor] = None) -> Tensor:
    """The first row above one of the limits; early returns of all kinds."""
    if x.numel() == 0:
        return x
    for limit in limits:
        for row in range(x.size(0)):
            if bool(x[row].sum() > limit):
                if limit < 0:
                    continue
                return x[row] * limit
    if default is not None:
        return default
    return torch.zeros_like(x[0])


class Router(nn.Module):
    """Modules by name; the list of names comes with the input."""

    def __init__(self):
        super().__init__()
        self.tasks = nn.ModuleDict(
            {"size": nn.Linear(3, 1), "kind": nn.Linear(3, 4), "way": nn.Identity()}
        )

    def forward(self, x: Tensor, wanted: list[str]) -> dict[str, Tensor]:
        out: dict[str, Tensor] = {}
        for name, task in self.tasks.items():
            if name in wanted:
                out[name] = task(x)
        for name in wanted:
            if name not in out:
                out[name] = x.sum().unsqueeze(0)
        return out


def calculate(program: str, x: Tensor) -> tuple[Tensor, int]:
    """A stack machine for postfix text; the numbers are scalars."""
    stack: list[Tensor] = []
    deepest = 0
    for word in program.split(" "):
        if word == "x":
            stack.append(x)
        elif word in ["+", "*", "-"]:
            right, left = stack.pop(), stack.pop()
            if word == "+":
                stack.append(left + right)
            elif word == "*":
                stack.append(left * right)
            else:
                stack.append(left - right)
        elif word == "dup":
            stack.append(stack[-1])
        else:
            stack.append(torch.full_like(x, float(word)))
        deepest = max(deepest, len(stack))
    assert len(stack) == 1, "one value must stay"
    return stack[0], deepest


class Viterbi(nn.Module):
    """The best path through a chain, and the loss of a given path."""

    def __init__(self, tags: int = 3):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def normalizer(self, scores: Tensor) -> Tensor:
        total = scores[0]
        for t in range(1, scores.size(0)):
            total = torch.logsumexp(total.unsqueeze(1) + self.transitions, 0) + scores[t]
        return total.logsumexp(0)

    def decode(self, scores: Tensor) -> list[int]:
        back: list[Tensor] = []
        best = scores[0]
        for t in range(1, scores.size(0)):
            best, came = (best.unsqueeze(1) + self.transitions).max(0)
            best = best + scores[t]
            back.append(came)
        path = [int(best.argmax())]
        for came in back[::-1]:
            path.append(int(came[path[-1]]))
        path.reverse()
        return path

    def forward(self, scores: Tensor, tags: list[int]) -> tuple[Tensor, list[int]]:
        score = scores[0, tags[0]]
        for t, (a, b) in enumerate(zip(tags[:-1], tags[1:])):
            score = score + self.transitions[a, b] + scores[t + 1, b]
        return self.normalizer(scores) - score, self.decode(scores)


class Kalman(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = nn.Parameter(torch.tensor([0.1, 0.2]))
        self.register_buffer("move", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))

    def forward(self, seen: list[Optional[float]]) -> tuple[Tensor, Tensor]:
        state, spread = torch.zeros(2), torch.eye(2)
        process = torch.diag(self.noise)
        for value in seen:
            state = torch.mv(self.move, state)
            spread = self.move @ spread @ self.move.t() + process
            if value is None:
                continue
            gain = spread[:, 0] / (spread[0, 0] + 0.5)
            state = state + gain * (value - state[0])
            spread = spread - torch.outer(gain, spread[0])
        return state, spread


class Quantizer(nn.Module):
    """Nearest entries of a code book, straight-through gradients, moving counts in a buffer."""

    counts: Tensor

    def __init__(self, entries: int = 4, size: int = 3):
        super().__init__()
        self.book = nn.Parameter(torch.randn(entries, size))
        self.register_buffer("counts", torch.ones(entries))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        distance = x.pow(2).sum(1, keepdim=True) - 2 * x @ self.book.t() + self.book.pow(2).sum(1)
        codes = distance.argmin(1)
        if self.training:
            with torch.no_grad():
                hits = F.one_hot(codes, self.book.size(0)).to(x.dtype).sum(0)
                self.counts.mul_(0.9).add_(hits, alpha=0.1)
        picked = self.book[codes]
        loss = F.mse_loss(picked, x.detach()) + 0.25 * F.mse_loss(picked.detach(), x)
        return x + (picked - x).detach(), loss, codes


def pack(rows: list[Tensor], fill: float = 0.0) -> tuple[Tensor, list[int], Tensor]:
    """Rows of different lengths, longest first, in one tensor with a mask."""
    lengths = [row.size(0) for row in rows]
    order = torch.tensor(lengths).argsort(descending=True)
    longest = max(lengths)
    out = torch.full((len(rows), longest), fill)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    for place, index in enumerate(order):
        row = rows[int(index)]
        out[place, : row.size(0)] = row
        mask[place, : row.size(0)] = True
    return out, sorted(lengths, reverse=True), mask


def edit_distance(a: str, b: str) -> int:
    row = [j for j in range(len(b) + 1)]
    for i in range(1, len(a) + 1):
        previous, row[0] = row[0], i
        for j in range(1, len(b) + 1):
            change = previous + (0 if a[i - 1] == b[j - 1] else 1)
            previous = row[j]
            row[j] = min(change, min(row[j], row[j - 1]) + 1)
    return row[-1]


class Recommender(nn.Module):
    """Features of mixed kinds: numbers, names, lists, some of them missing."""

    def __init__(self, cities: list[str]):
        super().__init__()
        self.cities = cities
        self.city = nn.Embedding(len(cities) + 1, 2)
        self.items = nn.Embedding(6, 2)
        self.head = nn.Linear(5, 1)

    def forward(
        self, numbers: dict[str, float], names: dict[str, str], items: Optional[list[int]] = None
    ) -> Tensor:
        city = len(self.cities)
        name = names.get("city")
        if name is not None:
            for index, known in enumerate(self.cities):
                if known == name:
                    city = index
                    break
        liked = torch.zeros(2)
        if items is not None and len(items) > 0:
            liked = self.items(torch.tensor(items)).sum(0) / len(items)
        age = numbers["age"] / 100 if "age" in numbers else 0.5
        features = torch.cat([self.city(torch.tensor(city)), liked, torch.tensor([age])])
        return torch.sigmoid(self.head(features))


OPTIONS = ["rate = 0.1", "# nothing", "[model]", "size = 4 # small", "name=net"]
CASES = {
    "tokenizer": (lambda: Tokenizer(["un", "seen", "see", "s", "the"]), lambda: (" The unseen SEEs what",)),
    "parse options": (lambda: parse_options, lambda: (OPTIONS,)),
    "pool by enum, mean": (lambda: Pool(Pooling.MEAN), lambda: (torch.randn(4, 3),)),
    "pool by enum, last": (lambda: Pool(Pooling.LAST), lambda: (torch.randn(4, 3), 0)),
    "named tuple loop": (Swarm, lambda: (torch.randn(3, 2), 6)),
    "statistics class": (lambda: summarize, lambda: (torch.randn(6),)),
    "statistics class, decay": (lambda: summarize, lambda: (torch.randn(6), 0.9)),
    "version class": (lambda: newest, lambda: (["1.9", "1.10.2", "1.10", "1.2.9"],)),
    "first match": (lambda: first_match, lambda: (torch.randn(4, 3), [-1.0, 2.0, 0.5, 0.1])),
    "first match, default": (lambda: first_match, lambda: (torch.randn(4, 3), [99.0], torch.randn(3))),
    "router": (Router, lambda: (torch.randn(2, 3), ["kind", "way", "other"])),
    "stack machine": (lambda: calculate, lambda: ("x dup * 3 x * - 0.5 +", torch.randn(3))),
    "viterbi": (Viterbi, lambda: (torch.randn(5, 3), [0, 2, 1, 1, 0])),
    "kalman": (Kalman, lambda: ([0.5, None, 1.5, 2.25],)),
    "quantizer": (Quantizer, lambda: (torch.randn(6, 3),)),
    "pack": (lambda: pack, lambda: ([torch.randn(2), torch.randn(4), torch.randn(1)], -1.0)),
    "edit distance": (lambda: edit_distance, lambda: ("recognise", "beach nice")),
    "recommender": (lambda: Recommender(["rome", "oslo"]), lambda: ({"age": 33.0}, {"city": "oslo"}, [1, 4])),
    "recommender, parts missing": (lambda: Recommender(["rome", "oslo"]), lambda: ({"x": 1.0}, {"job": "none"})),
}  # fmt: skip
