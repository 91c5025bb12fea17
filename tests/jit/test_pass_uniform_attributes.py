"""Attributes that are equal in all modules of a class, as constants before calls are inlined."""

import weft
from weft import Tensor, jit, nn
from weft.jit.passes import uniform_attributes


class Layer(nn.Module):
    def __init__(self, scale: float, shift: float):
        super().__init__()
        self.scale = scale
        self.shift = shift
        self.even = 2
        self.calls = 0
        self.register_buffer("weight", weft.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.training:
            x = x + 100
        return x * self.scale * self.even + self.shift * self.weight


class Net(nn.Module):
    def __init__(self, *shifts: float):
        super().__init__()
        self.first, self.second = Layer(2.0, shifts[0]), Layer(2.0, shifts[1])

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def found(module, preserved=()):
    compiled = jit.script(module)
    graph = compiled._jit_info.compiled["forward"].function.graph
    values = uniform_attributes.find(graph, compiled, preserved)
    return {name: value for (type_, name), value in values.items() if "Layer" in type_.name}


def test_only_what_is_equal_and_stays():
    assert found(Net(1.0, 1.0).eval()) == {
        "scale": 2.0, "shift": 1.0, "even": 2, "training": False,
    }  # fmt: skip
    assert "shift" not in found(Net(1.0, 2.0))
    assert "shift" not in found(Net(0.0, -0.0))
    half = Net(1.0, 1.0)
    half.first.eval()
    assert "training" not in found(half)
    assert found(Net(1.0, 1.0), ["first.scale"]) == {}


def test_frozen_values():
    for shifts in ((1.0, 1.0), (1.0, 2.0), (0.0, -0.0)):
        net = Net(*shifts).eval()
        frozen = jit.freeze(jit.script(net))
        for x in (weft.tensor([1.0, -0.0]), weft.tensor([-3.0, 2.0])):
            expected = net(x)
            assert weft.equal(frozen(x), expected)
            assert weft.equal(1 / frozen(x), 1 / net(x))  # signs of zeros
    assert "100" not in str(frozen.graph)


class Number:
    def __init__(self, n: int):
        self.n = n


class TakesNumber(nn.Module):
    def __init__(self):
        super().__init__()
        self.number = Number(2)
        self.training = False

    def forward(self, other: Number) -> int:
        return self.number.n * 10 + other.n


def test_objects_that_are_no_modules():
    """An argument may be of their class."""
    compiled = jit.script(TakesNumber())
    graph = compiled._jit_info.compiled["forward"].function.graph
    assert [name for _, name in uniform_attributes.find(graph, compiled)] == ["training"]
    assert jit.freeze(compiled)(Number(5)) == 25
