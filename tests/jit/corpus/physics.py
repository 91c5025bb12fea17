"""Gradients within programs, flows, solvers, mixtures, optimisers written in the language."""

# ruff: noqa: UP045, UP006, UP035 (old ways of writing are meant)

import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class Basis(nn.Module):
    """Distances as a row of bumps that end smoothly at the largest."""

    def __init__(self, count: int, limit: float = 4.0):
        super().__init__()
        self.limit = limit
        self.register_buffer("centres", torch.linspace(0.1, 1.0, count))
        self.register_buffer("widths", torch.full((count,), (2 / count) ** -2))

    def forward(self, distance: Tensor) -> Tensor:
        fade = 0.5 * (torch.cos(distance * math.pi / self.limit) + 1.0)
        fade = fade * (distance < self.limit).to(distance.dtype)
        bumps = torch.exp(-self.widths * (torch.exp(-distance.unsqueeze(-1)) - self.centres) ** 2)
        return fade.unsqueeze(-1) * bumps


class Interaction(nn.Module):
    """Messages along the edges, weighed by their lengths."""

    def __init__(self, width: int, basis: int):
        super().__init__()
        self.weigh = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, width))
        self.mix = nn.Linear(width, width)

    def forward(self, x: Tensor, edges: Tensor, lengths: Tensor) -> Tensor:
        messages = self.mix(x).index_select(0, edges[1]) * self.weigh(lengths)
        return torch.zeros_like(x).index_add(0, edges[0], messages)


class ForceField(nn.Module):
    """The energy of each molecule, and the forces: its derivative, of which there are more."""

    def __init__(self, forces: bool):
        super().__init__()
        self.forces = forces
        self.shift: Optional[Tensor] = None
        self.kinds = nn.Embedding(9, 5)
        self.basis = Basis(4)
        self.blocks = nn.ModuleList([Interaction(5, 4) for _ in range(2)])
        self.head = nn.Linear(5, 1)

    def forward(
        self, places: Tensor, kinds: Tensor, edges: Tensor, molecule: Optional[Tensor] = None
    ) -> Tuple[Tensor, Optional[Tensor]]:
        forces = self.forces and torch.is_grad_enabled()
        if forces:
            places = places.detach().requires_grad_(True)
        molecule = torch.zeros_like(kinds) if molecule is None else molecule
        along = places[edges[0]] - places[edges[1]]
        lengths = self.basis(torch.norm(along, dim=-1))
        x = self.kinds(kinds)
        for block in self.blocks:
            x = x + block(x, edges, lengths)
        each = self.head(x)
        count = int(molecule.max().item()) + 1
        energy = torch.zeros(count, 1, dtype=each.dtype)
        energy = energy.scatter_add(0, molecule.unsqueeze(-1).expand_as(each), each)
        if self.shift is not None:
            energy = energy + self.shift
        if not forces:
            return energy, None
        ones: List[Optional[Tensor]] = [torch.ones_like(energy)]
        slope = torch.autograd.grad([energy], [places], grad_outputs=ones, create_graph=True)[0]
        if slope is None:
            raise RuntimeError("the energy does not depend on the places")
        return energy, -slope


