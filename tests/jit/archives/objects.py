"""Classes of objects, and the state of modules."""

import enum
from typing import NamedTuple

import torch
import torch.nn.functional as F
from tests.jit.archives import X, case, image
from torch import Tensor, nn

# Classes, enums, tuples, interfaces ---------------------------------------------------------------


@torch.jit.script
class Counter:
    def __init__(self, start: int, scale: float = 2.0):
        self.count = start
        self.scale = scale
        self.seen: list[int] = []

    def step(self, by: int) -> int:
        self.count += by
        self.seen.append(by)
        return self.count

    def __len__(self) -> int:
        return len(self.seen)

    def __add__(self, other: "Counter") -> "Counter":
        return Counter(self.count + other.count, self.scale)


@case("class", [X, 3], [X, 2])
class WithClass(nn.Module):
    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int, list[int]]:
        counter = Counter(n)
        for i in range(n):
            counter.step(i)
        both = counter + Counter(1, 3.0)
        return x * counter.scale + both.count, len(counter), counter.seen


@case("class as a result", [2])
class ClassResult(nn.Module):
    def make(self, n: int) -> Counter:
        made = Counter(n)
        made.step(n)
        return made

    def forward(self, n: int) -> tuple[int, float]:
        made = self.make(n)
        return made.count, made.scale


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@case("enums", [X, True], [X, False])
class WithEnums(nn.Module):
    def __init__(self):
        super().__init__()
        self.color = Color.BLUE
        self.modes = {"a": Mode.FAST, "b": Mode.SLOW}

    def pick(self, fast: bool) -> Mode:
        return Mode.FAST if fast else Mode.SLOW

    def forward(self, x: Tensor, fast: bool) -> tuple[Tensor, str, str, int]:
        mode = self.pick(fast)
        if mode == Mode.FAST:
            x = x * self.color.value
        elif self.color == Color.RED:
            x = x - 1
        return x, mode.value, self.modes["b"].name, self.color.value


class Point(NamedTuple):
    x: Tensor
    weight: float = 2.0
    name: str = "p"


class Segment(NamedTuple):
    start: Point
    end: Point | None = None


@case("named tuples", [X])
class WithTuples(nn.Module):
    def length(self, s: Segment) -> Tensor:
        end = s.end
        if end is None:
            return s.start.x * s.start.weight
        return end.x - s.start.x * end.weight

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Point]:
        p = Point(x)
        q = Point(x + 1, 3.0, name="q")
        one, weight, name = q
        return self.length(Segment(p)), self.length(Segment(p, q)), Point(one * weight, 1.0, name)


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor, scale: float) -> Tensor:
        pass


class Doubles(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(image(4))

    def forward(self, x: Tensor, scale: float) -> Tensor:
        return x * self.weight * scale


class Squares(nn.Module):
    def forward(self, x: Tensor, scale: float) -> Tensor:
        return x * x + scale


@case("module interfaces, items by a number of the program", [X, 0], [X, 1], [X, 2])
class ByNumber(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Doubles(), Squares(), Doubles()])

    def forward(self, x: Tensor, i: int) -> Tensor:
        layer: Layer = self.layers[i]
        return layer.forward(x, 2.0)


@case("module interfaces, items by a text of the program", [X, "a"], [X, "b"])
class ByText(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": Doubles(), "b": Squares()})

    def forward(self, x: Tensor, name: str) -> Tensor:
        layer: Layer = self.layers[name]
        return layer.forward(x, 3.0)


@case("a submodule declared as an interface", [X])
class Declared(nn.Module):
    inner: Layer

    def __init__(self):
        super().__init__()
        self.inner = Doubles()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner.forward(x, 0.5)


@torch.jit.interface
class Stepper:
    def step(self, by: int) -> int:
        pass


@case("interfaces of classes", [4])
class ClassInterface(nn.Module):
    def use(self, stepper: Stepper, n: int) -> int:
        return stepper.step(n) + stepper.step(1)

    def forward(self, n: int) -> int:
        return self.use(Counter(n), n)


# State ------------------------------------------------------------------------------------------


@case("__getstate__ and __setstate__", [X])
class WithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(image(4))
        self.table = {"a": 2}
        self.training = False

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, dict[str, int], bool]:
        return self.weight.detach() * 2, self.table, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, dict[str, int], bool]) -> None:
        self.weight = state[0] / 2
        self.table = state[1]
        self.training = state[2]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * self.table["a"]


@case("__setstate__ of a submodule", [X])
class HoldsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = WithState()
        self.outer = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x))


