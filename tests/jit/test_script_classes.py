"""Modules, classes, enums, interfaces, overloads, markers: what weft.jit.script takes beside
functions."""

# ruff: noqa: UP006, UP035, UP045, F811, RUF012

from __future__ import annotations

import copy
import dataclasses
import enum
import io
import pickle
from collections.abc import Callable
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest

import weft
import weft as torch
from weft import Tensor, jit, nn


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


def use_enum(c: Color, n: int) -> Color:
    if c == Color.RED:
        return Color.GREEN
    if c.value == n and c.name == "GREEN":
        return c
    return Color.RED


def count_enum() -> List[str]:
    return [c.name for c in Color]


def test_enums():
    f = jit.script(use_enum)
    assert f(Color.RED, 0) is Color.GREEN
    assert f(Color.GREEN, 2) is Color.GREEN
    assert f(Color.GREEN, 3) is Color.RED
    assert jit.script(count_enum)() == ["RED", "GREEN"]


class Pair(NamedTuple):
    a: Tensor
    b: int = 3


def swap_pair(p: Pair) -> Pair:
    return Pair(p.a * p.b, b=p.b + 1)


def test_named_tuples():
    result = jit.script(swap_pair)(Pair(weft.ones(2), 2))
    assert type(result) is Pair and result.b == 3 and result.a.tolist() == [2.0, 2.0]


class Counter:
    limit: int

    def __init__(self, start: int, limit: int = 10):
        self.n = start
        self.limit = limit
        self.seen: List[int] = []

    def add(self, k: int) -> Counter:
        self.n += k
        if self.n > self.limit:
            self.n = self.limit
        self.seen.append(self.n)
        return self

    @property
    def double(self) -> int:
        return self.n * 2

    @staticmethod
    def make(n: int) -> int:
        return n + 1

    def __len__(self) -> int:
        return self.n

    def __add__(self, other: int) -> int:
        return self.n + other

    def __eq__(self, other: Counter) -> bool:
        return self.n == other.n

    def __getitem__(self, i: int) -> int:
        return self.seen[i]

    def __contains__(self, i: int) -> bool:
        return i in self.seen


class Bounded(Counter):
    def __init__(self, start: int):
        super().__init__(start, 5)
        self.name = "bounded"

    def add(self, k: int) -> Counter:
        self.name += "!"
        return super().add(k)


def use_class(n: int):
    c = Counter(n)
    d = c
    d.add(2).add(3)
    c.n += 1
    b = Bounded(1)
    b.add(100)
    return c.n, d.double, Counter.make(3), len(c), c + 7, c == d, c[0], 4 in c, b.n, b.name, b.limit


def test_classes():
    assert jit.script(use_class)(1) == use_class(1)


def class_across_the_border(c: Counter) -> Counter:
    c.n = c.n + 5
    return c


def test_instances_cross_the_border():
    jit.script(Counter)
    result = jit.script(class_across_the_border)(Counter(1))
    assert type(result) is Counter and result.n == 6 and result.limit == 10 and result.seen == []


@dataclasses.dataclass
class Config:
    size: int
    scale: float = 2.0
    names: List[str] = dataclasses.field(default_factory=list)

    def total(self) -> float:
        return self.size * self.scale


def use_dataclass(n: int):
    c = Config(n, names=["x"])
    c.size += 1
    return c.total(), c.names, Config(1).scale


def test_dataclasses():
    assert jit.script(use_dataclass)(3) == use_dataclass(3)


class Declared:
    n: int
    label: Optional[int]

    def __init__(self, n: int):
        self.n = n


def read_what_is_set() -> int:
    return Declared(3).n


def read_what_is_not() -> Optional[int]:
    return Declared(3).label


def test_what_a_class_declares_and_init_does_not_set_is_not_there():
    assert jit.script(read_what_is_set)() == 3
    with pytest.raises(
        jit.FrontendError, match="Declared: expected an attribute it has, got 'label'"
    ):
        jit.script(read_what_is_not)


class Timer:
    def __init__(self):
        self.log: List[str] = []

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, type: Optional[int], value: Optional[int], traceback: Optional[int]):
        self.log.append("exit")


