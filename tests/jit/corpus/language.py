"""Modules that lean on the language: classes with operators, properties, unions, interfaces,
shared modules, complex numbers, changes in place, constants, futures."""

# ruff: noqa: UP007 (old ways of writing are meant)

from typing import Any, Final, Union

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class Dual:
    """A value and its derivative, carried through operators."""

    def __init__(self, value: Tensor, slope: Tensor):
        self.value = value
        self.slope = slope

    def __add__(self, other: "Dual") -> "Dual":
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: "Dual") -> "Dual":
        slope = self.value * other.slope + self.slope * other.value
        return Dual(self.value * other.value, slope)

    def sin(self) -> "Dual":
        return Dual(self.value.sin(), self.slope * self.value.cos())


def derivative(x: Tensor) -> tuple[Tensor, Tensor]:
    a = Dual(x, torch.ones_like(x))
    y = a * a + (a * a.sin())
    return y.value, y.slope


class TiedModel(nn.Module):
    """Input and output share a weight, and one block runs several times."""

    depth: Final[int]

    def __init__(self, depth: int = 3):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.block = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.Tanh())
        self.again = self.block
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.embed.weight
        self.depth = depth

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for _ in range(self.depth):
            x = x + self.block(x)
        return self.out(self.again(x))


@torch.jit.interface
class Activation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Scaled(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x) * self.scale


class Chooser(nn.Module):
    """Modules behind an interface, picked by a number that comes with the input."""

    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([Scaled(0.5), Scaled(2.0), Scaled(-1.0)])

    def forward(self, x: Tensor, picks: list[int]) -> Tensor:
        for pick in picks:
            step: Activation = self.steps[pick]
            x = x + step.forward(x)
        return x


def total_of(value: Union[int, float, Tensor, list[int]]) -> Tensor:
    if isinstance(value, Tensor):
        return value.sum()
    elif isinstance(value, int):
        return torch.tensor(float(value))
    elif isinstance(value, float):
        return torch.tensor(value)
    return torch.tensor(value).sum().float()


def totals(x: Tensor, n: int) -> Tensor:
    return total_of(x) + total_of(n) * total_of(0.5) - total_of([n, 2 * n])


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def lists(x: Tensor, names: list[str]) -> list[bool]:
    return [is_list(x), is_list(names), is_list(1)]


def describe(value: Any) -> str:
    if isinstance(value, int):
        return "a number"
    if isinstance(value, str):
        return "the text '" + value + "'"
    if isinstance(value, Tensor):
        return "a tensor of {} dimensions".format(value.dim())  # noqa: UP032
    return "something"


def descriptions(x: Tensor, names: list[str]) -> list[str]:
    found = [describe(name) for name in names]
    found.append(describe(x))
    found.append(describe(3))
    return found


class Spectral(nn.Module):
    """Complex weights over pairs of real channels."""

    def __init__(self):
        super().__init__()
        self.real, self.imag = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        z = torch.view_as_complex(x)
        y = z * torch.complex(self.real, self.imag)
        turned = y * torch.polar(torch.ones(3), torch.arange(3) * 0.5)
        return torch.view_as_real(turned + y.conj()) + y.abs().unsqueeze(-1)


class Life(nn.Module):
    """A grid changed in place by slices and masks."""

    def forward(self, grid: Tensor, steps: int) -> tuple[Tensor, list[int]]:
        alive: list[int] = []
        h, w = grid.size(0), grid.size(1)
        for _ in range(steps):
            wide = torch.zeros(h + 2, w + 2, dtype=grid.dtype)
            wide[1:-1, 1:-1] = grid
            count = torch.zeros_like(grid)
            for i in range(3):
                for j in range(3):
                    if i == 1 and j == 1:
                        continue
                    count += wide[i : i + h, j : j + w]
            grid = torch.where(grid > 0, (count == 2) | (count == 3), count == 3).to(grid.dtype)
            alive.append(int(grid.sum()))
            if len(alive) > 1 and alive[-1] == alive[-2]:
                break
        return grid, alive


class Ensemble(nn.Module):
    """Members run as futures, each on its part. (On one tensor, the order in which its gradients
    are added would be that of the threads.)"""

    def __init__(self, members: int = 3):
        super().__init__()
        self.members = nn.ModuleList([nn.Linear(3, 2) for _ in range(members)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        futures: list[torch.jit.Future[Tensor]] = []
        parts = x.chunk(len(self.members))
        for index, member in enumerate(self.members):
            futures.append(torch.jit.fork(member, parts[index]))
        results = torch.stack([torch.jit.wait(each) for each in futures])
        return results.mean(0), results.var(0)


class Checked(nn.Module):
    """Arguments are looked at first; names and defaults of all kinds."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.linear = nn.Linear(size, size)

    @property
    def doubled(self) -> int:
        return self.size * 2

    def check(self, x: Tensor, name: str = "x") -> None:
        if x.dim() != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got {x.dim()}")
        assert x.size(-1) == self.size, f"{name}: wrong size"

    def forward(self, x: Tensor, y: Tensor, scale: float = 0.5) -> tuple[Tensor, str]:
        self.check(x)
        self.check(y, name="y")
        out = torch.cat([self.linear(x), y], dim=-1)
        note = "{}:{}".format(self.doubled, list(out.shape))  # noqa: UP032
        return F.normalize(out, dim=-1) * scale, note


class Meter(nn.Module):
    """Attributes of all kinds change from call to call."""

    history: list[float]
    best: dict[str, float]

    def __init__(self):
        super().__init__()
        self.history = []
        self.best = {}
        self.last = (0, "")
        self.linear = nn.Linear(2, 1)

    def forward(self, x: Tensor, name: str) -> tuple[Tensor, dict[str, float], list[float]]:
        y = self.linear(x).square().mean()
        value = float(y.detach())
        self.history.append(value)
        if name not in self.best or value < self.best[name]:
            self.best[name] = value
        calls, _ = self.last
        self.last = (calls + 1, name)
        self.best["calls"] = float(self.last[0])
        return y, self.best, self.history


CASES = {
    "dual numbers": (lambda: derivative, lambda: (torch.randn(4),)),
    "tied weights": (TiedModel, lambda: (torch.tensor([[1, 6, 2]]),)),
    "interface": (Chooser, lambda: (torch.randn(3), [0, 2, 1])),
    "union": (lambda: totals, lambda: (torch.randn(3), 4)),
    "any": (lambda: descriptions, lambda: (torch.randn(3, 1), ["a", "b"])),
    "any, list": (lambda: lists, lambda: (torch.randn(3), ["a", "b"])),
    "spectral": (Spectral, lambda: (torch.randn(2, 3, 2),)),
    "life": (Life, lambda: ((torch.rand(6, 6) > 0.5).float(), 5)),
    "ensemble": (Ensemble, lambda: (torch.randn(6, 3),)),
    "checked": (lambda: Checked(3), lambda: (torch.randn(2, 3), torch.randn(2, 3))),
    "meter": (Meter, lambda: (torch.randn(3, 2), "loss")),
}  # fmt: skip
