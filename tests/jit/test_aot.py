"""Compiled files: written by aot_compile, run by what C and C++ programs run them by."""

from __future__ import annotations

import enum
import pathlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import _C, nn


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 2, bias=False)])
        self.layers.append(self.layers[0])  # found twice
        self.scale = 1.5
        self.names = ["a", "b"]
        self.table = {"x": 2.0}
        self.nothing: int | None = None
        self.colour = Colour.BLUE
        self.register_buffer("seen", weft.zeros(1, dtype=weft.int64))
        self.register_buffer("scratch", weft.ones(3), persistent=False)

    def forward(self, x: weft.Tensor, n: int = 2) -> weft.Tensor:
        self.seen += n
        y = weft.relu(self.norm(self.first(x)))
        for layer in self.layers[:1]:
            y = layer(y)
        if self.colour == Colour.BLUE:
            y = y * self.table["x"]
        return self.layers[1](y) * self.scale + len(self.names)

    @weft.jit.export
    def count(self) -> tuple[int, list[str], dict[str, float], int | None]:
        return int(self.seen.item()), self.names, self.table, self.nothing


def compiled(program: Any, folder: pathlib.Path, *methods: str) -> Any:
    path = folder / "program.weft"
    weft.jit.aot_compile(program, path, methods)
    return _C.CompiledModule(str(path))


def test_a_module_runs_with_its_state(tmp_path) -> None:
    weft.manual_seed(1)
    net = Net()
    script = weft.jit.script(net)
    file = compiled(script, tmp_path)
    x = weft.randn(5, 4)
    assert set(file.methods) == {"forward", "count"}
    assert weft.equal(file.call("forward", x), script(x))
    assert weft.equal(file.call("forward", x, n=7), script(x, 7))
    assert file.call("count") == script.count() == (9, ["a", "b"], {"x": 2.0}, None)
    file.train(False)
    script.eval()
    with weft.no_grad():
        assert weft.equal(file.call("forward", x), script(x))


def test_names_of_parameters_and_buffers(tmp_path) -> None:
    net = Net()
    file = compiled(weft.jit.script(net), tmp_path)
    assert list(file.parameters()) == [name for name, _ in net.named_parameters()]
    assert list(file.buffers()) == [n for n, _ in net.named_buffers() if n != "scratch"]
    for name, parameter in net.named_parameters():
        loaded = file.parameters()[name]
        assert weft.equal(loaded, parameter) and loaded.requires_grad
        assert loaded.data_ptr() != parameter.data_ptr()


def test_gradients(tmp_path) -> None:
    net = Net()
    file = compiled(weft.jit.script(net), tmp_path)
    x = weft.randn(5, 4)
    file.call("forward", x).sum().backward()
    net(x).sum().backward()
    for name, parameter in net.named_parameters():
        weft.testing.assert_close(file.parameters()[name].grad, parameter.grad)


