"""Statements and expressions."""

from typing import Any

import torch
from tests.jit.archives import X, case, image
from tests.jit.archives.objects import Squares
from torch import Tensor, nn

# Control flow -----------------------------------------------------------------------------------


@case("break, continue, early return", [X, 9], [X, 2], [X * 0, 3])
class Exits(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        out = x
        for i in range(n):
            if i == 3:
                continue
            for j in range(i):
                if j > 2:
                    break
                out = out + j
            if i > 6:
                break
            out = out * 2 + i
        while bool(out.sum() > 100):
            out = out / 2
            if bool(out.max() < 1):
                return out
        if n > 4:
            return out + 1
        return -out


@case("fork and wait", [X], [X + 1])
class Forks(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def other(self, x: Tensor, scale: float) -> tuple[Tensor, int]:
        return self.inner(x) * scale, 3

    def forward(self, x: Tensor) -> Tensor:
        futures: list[torch.jit.Future[Tensor]] = []
        for _ in range(3):
            futures.append(torch.jit.fork(self.inner, x))
        other = torch.jit.fork(self.other, x, 2.0)
        total = torch.zeros_like(x)
        for future in futures:
            total = total + torch.jit.wait(future)
        made, n = torch.jit.wait(other)
        return total + made * n


def scaled(x: Tensor, by: float) -> Tensor:
    return x * by


@case("fork of a function", [X])
class ForksFunction(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(scaled, x, by=3.0)
        return torch.jit.wait(future) + 1


@torch.jit.script
class Scope:
    def __init__(self, log: list[str]):
        self.log = log

    def __enter__(self):
        self.log.append("in")

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.log.append("out")


@case("with", [X.clone().requires_grad_()])
class With(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, list[str]]:
        log: list[str] = []
        with torch.no_grad():
            y = x * 2
        with Scope(log):
            z = x * 3
            with torch.no_grad():
                y = z + y
            log.append("inside")
        return y, z, log


@case("parts named for the profiler, questions of the order in memory", [X, image()])
class Profiled(nn.Module):
    def forward(self, x: Tensor, image: Tensor) -> tuple[Tensor, bool]:
        with torch.autograd.profiler.record_function("a part"):
            y = x * 2
        return y, image.is_contiguous(memory_format=torch.channels_last)


@case("operators of the newest versions of archives beside those of old ones", [X])
class Versions(nn.Module):
    """One of a version from 6 on, whose number stands in another record."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        n = torch.arange(5)
        return nn.functional.gelu(x), torch.linspace(0, 1, 5), torch.full([2], 7), n / 2


@case("pseudo-inverses, products of several matrices", [X])
class Matrices(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        square = x.mT @ x + torch.eye(x.size(1))
        inverses = [torch.linalg.pinv(x), torch.linalg.pinv(x, rtol=0.01), torch.pinverse(x, 0.01)]
        several = torch.linalg.multi_dot([x, square, x.mT])
        return inverses + [torch.linalg.pinv(square, hermitian=True), several]


@case("exceptions that are not raised", [X, 2])
class Raises(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        if n < 0:
            raise ValueError(f"n must not be negative, got {n}")
        assert x.dim() == 2, f"expected 2 dimensions, got {x.dim()}"
        if n > 100:
            raise NotImplementedError
        if n == 0:
            y = x
        elif n == 2:
            y = x + 1
        else:
            raise IndexError("no")
        return y


@case("nested module lists", [X])
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([Squares(), nn.ModuleList([Squares(), Squares()])])

    def down(self, x: Tensor, scale: float) -> Tensor:
        for module in self.inner[1]:
            x = module(x, scale)
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.inner[0](x, 0.1), 0.2) + self.down(x, 0.3)


@case("while and nested loops with many carried values", [X, 5])
class Carried(nn.Module):
    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int, Tensor | None, list[int]]:
        last: Tensor | None = None
        a, b = 0, 1
        found: list[int] = []
        while a < n and b < 100:
            a, b = a + 1, a + b
            if b % 2 == 0 and last is None:
                last = x * b
            elif last is not None:
                x = x + last.sum()
            found.append(b)
        return x, b, last, found


# Expressions ------------------------------------------------------------------------------------


@case("texts", ["Ab c", 3], ["", -1])
class Texts(nn.Module):
    def forward(self, s: str, n: int) -> tuple[list[str], dict[str, int], str, bool]:
        parts = s.split(" ") + [s.upper(), s.lower(), s.replace("b", "xy"), s.strip(), s[::-1]]
        parts.append(f"{s} has {len(s)}, n={n}")
        parts.append(f"{n} and {2.5}")
        parts.append("%s=%d" % (s, n))  # noqa: UP031
        parts.append("-".join([c + c for c in s]))
        counts = {c: s.count(c) for c in s}
        return parts, counts, s + s, s.startswith("A") and "b" in s


@case("numbers", [7, 2.5], [-7, 0.5])
class Numbers(nn.Module):
    def forward(self, n: int, y: float) -> tuple[list[int], list[float], complex, bool, str]:
        ints = [n // 2, n % 3, n << 1, n & 3, n | 8, n ^ 5, -n, abs(n), int(y), min(n, 3)]
        floats = [n / 2, y**2, y // 2, y % 0.7, float(n), max(y, 1.0), float("inf"), round(y), -y]
        return ints, floats, complex(n, y) * 2j, bool(n) and y != 0.0, str(n) + str(y)


@case("lists and dicts", [[3, 1, 2], {"a": 1, "b": 2}], [[1], {"b": 5}])
class Containers(nn.Module):
    def forward(
        self, xs: list[int], table: dict[str, int]
    ) -> tuple[list[int], dict[str, int], list[str], list[tuple[int, str]], list[list[int]]]:
        xs.append(4)
        xs.insert(0, 9)
        xs.extend([5, 5])
        xs.sort()
        last = xs.pop()
        xs.remove(4)
        xs[0] = -1
        del xs[1]
        made = {name: n * 2 for name, n in table.items()}
        made["last"] = last
        made.update({"z": 0})
        del made["b"]
        found = [name + "!" for name in made]
        pairs = [(i, name) for i, name in enumerate(found)]
        nested = [[i * j for j in range(2)] for i in xs[1:3]]
        count = table.get("q", 7) + table.setdefault("w", 3) + xs.count(5) + xs.index(-1)
        made["count"] = count + len(table) + sum(xs) + max(xs) + (1 if 5 in xs else 0)
        return sorted(xs), made, found, list(zip([n for n, _ in pairs], found)), nested


@case("indices", [image(4, 5, 6), torch.tensor([1, 3])])
class Indices(nn.Module):
    def forward(self, x: Tensor, i: Tensor) -> list[Tensor]:
        y = x.clone()
        y[0] = 1.0
        y[:, 1:3] += 2
        y[i] = -1.0
        y[y > 0.5] = 0.25
        y[1, ..., 2] = x[0, ..., 0]
        return [y, x[i], x[:, i], x[0, :, None], x[..., -1], x[::2, 1:], x[i, i], x[x > 0], x[-1]]


@case("types of tensors", [X])
class TensorFacts(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, list[int], bool, bool, int]:
        made = torch.zeros([2, x.size(1)], dtype=x.dtype, device=x.device)
        y = x.to(torch.float64).type_as(x).long().to(dtype=torch.int32)
        z = torch.arange(3, dtype=torch.float16).to(x)
        same = x.dtype == torch.float32 and x.is_floating_point() and not y.is_complex()
        out = made.sum() + y.sum() + z.sum() + torch.full([2], 3).sum() + torch.ones(2).sum()
        return out, x.shape, same, x.device == torch.device("cpu"), x.numel() + x.stride(0)


@case("complex", [X])
class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.complex(image(4), image(4) + 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = x * self.weight + 1j
        wave = torch.fft.ifft(torch.fft.fft(z) * torch.exp(1j * x))
        return torch.view_as_real(wave), z.real * z.abs() + z.angle()


@case("Any and isinstance", [X])
class Anything(nn.Module):
    def describe(self, x: Any) -> str:
        if isinstance(x, int):
            return f"int {x + 1}"
        if isinstance(x, list[int]):
            return f"list {len(x)}"
        if isinstance(x, Tensor):
            return f"tensor {x.dim()}"
        return "something"

    def forward(self, x: Tensor) -> list[str]:
        return [self.describe(x), self.describe(3), self.describe([1, 2]), self.describe("s")]