def use_with(n: int) -> List[str]:
    t = Timer()
    with t as u:
        u.log.append("inside")
        if n > 2:
            u.log.append("big")
    return t.log


def test_context_managers():
    assert jit.script(use_with)(3) == use_with(3)


@jit.interface
class Layer:
    def forward(self, x: Tensor) -> Tensor:
        pass


@jit.interface
class HasArea:
    def area(self, scale: float) -> float:
        pass


class Square:
    def __init__(self, side: float):
        self.side = side

    def area(self, scale: float) -> float:
        return self.side * self.side * scale


class Circle:
    def __init__(self, r: float):
        self.r = r

    def area(self, scale: float) -> float:
        return 3.0 * self.r * scale


def use_interface(flag: bool) -> float:
    square = Square(2.0)
    circle = Circle(1.0)
    square.area(1.0), circle.area(1.0)
    shape: HasArea = square
    if flag:
        shape = circle
    return shape.area(2.0)


def test_interfaces():
    f = jit.script(use_interface)
    assert f(True) == 6.0 and f(False) == 8.0


# ---- modules ----


class Net(nn.Module):
    __constants__ = ["depth"]
    factor: jit.Final[float]

    def __init__(self, depth: int = 2):
        super().__init__()
        self.depth = depth
        self.factor = 0.5
        self.steps = 0
        self.history: List[int] = []
        self.cache: Dict[str, Tensor] = {}
        self.last = jit.Attribute(None, Optional[Tensor])
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(depth)])
        self.table = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.activation = torch.sigmoid
        self.extra = None
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor, name: str = "relu") -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) * self.factor + i
        for key, module in self.table.items():
            if key == name:
                x = module(x)
        if self.extra is not None:
            x = self.extra(x)
        if self.training:
            self.steps += 1
            self.count += 1
        self.history.append(self.steps)
        x = self.layers[-1](x) + self.layers[0].weight.sum()
        return self.activation(self.scale(x, self.depth))

    def scale(self, x, n: int):
        return x * n if hasattr(self, "depth") else x

    @jit.export
    def reset(self, n: int = 0) -> int:
        old = self.steps
        self.steps = n
        return old

    @jit.unused
    def never(self, x):
        return x.some_thing_python()

    @jit.ignore
    def in_python(self, n: int) -> int:
        return n * sum(k for k in {1, 2, 3})

    @property
    def twice(self) -> int:
        return self.steps * 2

    @staticmethod
    def helper(n: int) -> int:
        return n + 1


def test_module_state_is_shared_with_the_program():
    weft.manual_seed(1)
    net = Net()
    twin = copy.deepcopy(net)
    scripted = jit.script(twin)
    x = weft.randn(2, 3)
    for name in ("relu", "tanh"):
        assert weft.equal(net(x, name), scripted(x, name))
    assert scripted.steps == 2 and scripted.history == net.history
    assert scripted.count.item() == 2
    assert scripted.reset(7) == 2 and scripted.steps == 7 and scripted.twice == 14
    scripted.steps = 40
    scripted.eval()
    assert not scripted.training and not scripted.layers[0].training
    scripted(x)
    assert scripted.steps == 40
    assert scripted.depth == 2 and scripted.factor == 0.5 and scripted.extra is None
    assert list(scripted.state_dict()) == list(net.state_dict())
    with weft.no_grad():
        scripted.layers[0].weight.zero_()
    assert twin.layers[0].weight.sum() == 0
    assert scripted.in_python(2) == 12


def test_parameters_and_conversion():
    scripted = jit.script(Net())
    assert isinstance(scripted, nn.Module) and isinstance(scripted, jit.ScriptModule)
    assert len(list(scripted.parameters())) == 4 and len(list(scripted.buffers())) == 1
    assert [n for n, _ in scripted.named_modules()][:3] == ["", "layers", "layers.0"]
    scripted.to(weft.float64)
    assert scripted.count.dtype == weft.float64
    assert scripted(weft.randn(2, 3, dtype=weft.float64)).dtype == weft.float64
    state = {k: weft.zeros_like(v) for k, v in scripted.state_dict().items()}
    scripted.load_state_dict(state)
    assert all((p == 0).all() for p in scripted.parameters())
    assert "original_name=Net" in repr(scripted)