def spline(
    x: Tensor, widths: Tensor, heights: Tensor, slopes: Tensor, bound: float = 1.5
) -> Tuple[Tensor, Tensor]:
    """A monotonous map of quotients of polynomials within the bounds, and its logarithmic slope."""
    inside = (x >= -bound) & (x <= bound)
    y = torch.zeros_like(x)
    change = torch.zeros_like(x)
    y[~inside] = x[~inside]
    if not torch.any(inside):
        return y, change
    slopes = F.pad(slopes, pad=(1, 1))
    slopes[..., 0] = 0.54
    slopes[..., -1] = 0.54
    xs, d = x[inside], F.softplus(slopes[inside, :]) + 1e-3
    bins = widths.shape[-1]
    edges: List[Tensor] = []
    for part in (widths, heights):
        share = 1e-3 + (1 - 1e-3 * bins) * F.softmax(part[inside, :], dim=-1)
        edge = F.pad(torch.cumsum(share, dim=-1), pad=(1, 0), mode="constant", value=0.0)
        edge = 2 * bound * edge - bound
        edge[..., 0] = -bound
        edge[..., -1] = bound
        edges.append(edge)
    left, low = edges
    w = left[..., 1:] - left[..., :-1]
    h = low[..., 1:] - low[..., :-1]
    at = torch.clamp(torch.sum(xs[..., None] >= left, dim=-1) - 1, 0, bins - 1)[..., None]
    width, height = w.gather(-1, at)[..., 0], h.gather(-1, at)[..., 0]
    mean = height / width
    first, second = d.gather(-1, at)[..., 0], d[..., 1:].gather(-1, at)[..., 0]
    t = (xs - left.gather(-1, at)[..., 0]) / width
    both = t * (1 - t)
    below = mean + (first + second - 2 * mean) * both
    y[inside] = low.gather(-1, at)[..., 0] + height * (mean * t.pow(2) + first * both) / below
    steep = mean.pow(2) * (second * t.pow(2) + 2 * mean * both + first * (1 - t).pow(2))
    change[inside] = torch.log(steep) - 2 * torch.log(below)
    return y, change


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Parameter(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
        self.asked = 0

    def forward(self, t: float, y: Tensor) -> Tensor:
        self.asked += 1
        return self.turn @ y + math.sin(t)


class Solver(nn.Module):
    """Runge and Kutta's steps, halved where they are too coarse."""

    def __init__(self):
        super().__init__()
        self.field = Field()

    def step(self, t: float, by: float, y: Tensor) -> Tuple[Tensor, Tensor]:
        a = self.field(t, y)
        b = self.field(t + by / 2, y + by / 2 * a)
        c = self.field(t + by / 2, y + by / 2 * b)
        d = self.field(t + by, y + by * c)
        return y + by / 6 * (a + 2 * b + 2 * c + d), (d - a).abs().max()

    def forward(self, y: Tensor, most: int) -> Tuple[List[float], Tensor, int]:
        self.field.asked = 0
        t, by = 0.0, 0.5
        path: List[Tuple[float, Tensor]] = []
        while t < 1.0 and len(path) < most:
            found, error = self.step(t, by, y)
            if bool(error > 0.4) and by > 0.1:
                by *= 0.5
                continue
            t += by
            y = found
            path.append((t, y))
        return [at for at, _ in path], y, self.field.asked


class Mixture(NamedTuple):
    weights: Tensor
    means: Tensor
    widths: Tensor


class MixtureDensity(nn.Module):
    """A distribution of several bells for each row, and how likely the truth is under it."""

    def __init__(self, count: int):
        super().__init__()
        names = ["weights", "means", "widths"]
        self.heads = nn.ModuleDict({name: nn.Linear(2, count) for name in names})

    def mixture(self, x: Tensor) -> Mixture:
        made: Dict[str, Tensor] = {}
        for name, head in self.heads.items():
            made[name] = head(x)
        widths = F.softplus(made["widths"]) + 1e-4
        return Mixture(made["weights"].log_softmax(-1), made["means"], widths)

    def forward(self, x: Tensor, truth: Tensor) -> Tuple[Tensor, Tensor]:
        m = self.mixture(x)
        off = (truth - m.means) / m.widths
        each = -0.5 * off * off - m.widths.log() - 0.5 * math.log(2 * math.pi)
        loss = -torch.logsumexp(m.weights + each, dim=-1).mean()
        best = m.weights.argmax(dim=1, keepdim=True)
        return loss, m.means.gather(1, best)


class Normed(nn.Module):
    """A layer whose weight is a direction and a length; each is asked for several times."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.length = nn.Parameter(torch.ones(outputs, 1))
        self.along = nn.Parameter(torch.randn(outputs, inputs))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.length * self.along / (self.along.norm(2, dim=1, keepdim=True) + 1e-8)
        return F.linear(x, weight) + 0.1 * self.along.sum() + self.length.mean()


class Momentum:
    """An optimiser with two moments."""

    def __init__(self, count: int, rate: float, decay: Tuple[float, float] = (0.9, 0.99)):
        self.rate = rate
        self.decay = decay
        self.steps = 0
        self.first = [torch.zeros(()) for _ in range(count)]
        self.second = [torch.zeros(()) for _ in range(count)]

    def update(self, values: List[Tensor], slopes: List[Tensor]) -> List[Tensor]:
        self.steps += 1
        one, two = self.decay
        new: List[Tensor] = []
        for i, (value, slope) in enumerate(zip(values, slopes)):
            self.first[i] = one * self.first[i] + (1 - one) * slope
            self.second[i] = two * self.second[i] + (1 - two) * slope**2
            m = self.first[i] / (1 - one**self.steps)
            v = self.second[i] / (1 - two**self.steps)
            new.append(value - self.rate * m / (v.sqrt() + 1e-8))
        return new


class Unrolled(nn.Module):
    """Some steps of an inner optimisation, through which gradients go."""

    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.randn(2))

    def forward(self, x: Tensor, y: Tensor, steps: int) -> Tensor:
        values = [self.start, torch.ones(()).requires_grad_()]
        inner = Momentum(len(values), rate=0.1)
        for _ in range(steps if torch.is_grad_enabled() else 0):
            loss = ((x @ values[0] + values[1] - y) ** 2).mean()
            found = torch.autograd.grad([loss], values, create_graph=True)
            slopes: List[Tensor] = []
            for slope in found:
                assert slope is not None
                slopes.append(slope)
            values = inner.update(values, slopes)
        return ((x @ values[0] + values[1] - y) ** 2).mean()


ATOMS = (torch.tensor([1, 8, 1, 6]), torch.tensor([[0, 0, 1, 2, 1, 3], [1, 2, 0, 0, 3, 1]]))
CASES = {
    "force field": (lambda: ForceField(True), lambda: (torch.randn(4, 3), *ATOMS)),
    "energy of two": (lambda: ForceField(False), lambda: (torch.randn(4, 3), *ATOMS, torch.tensor([0, 0, 1, 1]))),
    "spline": (lambda: spline, lambda: (torch.linspace(-2, 2, 7), torch.randn(7, 4), torch.randn(7, 4), torch.randn(7, 3))),
    "solver": (Solver, lambda: (torch.tensor([1.0, 0.0]), 9)),
    "mixture density": (lambda: MixtureDensity(3), lambda: (torch.randn(3, 2), torch.randn(3, 1))),
    "normed": (lambda: nn.Sequential(Normed(3, 4), nn.ELU(), Normed(4, 2)), lambda: (torch.randn(2, 3),)),
    "unrolled": (Unrolled, lambda: (torch.randn(4, 2), torch.randn(4), 2)),
}  # fmt: skip