class Hooked(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)


def double_input(self, input: tuple[Tensor]) -> tuple[Tensor]:
    return (input[0] * 2,)


def negate_output(self, input: tuple[Tensor], output: Tensor) -> Tensor:
    return -output


def look(self, input: tuple[Tensor], output: Tensor):
    assert output.dim() == input[0].dim()


@case("hooks", [X])
def make_hooked():
    module = Hooked(4, 2)
    module.register_forward_pre_hook(double_input)
    module.register_forward_hook(negate_output)
    module.register_forward_hook(look)
    return module


@case("hooks of a submodule", [X])
def make_hooks_below():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_hooked()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) + 1

    return Outer()


@case("attributes", [X])
class Attributes(nn.Module):
    nothing: Tensor | None
    maybe: int | None
    either: int | str
    table: dict[str, list[int]]
    pairs: list[tuple[int, str]]
    deep: dict[int, dict[str, Tensor]]
    empty: list[Tensor]

    def __init__(self):
        super().__init__()
        self.nothing = None
        self.maybe = 3
        self.either = "text"
        self.table = {"a": [1, 2], "b": []}
        self.pairs = [(1, "x"), (2, "y")]
        self.deep = {1: {"t": image(4)}}
        self.empty = []
        self.device = torch.device("cpu")
        self.number = 1.5
        self.wave = 1 + 2j
        self.triple = (1, 2.5, [True, False])

    def forward(self, x: Tensor) -> tuple[Tensor, int, str, float, complex]:
        nothing = self.nothing
        if nothing is not None:
            x = x + nothing
        maybe = self.maybe
        either = self.either
        text = either if isinstance(either, str) else "a number"
        total = 0 if maybe is None else maybe
        for values in self.table.values():
            for value in values:
                total += value
        for number, name in self.pairs:
            total += number + len(name)
        self.table["c"] = [total]
        self.empty.append(x)
        x = x * self.deep[1]["t"] + len(self.empty)
        flag = 1.0 if self.triple[2][0] else 0.0
        return x.to(self.device), total, text, self.number + flag, self.wave * 2


@case("Final constants", [X])
class Constants(nn.Module):
    size: torch.jit.Final[int]
    sizes: torch.jit.Final[list[int]]
    __constants__ = ("text", "pair")

    def __init__(self):
        super().__init__()
        self.size = 3
        self.sizes = [1, 2]
        self.text = 'a "quoted"\n\\text é'
        self.pair = (1, 2.5)

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        for n in self.sizes:
            x = x + n
        return x * self.size * self.pair[1], self.text


@case("names that are no identifiers", [X])
def make_odd_names():
    module = nn.Sequential()
    module.add_module("1x1", nn.Linear(4, 3))
    module.add_module("act-1", nn.ReLU())
    module.add_module("2", nn.Linear(3, 2))
    return module


@case("mangled names", [X])
class Mangled(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.b = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x))


@case("shared and strided storages", [X])
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        base = image(6, 8)
        self.register_buffer("base", base)
        self.register_buffer("turned", base.t())
        self.register_buffer("part", base[1:5:2, 3])
        self.register_buffer("wide", image(4).expand(3, 4))
        self.a = nn.Linear(4, 4)
        self.b = self.a
        self.c = nn.Linear(4, 4)
        self.c.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        self.base.add_(1)
        return self.c(self.b(self.a(x + self.wide))) + self.turned[3, 1] + self.part.sum()


@case("dtypes", [])
class Dtypes(nn.Module):
    def __init__(self):
        super().__init__()
        for name in (
            "uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32",
            "float64", "complex64", "complex128",
        ):  # fmt: skip
            self.register_buffer(f"of_{name}", image(5).mul(3).to(getattr(torch, name)))
        self.register_buffer("nothing", torch.empty(0, 3))
        self.register_buffer("scalar", torch.tensor(7))

    def forward(self) -> tuple[list[Tensor], int, Tensor]:
        whole = [self.of_uint8, self.of_int8, self.of_int16, self.of_int32, self.of_int64]
        real = [self.of_float16, self.of_bfloat16, self.of_float32, self.of_float64]
        rest = [self.of_bool, self.of_complex64, self.of_complex128]
        return whole + real + rest, self.nothing.size(1), self.scalar + 1


@case("buffers that change", [X], [X], [X])
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("hidden", torch.ones(4), persistent=False)
        self.calls = 0

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.hidden.mul_(2)
        self.calls += 1
        return self.norm(x) + self.mean + self.hidden, self.calls