def test_modules_of_one_shape_share_a_type():
    a, b, c = jit.script(Net()), jit.script(Net()), jit.script(Net(3))
    assert a._jit_info is b._jit_info and a._jit_info is not c._jit_info


def test_copies_and_pickles():
    scripted = jit.script(Net())
    other = copy.deepcopy(scripted)
    with weft.no_grad():
        other.layers[0].weight.fill_(9.0)
    assert scripted.layers[0].weight.max() < 9
    x = weft.randn(1, 3)
    assert not weft.equal(scripted(x), other(x))
    shallow = copy.copy(scripted)
    assert shallow.count is scripted.count
    with pytest.raises(RuntimeError, match=r"use its state_dict"):
        pickle.dumps(scripted)


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.thing = object()

    def forward(self, x):
        return self.thing


def test_attribute_that_a_program_cannot_hold():
    with pytest.raises(
        RuntimeError, match=r"Wrong\.thing: expected a value that a program can hold, got object"
    ):
        jit.script(Wrong())


class UsesUnused(nn.Module):
    def forward(self, x, flag: bool):
        if flag:
            return self.helper(x)
        return x + self.python(2)

    @jit.unused
    def helper(self, x):
        return x.nonsense()

    @jit.ignore
    def python(self, n: int) -> int:
        return len({n, n, 5})


def test_unused_and_ignore():
    scripted = jit.script(UsesUnused())
    assert scripted(weft.zeros(1), False).item() == 2
    with pytest.raises(RuntimeError, match="helper is marked @unused"):
        scripted(weft.zeros(1), True)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def double_input(self, inputs: Tuple[Tensor]):
    return (inputs[0] * 2,)