def test_tensors_that_share_memory_share_it_in_the_file(tmp_path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.whole = nn.Parameter(weft.arange(6.0))
            self.register_buffer("part", self.whole.detach()[2:4])
            self.register_buffer("wide", self.whole.detach().view(2, 3).t())

        def forward(self) -> tuple[weft.Tensor, weft.Tensor, weft.Tensor]:
            return self.whole, self.part, self.wide

    file = compiled(weft.jit.script(Tied()), tmp_path)
    whole, part, wide = file.call("forward")
    assert part.tolist() == [2, 3] and wide.tolist() == [[0, 3], [1, 4], [2, 5]]
    part.fill_(9)
    assert whole.tolist() == [0, 1, 9, 9, 4, 5] and wide.stride() == (1, 3)


def test_what_crosses_the_border(tmp_path) -> None:
    source = """
def every(flag: bool, n: int, y: float, text: str, xs: List[int], pairs: Dict[str, List[Tensor]],
          maybe: Optional[Tensor], tail: Tuple[int, float] = (1, 2.0)):
    return flag, n, y, text, xs, pairs, maybe, tail, complex(n, y), torch.float32
"""
    file = compiled(weft.jit.CompilationUnit(source).every, tmp_path)
    x = weft.ones(2)
    args = (True, 3, 2, "é", [1, 2], {"k": [x]}, None)
    result = file.call("forward", *args)
    assert result[:4] == (True, 3, 2.0, "é") and type(result[2]) is float
    assert result[4] == [1, 2] and weft.equal(result[5]["k"][0], x)
    assert result[6:] == (None, (1, 2.0), 3 + 2j, weft.float32)


def test_objects_exceptions_and_loops(tmp_path) -> None:
    source = """
def steps(n: int, limit: int) -> int:
    total = 0
    for i in range(n):
        total += i
        if total > limit:
            raise ValueError("limit")
    return total
"""
    file = compiled(weft.jit.CompilationUnit(source).steps, tmp_path)
    assert file.call("forward", 5, 100) == 10
    with pytest.raises(ValueError, match="limit"):
        file.call("forward", 100, 100)


def test_traced_modules(tmp_path) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    traced = weft.jit.trace(net, weft.ones(2, 3))
    file = compiled(traced, tmp_path)
    x = weft.randn(4, 3)
    assert weft.equal(file.call("forward", x), traced(x))
    assert list(file.parameters()) == ["0.weight", "0.bias"]


def test_frozen_modules_hold_constants(tmp_path) -> None:
    frozen = weft.jit.freeze(weft.jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()))
    file = compiled(frozen, tmp_path)
    x = weft.randn(4, 3)
    assert weft.equal(file.call("forward", x), frozen(x))
    assert file.parameters() == {}


def test_refused(tmp_path) -> None:
    @weft.jit.ignore
    def python(x: weft.Tensor) -> weft.Tensor:
        return x

    def calls(x: weft.Tensor) -> weft.Tensor:
        return python(x)

    with pytest.raises(NotImplementedError, match=r"without Python, got calls of .*python"):
        weft.jit.aot_compile(weft.jit.script(calls), tmp_path / "a")
    with pytest.raises(TypeError, match="expected a compiled module or function, got Linear"):
        weft.jit.aot_compile(nn.Linear(2, 2), tmp_path / "a")
    file = compiled(weft.jit.script(nn.Linear(2, 2)), tmp_path)
    for args, kwargs, message in (
        ((), {}, "expected a value for argument 'input', got none"),
        ((1,), {}, "expected argument 'input' of type Tensor, got int"),
        ((weft.ones(2), 1), {}, "expected arguments of the method"),
        ((weft.ones(2),), {"other": 1}, "expected arguments of the method"),
    ):
        with pytest.raises(TypeError, match=message):
            file.call("forward", *args, **kwargs)
    with pytest.raises(KeyError, match="expected a method of the module, got 'nothing'"):
        file.call("nothing")


# Damaged files ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("aot") / "net.weft"
    weft.jit.aot_compile(weft.jit.script(Net()), path)
    return path.read_bytes()


def load_bytes(data: bytes, folder: pathlib.Path) -> Any:
    path = folder / "damaged.weft"
    path.write_bytes(data)
    return _C.CompiledModule(str(path))


@pytest.mark.parametrize("size", [0, 1, 21, 22, 100, 1000, 5000])
def test_files_cut_short_are_refused(size: int, image: bytes, tmp_path) -> None:
    with pytest.raises((RuntimeError, ValueError), match="expected"):
        load_bytes(image[:size], tmp_path)


def test_a_newer_version_is_refused(image: bytes, tmp_path) -> None:
    at = image.index(b"weft/version") + len(b"weft/version")
    at = image.index(b"1", image.index(b"Z", at))
    with pytest.raises(RuntimeError, match="compiled file of version 1, got '7'"):
        load_bytes(image[:at] + b"7" + image[at + 1 :], tmp_path)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_no_damage_crashes(
    tmp_path_factory, image: bytes, changes: list[tuple[float, int]]
) -> None:
    """A file that loads also runs, or says why not."""
    data = bytearray(image)
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    folder = tmp_path_factory.mktemp("damaged")
    try:
        file = load_bytes(bytes(data), folder)
        for method in file.methods:
            file.call(method, weft.ones(2, 4))
        file.parameters()
        file.train(False)
    except (RuntimeError, ValueError, TypeError, LookupError, NotImplementedError, ArithmeticError):
        pass
