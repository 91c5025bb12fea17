"""Compiled files: written by aot_compile, run by what C and C++ programs run them by."""

from __future__ import annotations

import ast
import enum
import os
import pathlib
import subprocess
import sys
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import _C, Tensor, nn
from weft._command.main import main
from weft._kernels.target import is_x86
from weft.jit.native import compiler


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


def compiled_archive(folder: pathlib.Path) -> tuple[Any, pathlib.Path]:
    """A program, and its archive that libweft reads too."""
    weft.manual_seed(1)
    script = weft.jit.script(Net().eval())
    path = folder / "program.pt"
    weft.jit.aot_compile(script, path, examples=[(weft.ones(2, 4),)], archive=True)
    return script, path


def test_an_archive_with_a_compiled_program(tmp_path) -> None:
    script, path = compiled_archive(tmp_path)
    x = weft.randn(5, 4)
    file, loaded = _C.CompiledModule(str(path)), weft.jit.load(path)
    for found in (file.call("forward", x), loaded(x)):
        assert weft.equal(found, script(x))
    assert weft.equal(dict(file.parameters())["first.weight"], loaded.first.weight)
    with zipfile.ZipFile(path) as archive:
        names = [name.partition("/")[2] for name in archive.namelist()]
        data = [archive.read(f"program/{name}") for name in names if name.startswith("data/")]
    assert {"data.pkl", "weft/inference", "weft/tensors"} <= set(names)
    assert data.count(script.first.weight.detach().numpy().tobytes()) == 1  # both share it
    assert len(names) == len(set(names))