def negate(self, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return -output


def test_hooks():
    net = Hooked()
    net.inner.register_forward_pre_hook(double_input)
    net.inner.register_forward_hook(negate)
    net.register_forward_hook(negate)
    scripted = jit.script(net)
    x = weft.randn(3, 2)
    assert weft.equal(net(x), scripted(x))


class PastHooks(Hooked):
    def forward(self, x: Tensor) -> Tensor:
        return self.inner.forward(x) + nn.Linear.forward(self.inner, x) * self.inner(x)


def test_forward_itself_has_no_hooks():
    net = PastHooks()
    net.inner.register_forward_hook(negate)
    x = weft.randn(3, 2)
    assert weft.equal(net(x), jit.script(net)(x))


class Overloaded(nn.Module):
    @jit._overload_method
    def pick(self, x: int) -> int: ...

    @jit._overload_method
    def pick(self, x: str) -> str: ...

    def pick(self, x):
        return x + x

    def forward(self, n: int, s: str):
        return self.pick(n), self.pick(s)


@jit._overload
def either(x: int) -> int: ...


@jit._overload
def either(x: Tensor) -> Tensor: ...


def either(x):
    return x * 2


def use_overloads(n: int, x: Tensor):
    return either(n), either(x)


def test_overloads():
    assert jit.script(Overloaded())(2, "a") == (4, "aa")
    n, x = jit.script(use_overloads)(3, weft.ones(1))
    assert n == 6 and x.item() == 2


def forked(x: Tensor, n: int) -> Tensor:
    future = jit.fork(slow, x, n)
    y = x + 1
    return jit.wait(future) + y


def slow(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = x * 2
    return x


def test_fork_and_wait():
    x = weft.ones(2)
    assert weft.equal(jit.script(forked)(x, 5), forked(x, 5))


def fork_closures(x: Tensor, n: int) -> Tensor:
    def inner(y: Tensor, more: int = 1) -> Tensor:
        return slow(x, n) + y * more

    future = jit.fork(inner, x, more=3)
    other = jit.fork(lambda: x.sum() + n)
    return jit.wait(future) + jit.wait(other)


def test_fork_of_local_functions():
    x = weft.ones(2)
    assert weft.equal(jit.script(fork_closures)(x, 5), weft.tensor([42.0, 42.0]))


class WithInterface(nn.Module):
    layer: Layer

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer.forward(x)


class Plus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Times(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3


def test_module_interface_attributes_can_be_swapped():
    scripted = jit.script(WithInterface(Plus()))
    assert scripted(weft.ones(1)).item() == 2
    scripted.layer = jit.script(Times())
    assert scripted(weft.ones(1)).item() == 3


@jit.interface
class TwoWays(nn.Module):
    def forward(self, x: Tensor) -> Tensor: ...
    def back(self, x: Tensor) -> Tensor: ...


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2

    def back(self, x: Tensor) -> Tensor:
        return x / 2


class Raised(Doubled):
    def back(self, x: Tensor) -> Tensor:
        return x - 1


class ThereAndBack(nn.Module):
    way: TwoWays

    def __init__(self):
        super().__init__()
        self.way = Raised()

    def forward(self, x: Tensor) -> Tensor:
        return self.way.back(self.way.forward(x))


def test_modules_that_stand_behind_an_interface_after_they_were_compiled():
    before = jit.script(Doubled())
    assert before(weft.ones(1)).item() == 2  # "back" is not compiled
    scripted = jit.script(ThereAndBack())
    assert scripted(weft.ones(1)).item() == 1
    scripted.way = before
    assert scripted(weft.ones(1)).item() == 1 and scripted(weft.ones(1) * 3).item() == 3


def sum_of_layers(layers: list[Layer], x: Tensor) -> Tensor:
    return layers[0].forward(x) + layers[1].forward(x)


def area_of(shape: HasArea, scale: float) -> float:
    return shape.area(scale)


def test_arguments_behind_interfaces():
    summed, area = jit.script(sum_of_layers), jit.script(area_of)
    for layers in ([Plus(), Times()], [nn.Linear(1, 1), Plus()], [Times(), Times()]):
        expected = layers[0](weft.ones(1)) + layers[1](weft.ones(1))
        assert weft.equal(summed([jit.script(layer) for layer in layers], weft.ones(1)), expected)
    for shape in (jit.script(Square)(2.0), jit.script(Circle)(1.0)):
        assert area(shape, 2.0) == shape.area(2.0)
    with pytest.raises(TypeError, match="Layer"):
        summed([jit.script(Square)(2.0)] * 2, weft.ones(1))


class WithTwo(WithInterface):
    def __init__(self):
        super().__init__(Plus())
        self.other = Times()

    def forward(self, x: Tensor, flag: bool = False) -> Tensor:
        return (self.layer if flag else self.other).forward(x)


def test_a_module_and_an_interface_on_two_paths():
    scripted = jit.script(WithTwo())
    assert [scripted(weft.ones(1), flag).item() for flag in (True, False)] == [2, 3]


def test_compilation_unit():
    unit = jit.CompilationUnit(
        """
def add(a: int, b: int = 2) -> int:
    return a + b

def twice(x: Tensor) -> Tensor:
    return x * float(add(1, 1))
"""
    )
    assert unit.add(1) == 3 and unit.twice(weft.ones(1)).item() == 2


def test_source_that_is_nowhere():
    space = {}
    exec("\n".join(["def f(x: int) -> int:", "    return x + 1", ""]), space)
    with pytest.raises(RuntimeError, match="expected source code to compile") as caught:
        jit.script(space["f"])
    assert "CompilationUnit" in str(caught.value)


def test_source_in_linecache():
    import linecache

    text = "def f(x: int) -> int:\n    return x + 1\n"
    name = "<cell 1>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "cell"}
    exec(compile(text, name, "exec"), space)
    assert jit.script(space["f"])(1) == 2


def outer_scale(scale: float):
    def inner(x: Tensor) -> Tensor:
        return x * scale + offset

    offset = 1
    return inner


def test_closures():
    assert jit.script(outer_scale(3.0))(weft.ones(1)).item() == 4


def test_gradients_flow_through_programs():
    net = Net()
    scripted = jit.script(net)
    x = weft.randn(2, 3)
    scripted(x).sum().backward()
    got = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    for a, p in zip(got, net.parameters()):
        assert weft.allclose(a, p.grad)


class Cached(nn.Module):
    cache: Optional[Tensor]
    inner_names: Optional[List[str]]

    def __init__(self):
        super().__init__()
        self.cache = None
        self.inner_names = None

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is not None:
            x = self.cache + x
        if self.cache is None or self.cache.sum() < 100:
            self.cache = x
        names = self.inner_names
        if names is not None and len(names) > 1:
            x = x + len(names)
        assert self.cache is not None
        return self.cache * 2


def test_attributes_are_refined_by_tests():
    module, scripted = Cached(), jit.script(Cached())
    for value in (1.0, 50.0, 60.0, 3.0):
        x = weft.full((2,), value)
        assert weft.equal(module(x), scripted(x))
    assert weft.equal(module.cache, scripted.cache)


class Stale(nn.Module):
    value: Optional[int]

    def __init__(self):
        super().__init__()
        self.value = 3

    def clear(self):
        self.value = None

    def forward(self) -> int:
        if self.value is not None:
            self.clear()
            return self.value
        return 0


def test_a_call_ends_what_is_known_of_an_attribute():
    with pytest.raises(
        RuntimeError, match=r"return: expected a value of type int, got Optional\[int\]"
    ):
        jit.script(Stale())


class Node:
    def __init__(self, value: int):
        self.value = value
        self.children: List[int] = []


def special_forms(x: Tensor, n: int):
    if torch.jit.is_scripting():
        n += 1
    else:
        n += 1
    y = x.norm() + torch.norm(x)
    parts = x.tensor_split(2)
    size = [2, 1]
    z = x.view(*size, -1) + torch.zeros(*size, 1)
    flag: Optional[bool] = None
    if n > 2:
        flag = True
    if flag:
        n += 10
    return n, y, len(parts), z


def test_special_forms():
    x = weft.arange(4, dtype=weft.float32).reshape(2, 2)
    for n in (1, 5):
        expected, got = special_forms(x, n), jit.script(special_forms)(x, n)
        assert expected[0] == got[0] and weft.equal(expected[1], got[1]) and expected[2] == got[2]
        assert weft.equal(expected[3], got[3])


def test_methods_from_text():
    scripted = jit.script(Plus())
    scripted.define("""
        def twice(self, x: Tensor, n: int = 2) -> Tensor:
            for _ in range(n):
                x = self.forward(x)
            return x
    """)
    assert scripted.twice(weft.ones(1)).item() == 3
    assert scripted.twice.schema.arguments[2].default_value == 2


def second_derivative(x: Tensor) -> Tensor:
    y = (x * x * x).sum()
    first = torch.autograd.grad([y], [x], create_graph=True)[0]
    assert first is not None
    second = torch.autograd.grad(first.sum(), x)[0]
    assert second is not None
    return second


def test_gradients_inside_programs():
    x = weft.tensor([1.0, 2.0], requires_grad=True)
    assert jit.script(second_derivative)(x).tolist() == [6.0, 12.0]


def gradients_of_two(
    x: Tensor, y: Tensor, given: Optional[List[Optional[Tensor]]]
) -> List[Optional[Tensor]]:
    roots = [(x * y).sum(), x.exp().sum()]
    torch.autograd.backward(roots, given, retain_graph=True)
    return torch.autograd.grad(roots, [x, y], given)


@pytest.mark.parametrize("given", [None, [weft.tensor(2.0), None], [weft.tensor(2.0)]])
def test_gradients_of_several_roots(given):
    """Each has a gradient of one where none is given."""
    found = []
    for run in (gradients_of_two, jit.script(gradients_of_two)):
        x, y = (weft.linspace(-1, 2, 5).requires_grad_() for _ in "xy")
        try:
            got = [*run(x, y, given), x.grad, y.grad]
            found.append([g.tolist() for g in got])
        except (RuntimeError, ValueError) as error:
            assert given is not None and len(given) == 1
            found.append(type(error))
    assert found[0] == found[1]


@jit.script
class Chain:
    def __init__(self, n: int):
        self.n = n

    def next(self) -> Chain:
        return Chain(self.n + 1)


def use_chain(n: int) -> int:
    return Chain(n).next().next().n


def test_a_class_that_names_itself_while_it_is_decorated():
    assert jit.script(use_chain)(1) == 3


class Busy(ValueError):
    """An exception of the program's own."""


def test_own_exceptions_arrive_as_themselves() -> None:
    def f(n: int) -> int:
        if n > 2:
            raise Busy(f"{n} at once")
        return n

    with pytest.raises(Busy, match="3 at once"):
        jit.script(f)(3)


def test_a_class_that_names_itself() -> None:
    @jit.script
    class Link:
        def __init__(self, value: int) -> None:
            self.value = value
            self.next: Optional[Link] = None

        def push(self, value: int) -> Link:
            made = Link(value)
            made.next = self
            return made

    def f(n: int) -> int:
        link = Link(n).push(n + 1)
        after = link.next
        assert after is not None
        return link.value * 10 + after.value

    assert jit.script(f)(4) == 54


@pytest.mark.parametrize("deep", [False, True])
def test_annotations_that_say_module(deep: bool) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner: Optional[nn.Module] = nn.Linear(2, 2) if deep else None

        def forward(self, x: weft.Tensor) -> weft.Tensor:
            if self.inner is not None:
                x = self.inner(x)
            return x

    block, x = Block(), weft.ones(2)
    assert weft.equal(jit.script(block)(x), block(x))


@jit.interface
class Step(nn.Module):
    """What a picked module can do."""

    def forward(self, input: weft.Tensor) -> weft.Tensor:
        """One step."""


class Steps(nn.Module):
    """Modules by number and by name, known only at run time."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Linear(2, 2)])
        self.named = nn.ModuleDict({"relu": nn.ReLU(), "linear": nn.Linear(2, 2)})

    def forward(self, x: weft.Tensor, place: int, name: str) -> weft.Tensor:
        first: Step = self.row[place]
        second: Step = self.named[name]
        return first.forward(x) + second.forward(x)


def test_modules_picked_at_run_time() -> None:
    steps, x = Steps(), weft.tensor([-1.0, 2.0])
    program = jit.script(steps)
    for place in range(-3, 3):
        for name in ("relu", "linear"):
            assert weft.equal(program(x, place, name), steps(x, place, name))
    for place in (3, -4):
        with pytest.raises(IndexError):
            program(x, place, "relu")
    with pytest.raises(KeyError):
        program(x, 0, "other")


class Leaf:
    def __init__(self, size: int):
        self.size = size


class Branch:
    def __init__(self) -> None:
        self.leaf = jit.annotate(Optional[Leaf], None)

    def grow(self, leaf: Leaf) -> None:
        self.leaf = leaf


def size_of_branch(grows: bool) -> int:
    branch = Branch()
    if grows:
        branch.grow(Leaf(7))
    leaf = branch.leaf
    return 0 if leaf is None else leaf.size


def test_annotated_none_may_become_a_value():
    f = jit.script(size_of_branch)
    assert f(False) == 0 and f(True) == 7


def test_a_class_is_scripted_after_programs_have_shared_its_objects():
    assert jit.script(size_of_branch)(True) == 7
    shared = Leaf(3)
    assert jit.script(size_of_leaf)(shared) == 3
    assert jit.script(Leaf) is Leaf


def size_of_leaf(leaf: Leaf) -> int:
    return leaf.size


class Unscriptable(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return globals()["unknown"](x)

    def __prepare_scriptable__(self) -> nn.Module:
        return Times()


def test_modules_that_name_others_to_compile():
    x = weft.ones(2)
    assert jit.script(Unscriptable())(x).tolist() == [3.0, 3.0]
    assert jit.script(nn.Sequential(Plus(), nn.Sequential(Unscriptable())))(x).tolist() == [6.0] * 2


class Variadic:
    def __call__(self, *parts: int) -> int:
        return sum(parts)

    def __prepare_scriptable__(self) -> Callable[[int, int], int]:
        return with_two_parts


def with_two_parts(first: int, second: int) -> int:
    return first + second


def test_objects_that_name_functions_to_compile():
    assert jit.script(Variadic())(2, 3) == 5


class Tally:
    def __init__(self, count: int):
        self.count = count

    def add(self, more: int) -> None:
        self.count += more


def add_three(tally: Tally) -> None:
    tally.add(3)


def test_scripted_objects_are_shared_with_programs():
    tally = jit.script(Tally(4))
    jit.script(add_three)(tally)
    assert tally.count == 7
    with pytest.raises(RuntimeError, match="expected a function, module or class, got int"):
        jit.script(3)


def with_type_comment(x, n):
    # type: (Tensor, Optional[List[int]])
    return x if n is None else x * n[0]


def test_type_comments_without_a_result():
    assert jit.script(with_type_comment)(weft.ones(1), [4, 5]).item() == 4


@dataclasses.dataclass
class Interval:
    low: int
    width: dataclasses.InitVar[int]
    high: int = 0
    scale: dataclasses.InitVar[int] = 1

    def __post_init__(self, width: int, scale: int):
        self.high = self.low + width * scale


def ends(low: int, width: int) -> tuple[int, int, int]:
    return low, Interval(low, width).high, Interval(low, width=2, scale=width).high


def test_arguments_of_dataclasses_that_are_no_fields():
    assert jit.script(ends)(3, 5) == ends(3, 5) == (3, 8, 13)


def tensors_of_types(n: int) -> list[Tensor]:
    return [
        weft.BoolTensor([n > 1, False]), weft.LongTensor([[n], [2]]), weft.HalfTensor([0.5]),
        weft.DoubleTensor((n, 2)), weft.FloatTensor(), weft.ByteTensor(n, 3).zero_(),
        weft.CharTensor(n).fill_(n),
    ]  # fmt: skip


def test_constructors_by_type():
    for expected, got in zip(tensors_of_types(2), jit.script(tensors_of_types)(2), strict=True):
        assert got.dtype == expected.dtype and weft.equal(got, expected)


class Defining(jit.ScriptModule):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(weft.full((2,), 3.0))
        self.define("def scaled(self, x: Tensor) -> Tensor:\n    return self.plus(x) * self.weight")

    @jit.script_method
    def plus(self, x: Tensor) -> Tensor:
        return x + 1

    @jit.script_method
    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(x)


def test_methods_from_texts_are_called_by_others():
    made = Defining()
    assert made(weft.ones(2)).tolist() == made.scaled(weft.ones(2)).tolist() == [6.0, 6.0]


REPORTED: list[int] = []


class Reporting(nn.Module):
    @jit.ignore
    def report(self, n: int):
        REPORTED.append(n)

    def forward(self, n: int) -> int:
        self.report(n)
        return n + 1


def test_ignored_functions_without_annotation_may_return_nothing():
    assert jit.script(Reporting())(4) == 5 and REPORTED[-1] == 4


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", weft.ones(2))

    def forward(self) -> Tensor:
        return self.count

    @jit.export
    def __getstate__(self):
        return 5, self.training

    @jit.export
    def __setstate__(self, state):
        self.count = weft.ones(2) + state[0]
        self.training = state[1]


def test_setstate_takes_what_getstate_gives():
    data = jit.script(Stateful().eval()).save_to_buffer()
    loaded = jit.load(io.BytesIO(data))
    assert loaded().tolist() == [6.0, 6.0] and not loaded.training


def kinds_of_tensors(x: Tensor) -> list[bool]:
    return [x.is_mkldnn, x.is_sparse_csr, x.is_nested, hasattr(x, "is_xla"), x.is_sparse]


def test_kinds_of_tensors_that_programs_never_have():
    assert jit.script(kinds_of_tensors)(weft.ones(1)) == [False, False, False, True, False]


def items(xs: list[int], ys: list[float]) -> tuple[list[int], list[float]]:
    return xs[1:], ys


def test_ranges_as_lists():
    assert jit.script(items)(range(4), range(2)) == ([1, 2, 3], [0.0, 1.0])


class Counted(nn.ModuleList):
    def __len__(self) -> int:
        return 7

    def __contains__(self, item: int) -> bool:
        return item == 3

    def __getitem__(self, index: int) -> int:
        return index * 2


class OfCounted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = Counted([Plus()])

    def forward(self, x: Tensor) -> tuple[int, bool, int]:
        return len(self.layers), 3 in self.layers, self.layers[4]


def test_containers_with_methods_of_their_own():
    module = OfCounted()
    assert jit.script(module)(weft.ones(1)) == module(weft.ones(1)) == (7, True, 8)