@pytest.mark.parity
def test_torch_loads_an_archive_with_a_compiled_program(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    script, path = compiled_archive(tmp_path)
    x = weft.randn(5, 4)
    found = torch.jit.load(path)(torch.from_numpy(x.numpy()))
    assert weft.allclose(weft.from_numpy(found.detach().numpy()), script(x), atol=1e-6)


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


def test_gradients_that_the_program_starts(tmp_path) -> None:
    """Forces: autograd.grad inside forward, of an argument that requires no gradient."""
    source = """
def forces(x: Tensor):
    x = x.detach().requires_grad_()
    energy = (torch.sin(x) * x).sum()
    grads = torch.autograd.grad([energy], [x])
    force = grads[0]
    assert force is not None
    return -force
"""
    forces = weft.jit.CompilationUnit(source).forces
    file = compiled(forces, tmp_path)
    x = weft.randn(7)
    assert weft.equal(file.call("forward", x), forces(x))
    weft.testing.assert_close(file.call("forward", x), -(weft.cos(x) * x + weft.sin(x)))


class Forces(nn.Module):
    """An energy with parameters, and its gradient by the positions."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        energy = (self.layer(x).sigmoid() * 2 + 1).tanh().sum()
        slope = weft.autograd.grad([energy], [x])[0]
        assert slope is not None
        return energy, -slope


def test_gradients_that_the_program_starts_in_examples(tmp_path, capsys) -> None:
    """There is no call of it without gradients."""
    module, x = weft.jit.script(Forces()), weft.randn(2, 3)
    weft.jit.aot_compile(module, tmp_path / "f.weft", examples=[(x,)])
    file = _C.CompiledModule(str(tmp_path / "f.weft"))
    assert all(map(weft.equal, file.call("forward", x), module(x)))
    assert all(each.requires_grad for each in file.parameters().values())
    np.save(tmp_path / "x.npy", x.numpy())
    outputs = [str(tmp_path / name) for name in ("e.npy", "f.npy")]
    words = [word for path in outputs for word in ("--output", path)]
    words += ["--profile", "3"]
    assert main(["exec", str(tmp_path / "f.weft"), "--input", str(tmp_path / "x.npy"), *words]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["forward", "3"] in [row[:1] + row[6:] for row in table]
    assert ["aten::linear", "3", "[[2,", "3],", "[4,"] in [row[:1] + row[6:10] for row in table]
    for path, expected in zip(outputs, module(x)):
        np.testing.assert_array_equal(np.load(path), expected.detach().numpy())


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Word(str, enum.Enum):
    YES = "yes"


class Levels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.level, self.word, self.maybe = Level.HIGH, Word.YES, [Level.LOW]

    def forward(self, x: Tensor) -> tuple[Tensor, str, bool]:
        y = x * self.level.value + self.maybe[0].value
        return y, self.word.value + self.level.name, self.word == Word.YES


def test_members_of_enumerations_that_are_numbers_or_strings(tmp_path) -> None:
    script, x = weft.jit.script(Levels()), weft.ones(2)
    y, name, same = compiled(script, tmp_path).call("forward", x)
    assert weft.equal(y, x * 6) and name == "yesHIGH" and same


class Turned(nn.Module):
    """A complex result, of a value that `spoil` changes behind what needs it."""

    def __init__(self, spoil: bool) -> None:
        super().__init__()
        self.angle, self.spoil = nn.Parameter(weft.ones(3)), spoil

    def forward(self, x: Tensor) -> Tensor:
        turn = self.angle.exp()
        y = x * turn
        if self.spoil:
            turn.add_(1)
        return weft.complex(y, turn)


def test_examples_without_a_backward_pass_are_told(tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in (Turned(False), Forces()):
            shape = (3,) if isinstance(module, Turned) else (2, 3)
            weft.jit.aot_compile(
                weft.jit.script(module), tmp_path / "m.weft", examples=[(weft.ones(shape),)]
            )
    script = weft.jit.script(Turned(True))
    with pytest.warns(UserWarning, match="expected examples whose results have gradients, got: "):
        weft.jit.aot_compile(script, tmp_path / "m.weft", examples=[(weft.ones(3),)])
    assert weft.equal(
        compiled(script, tmp_path).call("forward", weft.ones(3)), script(weft.ones(3))
    )


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(weft.full((8,), 0.5))

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return weft.sigmoid(x * self.scale + 1) * weft.tanh(x - 2) + x * 0.5


WITH_CODE = """
import sys, weft
from weft import _C
_C._fused_compile_after(None)
file = _C.CompiledModule(sys.argv[1])
x = weft.linspace(-3, 3, 64).view(8, 8)
results = []
for _ in range(3):
    with weft.no_grad():
        results.append(file.call("forward", x))
    results.append(file.call("forward", x))
results[-1].sum().backward()
results.append(file.parameters()["scale"].grad)
print([r.flatten().tolist() for r in results])
"""


def outcome(path: pathlib.Path, **variables: str) -> list[list[float]]:
    done = subprocess.run(
        [sys.executable, "-c", WITH_CODE, str(path)],
        capture_output=True, text=True, env={**os.environ, "WEFT_JIT_NATIVE": "0", **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


@pytest.mark.skipif(not compiler.available(), reason="no llvmlite")
def test_machine_code_gives_the_bits_of_tile_steps(tmp_path) -> None:
    plain, native = tmp_path / "plain.weft", tmp_path / "native.weft"
    script = weft.jit.script(Chain())
    weft.jit.aot_compile(script, plain)
    targets = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
    weft.jit.aot_compile(script, native, examples=[(weft.ones(8, 8),)], targets=targets)
    names = zipfile.ZipFile(native).namelist()
    assert {"archive/weft/x86-64", "archive/weft/aarch64"} < set(names)
    assert outcome(native) == outcome(plain)
    low = outcome(native, WEFT_ISA="v2")
    assert low == outcome(plain, WEFT_ISA="v2")
    for found, wanted in zip(low, outcome(native), strict=True):  # the bounds of docs/deploy.md
        weft.testing.assert_close(weft.tensor(found), weft.tensor(wanted), rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(not compiler.available(), reason="no llvmlite")
def test_machine_code_of_a_lower_level_is_within_rounding_of_tile_steps(tmp_path) -> None:
    plain, native = tmp_path / "plain.weft", tmp_path / "native.weft"
    script = weft.jit.script(Chain())
    weft.jit.aot_compile(script, plain)
    examples = [(weft.ones(8, 8),)]
    weft.jit.aot_compile(script, native, examples=examples, targets=["x86-64-v2"])
    for found, wanted in zip(outcome(native), outcome(plain), strict=True):
        weft.testing.assert_close(weft.tensor(found), weft.tensor(wanted), rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(not compiler.available(), reason="no llvmlite")
def test_damaged_machine_code_is_refused(tmp_path) -> None:
    path = tmp_path / "net.weft"
    weft.jit.aot_compile(
        weft.jit.script(Chain()), path, examples=[(weft.ones(8, 8),)], targets=["x86-64-v2"]
    )
    data = bytearray(path.read_bytes())
    data[data.index(b"WFTNATIV") + 200] ^= 1
    if is_x86():
        with pytest.raises(ValueError, match="expected the code that the digest is of"):
            load_bytes(bytes(data), tmp_path)


def test_unknown_targets(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"expected targets among x86-64-v2, .*, got 'riscv'"):
        weft.jit.aot_compile(weft.jit.script(Chain()), tmp_path / "a", targets=["riscv"])


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


def test_archives_without_a_program_are_refused(tmp_path) -> None:
    weft.jit.script(Net()).save(tmp_path / "net.pt")
    with pytest.raises(
        RuntimeError, match="got an archive without a program; `weft compile` makes"
    ):
        _C.CompiledModule(str(tmp_path / "net.pt"))


def test_a_newer_version_is_refused(image: bytes, tmp_path) -> None:
    at = image.index(b"weft/version") + len(b"weft/version")
    at = image.index(b"1", image.index(b"Z", at))
    with pytest.raises(RuntimeError, match="compiled file of version 1 to 3, got '7'"):
        load_bytes(image[:at] + b"7" + image[at + 1 :], tmp_path)


def test_an_archive_with_a_newer_program_loads_in_python(tmp_path) -> None:
    script, path = compiled_archive(tmp_path)
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    records["program/weft/version"] = b"9"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    with pytest.raises(RuntimeError, match="compiled file of version 1 to 3, got '9'"):
        _C.CompiledModule(str(path))
    assert weft.equal(weft.jit.load(path)(weft.ones(2, 4)), script(weft.ones(2, 4)))


class Endless(nn.Module):
    """With methods whose names are as long as those of what loading runs."""

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return x

    @weft.jit.export
    def countless(self) -> int:
        n = 0
        while n >= 0:
            n = (n + 1) % 7
        return n


class Calling(nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return x

    @weft.jit.export
    def countless(self) -> weft.Tensor:
        return weft.ones(3)


def renamed(path: pathlib.Path, old: bytes, new: bytes) -> None:
    """Exchanges two names of functions of a compiled file."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            parts = [part.replace(new, old) for part in data.split(old)]
            archive.writestr(name, new.join(parts) if name.endswith("inference") else data)


@pytest.mark.parametrize("module", [Endless, Calling])
@pytest.mark.parametrize("function", [b"__state__", b"__train__"])
def test_loading_runs_no_loops_and_no_calls(module: Any, function: bytes, tmp_path) -> None:
    path = tmp_path / "net.weft"
    weft.jit.aot_compile(weft.jit.script(module()), path)
    renamed(path, b"countless", function)
    name = function.decode()
    with pytest.raises(RuntimeError, match=f"expected {name} without loops and calls, got some"):
        _C.CompiledModule(str(path))


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
