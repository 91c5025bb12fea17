"""Writing TorchScript archives: what is written, and that it is the same program when it is loaded, by weft and by
PyTorch (parity)."""

from __future__ import annotations

import copy
import enum
import io
import warnings
import zipfile
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from tests.jit import test_corpus as corpus
from tests.jit import test_language as language
from tests.jit.archive_writer import archive

import weft
from weft import Tensor, jit, nn
from weft.jit import schemas
from weft.jit.archive import foreign
from weft.jit.archive.canonical import canonical
from weft.jit.archive.classes import Definitions
from weft.jit.archive.code import ArchiveCode
from weft.jit.archive.code_text import code_of
from weft.jit.execution import LOCK
from weft.jit.frontend import compile_function
from weft.jit.module_methods import compiled_method
from weft.serialization.source import open_source
from weft.serialization.zip_reader import ZipReader


def records(data: bytes) -> dict[str, bytes]:
    """The records of an archive by name, without its folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def code(data: bytes) -> dict[str, str]:
    """The files of code of an archive."""
    return {name: text.decode() for name, text in records(data).items() if name.endswith(".py")}


def written(data: bytes) -> dict[str, bytes]:
    """The files of code of an archive, and the tables of where their lines came from."""
    ends = (".py", ".debug_pkl")
    return {name: held for name, held in records(data).items() if name.endswith(ends)}


def loaded(data: bytes):
    """The program of an archive."""
    return jit.load(io.BytesIO(data))


def in_torch(data: bytes):
    """The program of an archive as PyTorch loads it."""
    import torch

    return torch.jit.load(io.BytesIO(data))


# Cases of the corpus that PyTorch has no operators for.
NOT_SAVED = {"grid decoder": "round(x, digits)"}

# What is written ----------------------------------------------------------------------------------


class Net(nn.Module):
    size: Final[int]

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.register_buffer("count", weft.zeros(1))
        self.size = 3

    def forward(self, x: Tensor, n: int = 2) -> Tensor:
        y = self.linear(x).relu()
        for i in range(n):
            if i == 5:
                break
            y = y + i
        return y.to(weft.float64)


NET = """\
class Net(Module):
  __parameters__ = []
  __buffers__ = ["count", ]
  linear : __torch__.torch.nn.modules.linear.Linear
  count : Tensor
  training : bool
  size : Final[int] = 3
  def forward(self: __torch__.HERE.Net,
      x: Tensor,
      n: int=2) -> Tensor:
    _0 = self.linear
    _1 = (_0).forward(x, )
    y = torch.relu(_1)
    _2 = torch.gt(n, 0)
    y0 = y
    i = 0
    _3 = _2
    while _3:
      _4 = torch.eq(i, 5)
      if _4:
        y1, break0 = y0, True
      else:
        y2 = torch.add(y0, i)
        y1, break0 = y2, False
      if break0:
        _5 = False
      else:
        _5 = True
      _6 = torch.add(i, 1)
      _7 = torch.lt(_6, n)
      _8 = torch.__and__(_7, _5)
      _3, y0, i = _8, y1, _6
    _9 = torch.to(y0, 7)
    return _9
"""
LINEAR = """\
class Linear(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
  training : bool
  in_features : Final[int] = 2
  out_features : Final[int] = 3
  def forward(self: __torch__.torch.nn.modules.linear.Linear,
      input: Tensor) -> Tensor:
    _0 = self.weight
    _1 = self.bias
    _2 = torch.linear(input, _0, _1)
    return _2
"""


def test_the_code_of_a_module():
    data = jit.script(Net()).save_to_buffer()
    assert code(data) == {
        f"code/__torch__/{__name__.replace('.', '/')}.py": NET.replace("HERE", __name__),
        "code/__torch__/torch/nn/modules/linear.py": LINEAR,
    }


def test_the_records_of_an_archive(tmp_path):
    path = tmp_path / "net.pt"
    jit.save(jit.script(Net()), path, {"notes/a.txt": "text", "b": b"bytes"})
    data = path.read_bytes()
    found = records(data)
    assert found["extra/notes/a.txt"] == b"text" and found["extra/b"] == b"bytes"
    assert found["version"] == b"3\n" and found["byteorder"] == b"little"
    assert len(found[".data/serialization_id"]) == 40 and len(found["data/0"]) == 24
    with zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            assert each.filename.startswith("net/")
            start = each.header_offset
            name, extra = data[start + 26 : start + 30 : 2], data[start + 28]
            begin = start + 30 + name[0] + extra
            assert begin % 64 == 0, each.filename
            packed = each.filename.endswith((".py", ".debug_pkl"))
            assert each.compress_type == (zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED)
    extra = {"notes/a.txt": "", "b": ""}
    jit.load(path, _extra_files=extra)
    assert extra == {"notes/a.txt": b"text", "b": b"bytes"}


def test_further_records_are_passed_over():
    file = io.BytesIO()
    jit.save(jit.script(Net()), file, _records=lambda storages: {"weft/program": b"program"})
    assert records(file.getvalue())["weft/program"] == b"program"
    assert loaded(file.getvalue())(weft.ones(1, 2)).shape == (1, 3)


def test_a_file_that_fails_to_be_written_stays(tmp_path):
    path = tmp_path / "f.pt"
    path.write_bytes(b"before")
    with pytest.raises(RuntimeError, match="which calls itself"):
        jit.script(recursive).save(path)
    assert path.read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 1


def recursive(n: int) -> int:
    return 1 if n < 1 else recursive(n - 1) + 1


TEXTS = ["", "é 日本 \U0001f600", "\"'\\", "\t\n\r\a\0\x1f\x7f", "{} %s \\n", "a" * 300]


def texts(torch: Any, load: Any) -> None:
    """Texts come back, as constants, defaults and attributes."""

    class Texts(nn.Module):
        def __init__(self):
            super().__init__()
            self.texts = list(TEXTS)

        def forward(self, x: Tensor, last: str = TEXTS[3]) -> list[str]:
            return [*self.texts, last, "\"'\\\t\n\r\a\0é"]

    program = load(jit.script(Texts()).save_to_buffer())
    assert program(torch.ones(1)) == [*TEXTS, TEXTS[3], "\"'\\\t\n\r\a\0é"]


def test_texts():
    texts(weft, loaded)


@pytest.mark.parity
def test_texts_in_torch():
    texts(pytest.importorskip("torch"), in_torch)


VERSIONS = {
    "x + 1": 3,
    "x / 2": 4,
    "weft.full([2], 1.0)": 5,
    "weft.linspace(0, 1, 3)": 8,
    "weft.nn.functional.gelu(x)": 10,
    "weft.nn.functional.gelu(x) / 2": 10,
}


@pytest.mark.parametrize("text", VERSIONS)
def test_the_version_is_that_of_the_operators(text):
    unit = jit.CompilationUnit(f"def f(x): return {text}")
    assert records(unit.f.save_to_buffer())["version"] == f"{VERSIONS[text]}\n".encode()


def test_the_same_program_gives_the_same_bytes():
    first, second = jit.script(Net()), jit.script(Net())
    second.load_state_dict(first.state_dict())
    assert first.save_to_buffer() == second.save_to_buffer() == first.save_to_buffer()


class Texts(nn.Module):
    def __init__(self, text: str):
        super().__init__()
        self.texts = ["weight", text]

    def forward(self, x: Tensor) -> Tensor:
        return x * len(self.texts)


def test_equal_texts_are_one_in_pickles():
    """Whether a text is the very object of another depends on where both came from."""
    copied = "".join(["wei", "ght"])
    first, second = (jit.script(Texts(text)).save_to_buffer() for text in ("weight", copied))
    assert first == second == loaded(first).save_to_buffer()


class Single(nn.Module):
    """Tensors without dimensions beside whole numbers, which they decide the dtype of."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("wide", weft.tensor(2.5, dtype=weft.float64))
        self.register_buffer("narrow", weft.tensor(1.5, dtype=weft.float16))
        self.register_buffer("byte", weft.tensor(3, dtype=weft.uint8))

    def forward(self, n: Tensor) -> list[Tensor]:
        twice = [weft.add(n, self.wide, alpha=2), weft.sub(n, self.wide, alpha=-2)]
        wide = [n + self.wide, n - self.wide, n * self.wide, n / self.wide, self.wide - n]
        return [*twice, *wide, n + self.narrow, n - self.narrow, n - self.byte, n * self.byte]


def test_frozen_constants_without_dimensions_stay_tensors():
    """Neither library's reader takes them for the numbers that stand so in traces."""
    n, frozen = weft.tensor([1, 2], dtype=weft.int16), jit.freeze(jit.script(Single().eval()))
    expected = Single()(n)
    data = frozen.save_to_buffer()
    for program in (frozen, loaded(data), loaded(loaded(data).save_to_buffer())):
        for found, wanted in zip(program(n), expected, strict=True):
            assert found.dtype is wanted.dtype and weft.equal(found, wanted)
    assert written(loaded(data).save_to_buffer()) == written(data)


@pytest.mark.parity
def test_frozen_constants_without_dimensions_stay_tensors_in_torch():
    torch = pytest.importorskip("torch")
    frozen = jit.freeze(jit.script(Single().eval()))
    theirs, expected = in_torch(frozen.save_to_buffer()), frozen(weft.tensor([1, 2]))
    for _ in range(3):  # it optimises after some calls
        for found, wanted in zip(theirs(torch.tensor([1, 2])), expected, strict=True):
            assert str(found.dtype) == str(wanted.dtype).replace("weft", "torch")
            assert found.tolist() == wanted.tolist()


class Lists(nn.Module):
    """Lists that become constants, and a test of what a call was given."""

    def __init__(self) -> None:
        super().__init__()
        self.levels, self.pairs = [0.25, 0.5], [("a", [1, 2]), ("b", [3])]

    def total(self, x: Tensor | list[Tensor] | int) -> Tensor:
        if isinstance(x, int):
            return weft.full((2,), float(x))
        return x.exp() if isinstance(x, Tensor) else weft.stack(x).sum(0)

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, list[float], list[tuple[str, list[int]]]]:
        y = weft.tensor(self.levels) + self.total(x) + self.total([x, x]) + self.total(n)
        for level in self.levels:  # early exits make it a loop with a condition
            if level > 0.4:
                break
            y = y + level
        work = weft.jit.fork(self.total, n)
        return y + weft.jit.wait(work), self.levels, self.pairs


def lists(torch: Any, load: Any) -> None:
    frozen = jit.freeze(jit.script(Lists().eval()))
    data, x = frozen.save_to_buffer(), weft.tensor([0.5, -1.0])
    assert "isinstance" not in "".join(code(data).values())
    assert written(loaded(data).save_to_buffer()) == written(data)
    y, *others = load(data)(torch.tensor(x.tolist()), 2)
    expected, *wanted = Lists()(x, 2)
    assert others == wanted
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-5)


def test_lists_of_frozen_programs():
    lists(weft, loaded)


@pytest.mark.parity
def test_lists_of_frozen_programs_in_torch():
    lists(pytest.importorskip("torch"), in_torch)


class Zeros(nn.Module):
    """Differences that are zeros, whose signs stay."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("uint8", "int16", "float32"):
            for number in (0, 2):
                held = weft.tensor(number, dtype=getattr(weft, name))
                self.register_buffer(f"{name}_{number}", held)
        self.register_buffer("negative", weft.tensor(-0.0))

    def forward(self, x: Tensor) -> list[Tensor]:
        bytes = [x - self.uint8_0, x - self.uint8_2, weft.sub(x, self.uint8_2, alpha=0)]
        shorts = [x - self.int16_0, x - self.int16_2, weft.sub(x, self.int16_2, alpha=0)]
        floats = [x - self.float32_0, x - self.float32_2, weft.sub(x, self.float32_2, alpha=0)]
        sums = [x + self.negative, x + self.int16_0, x + self.uint8_0]
        scaled = [weft.add(x, self.float32_2, alpha=-0.0), weft.sub(x, self.int16_2, alpha=-1)]
        others = [x * self.negative, x / self.int16_2, x - self.negative]
        return bytes + shorts + floats + sums + scaled + others


def test_zeros_of_frozen_programs_keep_their_signs():
    x, frozen = weft.tensor([0.0, -0.0, 2.0, -2.0]), jit.freeze(jit.script(Zeros().eval()))
    data, expected = frozen.save_to_buffer(), Zeros()(x)
    for program in (frozen, loaded(data), loaded(loaded(data).save_to_buffer())):
        for index, (found, wanted) in enumerate(zip(program(x), expected, strict=True)):
            assert found.dtype is wanted.dtype and weft.equal(1 / found, 1 / wanted), index
    assert written(loaded(data).save_to_buffer()) == written(data)


@pytest.mark.parity
def test_zeros_of_frozen_programs_keep_their_signs_in_torch():
    torch = pytest.importorskip("torch")
    x, frozen = weft.tensor([0.0, -0.0, 2.0, -2.0]), jit.freeze(jit.script(Zeros().eval()))
    theirs, expected = in_torch(frozen.save_to_buffer()), Zeros()(x)[:-1]  # 0.0 is one with -0.0
    for _ in range(3):  # it optimises after some calls
        for found, wanted in zip(theirs(torch.from_numpy(x.numpy())), expected):
            assert (1 / found).tolist() == (1 / wanted).tolist()


def test_what_is_not_compiled_is_refused(tmp_path):
    with pytest.raises(TypeError, match="expected a compiled module or function, got Net"):
        jit.save(Net(), tmp_path / "net.pt")
    with pytest.raises(TypeError, match="expected a path or a writable file, got int"):
        jit.save(jit.script(Net()), 3)
    assert not list(tmp_path.iterdir())


# What is the same afterwards ----------------------------------------------------------------------


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Pair(NamedTuple):
    first: int
    second: Tensor


class Options(NamedTuple):
    width: int
    name: str = "base"
    scale: float | None = None


class Configured(nn.Module):
    maybe: Options | None
    each: dict[str, list[Options]]
    nested: tuple[Options, int]

    def __init__(self) -> None:
        super().__init__()
        self.options = Options(4, "tiny", 0.5)
        self.maybe, self.nested = Options(2), (Options(3), 1)
        self.each = {"a": [Options(5), Options(6, scale=2.0)]}

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        maybe, scale = self.maybe, self.each["a"][1].scale
        assert maybe is not None and scale is not None
        return x * self.options.width * maybe.width * scale, self.options.name + self.nested[0].name


def test_named_tuples_that_a_module_holds():
    data = jit.script(Configured()).save_to_buffer()
    again = loaded(data)
    assert again.options.name == "tiny" and again.nested[0].width == 3
    assert again.maybe.scale is None and again.each["a"][1].scale == 2.0
    assert again(weft.ones(1))[0] == 16 and again.save_to_buffer() == data


@pytest.mark.parity
def test_named_tuples_that_a_module_holds_in_torch():
    torch = pytest.importorskip("torch")
    theirs = in_torch(jit.script(Configured()).save_to_buffer())
    y, name = theirs(torch.ones(1))
    assert y == 16 and name == "tinybase"


class Box:
    def __init__(self, n: int):
        self.n = n
        self.names: list[str] = []

    def bump(self, by: int = 1) -> int:
        self.n += by
        self.names.append(f"box {self.n}")
        return self.n


@jit.interface
class Act(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Everything(nn.Module):
    act: Act
    sizes: Final[list[int]]

    def __init__(self):
        super().__init__()
        self.act = Double()
        self.layers = nn.ModuleList([nn.Linear(2, 2, bias=False), nn.Linear(2, 2)])
        self.layers[1].weight = self.layers[0].weight  # tied
        self.register_buffer("base", weft.arange(6.0))
        self.register_buffer("part", self.base[2:4])  # of the same storage
        self.register_buffer("nothing", None)
        self.color = Color.GREEN
        self.box = Box(3)
        self.again = self.box
        self.table: dict[str, list[int]] = {"a": [1], "b": []}
        self.pair = (1, ("x", None))
        self.maybe: int | None = None
        self.ratio = 0.5
        self.sizes = [1, 2]
        self.dtype = weft.float64
        self.device = weft.device("cpu")

    @jit.export
    def other(self, n: int = 3, text: str = "é\t\"\\'") -> tuple[str, Color]:
        return f"{text} {n}", Color.RED if n < 3 else self.color

    def forward(
        self, x: Tensor, pairs: list[Pair] | None = None
    ) -> tuple[Tensor, int, dict[str, int]]:
        for layer in self.layers:
            x = self.act(layer(x))
        if pairs is not None:
            for pair in pairs:
                x = x + pair.second * pair.first
        self.part.add_(1)
        if self.color == Color.GREEN:
            self.box.bump()
        self.table["a"].append(len(self.again.names))
        y = x.to(self.dtype) + self.base[3]
        return y, self.box.n, {k: len(v) for k, v in self.table.items()}


def test_all_kinds_of_definitions_and_attributes():
    module = jit.script(Everything())
    data = module.save_to_buffer()
    again = loaded(data)
    assert again.other() == ("é\t\"\\' 3", again.color) and module.other() == (
        again.other()[0],
        Color.GREEN,
    )
    assert again.color.name == "GREEN" and again.maybe is None and again.pair == (1, ("x", None))
    assert again.nothing is None and again.sizes == [1, 2] and again.table == {"a": [1], "b": []}
    assert again.layers[0].weight is again.layers[1].weight
    assert again.part.data_ptr() == again.base.data_ptr() + 8
    x = weft.ones(3, 2)
    for _ in range(2):
        expected, got = module(x), again(x)
        assert weft.equal(expected[0], got[0]) and expected[1:] == got[1:]
    assert again.box.n == 5 and again.again.names == ["box 4", "box 5"]
    assert written(again.save_to_buffer()) == written(data)


def raised(self, input: tuple[Tensor]) -> tuple[Tensor]:
    return (input[0] + 1,)


def doubled(self, input: tuple[Tensor], output: Tensor) -> Tensor:
    return output * 2


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Double()
        self.inner.register_forward_hook(doubled)
        self.register_forward_pre_hook(raised)
        self.register_forward_hook(doubled)
        self.register_forward_hook(doubled)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def test_hooks():
    data = jit.script(Hooked()).save_to_buffer()
    text = code(data)[f"code/{'/'.join(('__torch__', *__name__.split('.')))}.py"]
    assert '__forward_pre_hooks__ = ["raised", ]' in text
    assert '__forward_hooks__ = ["hook_0_doubled", "hook_1_doubled", ]' in text
    again = loaded(data)
    assert again(weft.ones(1)).item() == 32 and again.inner(weft.ones(1)).item() == 4
    for program in (again, jit.script(Hooked())):
        assert (
            program.forward(weft.ones(1)).item() == 4
            and program.inner.forward(weft.ones(1)).item() == 2
        )
        program.register_forward_hook(lambda module, given, result: result + 1)
        assert program(weft.ones(1)).item() == 33 and program.forward(weft.ones(1)).item() == 4
    assert written(again.save_to_buffer()) == written(data)


@pytest.mark.parity
def test_hooks_in_torch():
    torch = pytest.importorskip("torch")
    assert in_torch(jit.script(Hooked()).save_to_buffer())(torch.ones(1)).item() == 32


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = nn.ModuleDict({"in": nn.Linear(2, 2), "0": nn.ReLU()})
        self.register_buffer("lambda", weft.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.ways["0"](self.ways["in"](x)) + getattr(self, "lambda")


def test_members_whose_names_are_keywords():
    program = jit.script(Named())
    data = program.save_to_buffer()
    again = loaded(data)
    assert weft.equal(again(weft.ones(2)), program(weft.ones(2)))
    assert list(again.state_dict()) == list(program.state_dict())
    assert written(again.save_to_buffer()) == written(data)


@pytest.mark.parity
def test_members_whose_names_are_keywords_in_torch():
    torch = pytest.importorskip("torch")
    program = jit.script(Named())
    found = in_torch(program.save_to_buffer())(torch.ones(2))
    assert found.tolist() == pytest.approx(program(weft.ones(2)).tolist())


class Kept(nn.Module):
    def forward(self, x: Tensor, given: Any = None) -> list[int]:
        found = [1] if given is not None else [0]
        if given is None:
            found.append(2)
        return found


def test_objects_of_any_type_are_asked_whether_they_are_none():
    """PyTorch holds `is None` of such an object for False before the program runs."""
    data = jit.script(Kept()).save_to_buffer()
    for again in (loaded(data), loaded(loaded(data).save_to_buffer())):
        assert (again(weft.ones(1)), again(weft.ones(1), 3)) == ([0, 2], [1])


@pytest.mark.parity
def test_objects_of_any_type_are_asked_whether_they_are_none_in_torch():
    torch = pytest.importorskip("torch")
    again = in_torch(jit.script(Kept()).save_to_buffer())
    assert (again(torch.ones(1)), again(torch.ones(1), 3)) == ([0, 2], [1])


@pytest.mark.parity
def test_definitions_and_training_in_torch():
    torch = pytest.importorskip("torch")
    module = jit.script(Everything())
    again = in_torch(module.save_to_buffer())
    for _ in range(2):
        expected, got = module(weft.ones(3, 2)), again(torch.ones(3, 2))
        assert got[0].dtype == torch.float64 and got[1:] == expected[1:]
        assert expected[0].flatten().tolist() == pytest.approx(got[0].flatten().tolist())
    assert again.maybe is None and again.table == {"a": [1, 1, 2], "b": []}
    assert again.part.data_ptr() == again.base.data_ptr() + 8
    optimizer = torch.optim.SGD(again.parameters(), 0.1)
    before = [p.clone() for p in again.parameters()]
    again(torch.ones(3, 2))[0].sum().backward()
    optimizer.step()
    assert any(not torch.equal(a, b) for a, b in zip(before, again.parameters()))


def test_training_goes_on():
    module = jit.script(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)))
    again = loaded(module.save_to_buffer())
    assert list(again.state_dict()) == list(module.state_dict())
    assert all(p.requires_grad for p in again.parameters()) and again.training
    x = weft.randn(5, 3)
    for each in (module, again):
        weft.manual_seed(0)
        each(x).sum().backward()
    for one, other in zip(module.parameters(), again.parameters()):
        assert weft.equal(one.grad, other.grad)
    assert not loaded(module.eval().save_to_buffer()).training


class Bits(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("numbers", weft.arange(4, dtype=weft.int32))
        self.register_buffer("bits", self.numbers.view(weft.float32))

    def forward(self) -> list[Tensor]:
        return [self.numbers, self.bits]


def test_dtypes_over_one_storage():
    data = jit.script(Bits()).save_to_buffer()
    assert [each.tolist() for each in loaded(data)()] == [each.tolist() for each in Bits()()]
    assert data.count(b"_rebuild_tensor_v2") == 1 and b"UntypedStorage" not in data


def test_functions_are_modules_with_a_forward():
    unit = jit.CompilationUnit("def f(x, n: int = 2) -> Tensor:\n    return x * n")
    program = loaded(unit.f.save_to_buffer())
    assert program(weft.ones(2)).tolist() == [2, 2] and program(weft.ones(2), 3).tolist() == [3, 3]


def test_traces_and_frozen_modules():
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval()
    x = weft.randn(1, 2, 5, 5)
    traced = jit.trace(module, x)
    for program in (traced, jit.freeze(jit.script(module)), jit.freeze(traced)):
        data = program.save_to_buffer()
        again = loaded(data)
        assert weft.equal(again(x), program(x))
        assert written(again.save_to_buffer()) == written(data)


class Helped(nn.Module):
    """Methods that forward calls, one of them exported; a list of tensors."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    @jit.export
    def scaled(self, x: Tensor, by: float) -> Tensor:
        return self.lstm(x)[0] * by

    def halved(self, x: Tensor) -> Tensor:
        return self.scaled(x, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.halved(x)


@pytest.mark.parametrize("preserved", [[], ["scaled"]])
@pytest.mark.parametrize("from_archive", [False, True])
def test_frozen_modules_have_no_other_methods(from_archive, preserved, tmp_path):
    program, x = jit.script(Helped().eval()), weft.randn(2, 1, 3)
    if from_archive:
        program = loaded(program.save_to_buffer())
    frozen = jit.freeze(program, preserved)
    assert not frozen(x).requires_grad and not list(frozen.state_dict())
    again = loaded(frozen.save_to_buffer())
    jit.aot_compile(frozen, tmp_path / "frozen.weft")
    compiled = weft._C.CompiledModule(str(tmp_path / "frozen.weft"))
    assert set(compiled.methods) == {"forward", *preserved}
    for made in (again(x), compiled.call("forward", x)):
        assert weft.equal(made, program(x))
    for name in preserved:
        assert weft.equal(again.scaled(x, 2.0), program.scaled(x, 2.0)), name


class Forked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def part(self, x: Tensor, by: float) -> Tensor:
        return self.layer(x) * by

    def forward(self, x: Tensor) -> Tensor:
        future = jit.fork(self.part, x, 2.0)
        return jit.wait(future) + 1


def test_frozen_modules_fork_their_methods():
    program, x = jit.script(Forked().eval()), weft.randn(2, 3)
    again = loaded(jit.freeze(program).save_to_buffer())
    assert weft.equal(again(x), program(x))


class BothModes(nn.Module):
    def forward(self, x: Tensor, recorded: bool) -> Tensor:
        if recorded:
            with weft.enable_grad():
                y = x * x
        else:
            with weft.no_grad():
                y = x.sin()
        return y


def test_branches_that_begin_with_grad_modes():
    """Of a frozen program both begin with the mode: no mode that is known at run time."""
    program, x = jit.freeze(jit.script(BothModes().eval())), weft.ones(2, requires_grad=True)
    again = loaded(program.save_to_buffer())
    for recorded in (True, False):
        made, expected = again(x, recorded), program(x, recorded)
        assert weft.equal(made, expected) and made.requires_grad is recorded


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with weft.autocast("cpu", dtype=weft.float16):
            y = self.layer(x)
            with weft.autocast("cpu", enabled=False):
                z = self.layer(x)
        with weft.autocast(device_type="cpu"):
            return y, z, self.layer(x)


def mixed() -> dict[str, Any]:
    program = jit.script(Mixed().eval())
    traced = jit.trace(Mixed().eval(), (weft.randn(2, 4),))
    return {"scripted": program, "frozen": jit.freeze(program), "traced": traced}


@pytest.mark.parametrize("kind", ["scripted", "frozen", "traced"])
def test_autocast(kind):
    program, x = mixed()[kind], weft.randn(2, 4)
    data = program.save_to_buffer()
    again = loaded(data)
    assert all(map(weft.equal, again(x), program(x)))
    assert [each.dtype for each in again(x)] == [weft.float16, weft.float32, weft.bfloat16]
    assert written(again.save_to_buffer()) == written(data)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["scripted", "frozen", "traced"])
def test_autocast_in_torch(kind):
    torch = pytest.importorskip("torch")
    program, x = mixed()[kind], weft.randn(2, 4)
    theirs = in_torch(program.save_to_buffer())
    for _ in range(3):
        results = theirs(torch.from_numpy(x.numpy()))
        assert [each.dtype for each in results] == [torch.float16, torch.float32, torch.bfloat16]
        for made, expected in zip(results, program(x)):
            wanted = torch.from_numpy(expected.float().detach().numpy())
            torch.testing.assert_close(made.float(), wanted, rtol=1e-2, atol=1e-2)


class Switched(nn.Module):
    def __init__(self):
        super().__init__()
        self.on = True

    def forward(self, x: Tensor, device: str, on: bool) -> list[Tensor]:
        with weft.autocast(device, enabled=on, dtype=weft.float16):
            y = x @ x
            with weft.autocast(x.device.type, enabled=self.on):
                z = x @ x
        return [y, z]


def test_autocast_that_is_switched_when_the_program_runs():
    """PyTorch's code for it is the same; running it raises there."""
    program, x = jit.script(Switched()), weft.randn(2, 2)
    data = program.save_to_buffer()
    again = loaded(data)
    for device, on, kind in (
        ("cpu", True, weft.float16),
        ("cpu", False, weft.float32),
        ("cuda", True, weft.float32),
    ):
        for found in (program(x, device, on), again(x, device, on)):
            assert [each.dtype for each in found] == [kind, weft.bfloat16]
    assert written(again.save_to_buffer()) == written(data)


@pytest.mark.parity
def test_autocast_that_is_switched_when_the_program_runs_in_torch():
    torch = pytest.importorskip("torch")
    theirs = in_torch(jit.script(Switched()).save_to_buffer())
    assert ", 5, on, None, )" in theirs.code
    with pytest.raises(RuntimeError, match=r"Autocast .* argument must be a constant"):
        theirs(torch.ones(2, 2), "cpu", True)


class Lowered(nn.Module):
    def forward(self, x: Tensor, dtype: weft.dtype, on: bool) -> list[Tensor]:
        with weft.autocast("cpu", dtype=dtype):
            y = x @ x
            with weft.autocast("cpu", enabled=on):
                z = x @ x
        with weft.autocast("cuda", dtype=weft.float16):
            return [y, z, x @ x]


@pytest.mark.parametrize("frozen", [False, True])
def test_autocast_whose_dtype_the_program_is_given(frozen):
    program, x = jit.script(Lowered().eval()), weft.randn(2, 2)
    program = jit.freeze(program) if frozen else program
    data = program.save_to_buffer()
    again = loaded(data)
    for dtype in (weft.float16, weft.bfloat16):
        for on, inner in ((True, weft.bfloat16), (False, weft.float32)):
            for found in (program(x, dtype, on), again(x, dtype, on)):
                assert [each.dtype for each in found] == [dtype, inner, weft.float32]
    assert written(again.save_to_buffer()) == written(data)


class ToItsOwn(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        with weft.autocast("cpu", dtype=y.dtype):
            return x @ x


@pytest.mark.parity
@pytest.mark.parametrize("frozen", [False, True])
def test_autocast_whose_dtype_the_program_is_given_in_torch(frozen):
    """PyTorch takes bfloat16, as it does for its own program; what it saves means the dtype here."""
    torch = pytest.importorskip("torch")
    program = jit.script(ToItsOwn().eval())
    theirs = in_torch((jit.freeze(program) if frozen else program).save_to_buffer())
    assert theirs(torch.ones(2, 2), torch.ones(1).half()).dtype == torch.bfloat16
    file = io.BytesIO()
    torch.jit.save(theirs, file)
    assert loaded(file.getvalue())(weft.ones(2, 2), weft.ones(1).half()).dtype == weft.float16


class Chances(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy(x.sigmoid(), y)


def chances() -> dict[str, Any]:
    program = jit.script(Chances().eval())
    traced = jit.trace(Chances().eval(), (weft.rand(2), weft.rand(2)))
    return {"scripted": program, "frozen": jit.freeze(program), "traced": traced}


@pytest.mark.parametrize("kind", ["scripted", "frozen", "traced"])
def test_cross_entropy_of_chances(kind):
    """Its gradient is no function of Python's, which archives could not hold."""
    program, x, y = chances()[kind], weft.randn(4, requires_grad=True), weft.rand(4)
    data = program.save_to_buffer()
    again = loaded(data)
    (expected,), (found,) = (weft.autograd.grad(p(x, y), x) for p in (program, again))
    assert weft.equal(again(x, y), program(x, y)) and weft.equal(found, expected)
    assert written(again.save_to_buffer()) == written(data)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["scripted", "frozen", "traced"])
def test_cross_entropy_of_chances_in_torch(kind):
    torch = pytest.importorskip("torch")
    program, x, y = chances()[kind], weft.randn(4, requires_grad=True), weft.rand(4)
    theirs = torch.from_numpy(x.detach().numpy()).requires_grad_()
    loss = in_torch(program.save_to_buffer())(theirs, torch.from_numpy(y.numpy()))
    loss.backward()
    (expected,) = weft.autograd.grad(program(x, y), x)
    torch.testing.assert_close(theirs.grad, torch.from_numpy(expected.numpy()))


# Programs whose traces, or that frozen, call kernels that PyTorch has not.
OF_MATRICES = {
    "lu_factor": lambda x: weft.linalg.lu_factor(x),
    "lu_factor_ex": lambda x: weft.linalg.lu_factor_ex(x),
    "lu": lambda x: weft.linalg.lu(x),
    "solve_ex": lambda x: weft.linalg.solve_ex(x, x.mT),
    "ldl_factor": lambda x: weft.linalg.ldl_factor(x + x.mT),
    "ldl_factor_ex": lambda x: weft.linalg.ldl_factor_ex(x + x.mT),
    "ldl_solve": lambda x: weft.linalg.ldl_solve(*weft.linalg.ldl_factor(x + x.mT), x),
    "pinv": lambda x: weft.linalg.pinv(x),
    "pinv of low rank": lambda x: weft.linalg.pinv(x[:, :1] @ x[:1]),
    "multi_dot": lambda x: weft.linalg.multi_dot([x, x, x[0]]),
    "H": lambda x: x.H,
    "bessel": lambda x: weft.special.bessel_j0(x),
    "polynomial": lambda x: weft.special.hermite_polynomial_h(x, weft.tensor(3.0)),
    "constant tuples": lambda x: weft.fft.fft(x, 5),
    "igamma": lambda x: weft.igamma(weft.tensor(2.5), x.abs() + 0.1),
    "igammac": lambda x: weft.special.gammaincc(weft.tensor(2.5), x.abs() + 0.1),
    "count_nonzero": lambda x: (x.count_nonzero(0), x.count_nonzero(), x.count_nonzero([0, 1])),
}


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def of_matrices(name: str, frozen: bool) -> tuple[Any, Tensor]:
    x = weft.tensor([[2.0, 1, 0], [1, -3, 1], [0.5, 1, 4]])
    traced = jit.trace(Of(OF_MATRICES[name]).eval(), (x,))
    return (jit.freeze(traced) if frozen else traced), x


def tensors_of(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", OF_MATRICES)
def test_functions_of_matrices(name, frozen):
    program, x = of_matrices(name, frozen)
    data = program.save_to_buffer()
    again = loaded(data)
    for found, expected in zip(tensors_of(again(x)), tensors_of(program(x)), strict=True):
        assert found.dtype is expected.dtype and weft.allclose(found, expected, atol=1e-5)
    assert written(again.save_to_buffer()) == written(data)


@pytest.mark.parity
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", OF_MATRICES)
def test_functions_of_matrices_in_torch(name, frozen):
    torch = pytest.importorskip("torch")
    program, x = of_matrices(name, frozen)
    trains = not name.startswith(("ldl", "bessel", "polynomial", "count"))  # which have no gradient
    theirs = torch.from_numpy(x.numpy().copy()).requires_grad_(trains)
    mine = x.requires_grad_(trains)
    results = tensors_of(in_torch(program.save_to_buffer())(theirs)), tensors_of(program(mine))
    for found, expected in zip(*results, strict=True):
        wanted = torch.from_numpy(expected.detach().numpy())
        torch.testing.assert_close(found.detach(), wanted, atol=1e-4, rtol=1e-4)
    losses = [sum((r * r).sum().real for r in part if r.requires_grad) for part in results]
    if isinstance(losses[1], Tensor):
        (expected,) = weft.autograd.grad(losses[1], mine)
        (found,) = torch.autograd.grad(losses[0], theirs)
        torch.testing.assert_close(found, torch.from_numpy(expected.numpy()), atol=1e-3, rtol=1e-3)


class Spectra(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        whole, half = weft.fft.fft2(x), weft.fft.rfft(x, norm="ortho")
        return whole, half, weft.fft.ifft(whole, dim=0), weft.fft.irfft(half, n=5)


def test_frozen_spectra():
    """Freezing leaves kernels of transforms that PyTorch has not."""
    program, x = jit.freeze(jit.script(Spectra().eval())), weft.randn(4, 6)
    for made, expected in zip(loaded(program.save_to_buffer())(x), program(x)):
        assert weft.allclose(made, expected, atol=1e-5)


@pytest.mark.parity
def test_frozen_spectra_in_torch():
    torch = pytest.importorskip("torch")
    program, x = jit.freeze(jit.script(Spectra().eval())), weft.randn(4, 6)
    theirs = torch.jit.load(io.BytesIO(program.save_to_buffer()))
    for made, expected in zip(theirs(torch.from_numpy(x.numpy())), program(x)):
        torch.testing.assert_close(made, torch.from_numpy(expected.numpy()))


# Programs in the manner of real ones --------------------------------------------------------------


def check_corpus(family: str, name: str, load: Any, torch: Any = weft) -> bytes:
    """The archive of a case, loaded, gives what its program gives."""
    obj, inputs = corpus.prepare(family, name)
    data = jit.script(copy.deepcopy(obj)).save_to_buffer()
    again, program = load(data), jit.script(obj)
    expected = corpus.observe(program, program, copy.deepcopy(inputs), True, calls=1)[0]
    given = inputs if torch is weft else corpus.to_torch(inputs)
    got = corpus.observe(again, again, given, True, torch, calls=1)[0]
    if not corpus.is_module(obj):
        got.pop("state")
        got.pop("gradients")
    for part in expected:
        wanted = expected[part]
        found = {key: got[part][key] for key in wanted} if part == "state" else got[part]
        assert corpus.close(wanted, found), (part, wanted, found)
    return data


@pytest.mark.parametrize(("family", "name"), corpus.CASES)
def test_corpus(family, name):
    if name in NOT_SAVED:
        with pytest.raises(RuntimeError, match="save: expected a program that archives can hold"):
            jit.script(corpus.prepare(family, name)[0]).save_to_buffer()
        return
    data = check_corpus(family, name, loaded)
    assert written(loaded(data).save_to_buffer()) == written(data)


@pytest.mark.parity
@pytest.mark.parametrize(("family", "name"), [c for c in corpus.CASES if c[1] not in NOT_SAVED])
def test_corpus_in_torch(family, name):
    torch = pytest.importorskip("torch")
    # Without PyTorch's own formulas of gradients, which take no complex numbers.
    with warnings.catch_warnings(), torch.jit.optimized_execution(False):
        warnings.simplefilter("ignore")
        check_corpus(family, name, in_torch, torch)


# Programs over the whole language -----------------------------------------------------------------

# What archives do not hold, by a part of the error.
REFUSED = {
    "is_autocast_enabled beside autocast": ["ac_enabled_q"],
    "CallPython": ["ignore_unused", "ignore_fn_default"],
    "prim::write": ["print_sep", "print_end"],
    "aten::round.digits": ["abs_round", "beam_search"],
    "aten::format_spec": ["f_string", "gx_format", "string_tokenizer"],
    "a dict whose keys are": ["tuple_key", "enum_key", "dict_device_key"],
    "which calls itself": ["recursion_", "gx_method_recursion"],
    "which holds itself": ["class_opt_cond"],
    "aten::lt.t, aten::le.t": ["list_cmp", "list_compare"],
    "isinstance(..., dict)": ["any_list"],
}
# What is another call for a loaded program: its classes are its own, and dtypes are numbers.
OTHER_ARGUMENTS = {
    "enum_attr", "strenum_eq", "intenum_arith", "enums_as_any", "lists_of_enums_as_any", "enum_basic", "enum_return", "enum_dict",
    "device_dtype_args", "dtype_compare", "layouts",
}  # fmt: skip
# What the reader folds while it compiles.
FOLDED = {"str_minmax", "len_mod"}
# PyTorch does something else with the same code: formats of floats, division by 0, grad modes that it takes for
# common subexpressions, keys of dicts, products that autocast leaves, its arguments that are no constants, numbers of
# several types.
OTHERWISE_IN_TORCH = {
    "str_minmax", "iterables_reduced", "defaults", "int_div", "any_bool_as_int", "no_grad", "enable_grad_nested",
    "decorated_modes", "percent", "fmt_method", "format_named", "format_auto_after", "str_join_format",
    "tensors_as_texts", "str_everything", "dict_popitem_clear", "gx_dict_methods", "string_formats",
    "retained_gradients_of_what_was_read_already", "ac_const", "autocast_enabled", "ac_module",
    "items_of_several_types", "tensors_of_numbers_of_several_types",
}  # fmt: skip
PROGRAMS = [name for name, text in language.PROGRAMS.items() if not language.marks(text, "refused")]


def saved(space: Any) -> bytes | None:
    """The archive of a program; None where archives cannot hold it."""
    try:
        return jit.script(language.subject(space)).save_to_buffer()
    except RuntimeError as error:
        assert str(error).startswith("save: expected a program that archives can hold"), error
        return None


@pytest.mark.parametrize("name", [*PROGRAMS[::3], "jit_isinstance_tuple", "any_bool_as_int"])
def test_language(name, tmp_path):
    space = language.load(tmp_path, name, language.PROGRAMS[name])
    data = saved(space)
    if data is None:
        return
    assert name in FOLDED or written(loaded(data).save_to_buffer()) == written(data)
    again, program = loaded(data), jit.script(language.subject(space))
    for call in language.calls(language.PROGRAMS[name]) if name not in OTHER_ARGUMENTS else ():
        assert language.outcome(again, space, call) == language.outcome(program, space, call), call


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_language_in_torch(name, tmp_path):
    pytest.importorskip("torch")
    text = language.PROGRAMS[name]
    head = language.HEAD.replace("import weft as torch\n", "import torch\n").replace(
        "weft", "torch"
    )
    space = language.load(tmp_path, name, text)
    data = saved(space)
    if data is None:
        return
    again, program = in_torch(data), jit.script(language.subject(space))
    if name in OTHERWISE_IN_TORCH | OTHER_ARGUMENTS:
        return
    other = language.load(tmp_path, name, text, head)
    for call in language.calls(text):
        expected, got = (
            language.outcome(*pair, call)[0] for pair in ((program, space), (again, other))
        )
        assert language._agree(expected, got), (call, expected, got)


@pytest.mark.parametrize(
    ("part", "name"), [(part, n) for part, names in REFUSED.items() for n in names]
)
def test_programs_that_archives_cannot_hold(part, name, tmp_path):
    space = language.load(tmp_path, name, language.PROGRAMS[name])
    with pytest.raises(
        RuntimeError, match="save: expected a program that archives can hold"
    ) as error:
        jit.script(language.subject(space)).save_to_buffer()
    assert part in str(error.value)


def test_most_programs_are_saved(tmp_path):
    names = PROGRAMS[1::5]
    missing = [n for n in names if saved(language.load(tmp_path, n, language.PROGRAMS[n])) is None]
    assert len(missing) < len(names) / 8, missing


# The text of programs -----------------------------------------------------------------------------


def compiled_again(text: str, name: str) -> Any:
    """The function of the IR that a text of `.code` is compiled to."""
    with open_source(archive({"__torch__": text}, 0), "load") as source:
        definitions = Definitions(ArchiveCode(ZipReader(source)), [], 10)
    with LOCK:
        return compile_function(definitions.find(f"__torch__.{name}")).function


FUNCTIONS = [name for name in PROGRAMS if "class " not in language.PROGRAMS[name]]


@pytest.mark.parametrize("name", [*FUNCTIONS[::4], "int_arith", "any_list", "gx_bits"])
def test_code_is_compiled_to_the_same_graph(name, tmp_path):
    """Names of values aside, and as far as the dialect tells: numbers of dtypes are ints."""
    space = language.load(tmp_path, name, language.PROGRAMS[name])
    program = jit.script(language.subject(space))
    text = program.code
    if any(
        part in text for part in ("__torch__.", "CONSTANTS.", "fork(", "CallPython", "Autocast")
    ):
        return  # it has more parts than this text
    again = compiled_again(text, program.name)
    assert code_of(again) == text
    assert kinds(again.graph) == kinds(program.function.graph)


@pytest.mark.parametrize("name", [*PROGRAMS[1::6], "power_of_ints", "enum_basic"])
def test_code_that_calls_other_code_is_compiled_to_the_same_graph(name, tmp_path):
    """An archive has all parts of a program: functions, classes, constants."""
    space = language.load(tmp_path, name, language.PROGRAMS[name])
    program, data = jit.script(language.subject(space)), saved(space)
    if data is None or name in FOLDED or not isinstance(program, jit.ScriptFunction):
        return
    again = compiled_method(loaded(data)._jit_info, "forward").function
    assert kinds(again.graph, True) == kinds(program.function.graph, True)


def kinds(graph: Any, portable: bool = False) -> list[str]:
    """The operators of a graph, in the form that is printed. A text does not tell overloads, nor
    casts to a type that the value has by then."""
    walked = (node.name for node in canonical(graph, portable).walk())
    left_out = ("prim::Constant", "prim::Uninitialized", "prim::unchecked_cast")
    return [name for name in walked if name not in left_out]


# Operators ----------------------------------------------------------------------------------------

# Where weft's schema has another form and the calls that are written fit both.
OTHER_FORMS = {"Generator", "backward", "tolist", "format", "percentFormat"}


# What PyTorch takes by another overload; tests of parts stand for eq.t.
OTHER_OVERLOADS = {
    "aten::eq.dtype", "aten::ne.dtype", "aten::eq.t", "aten::ne.t", "aten::str.Device",
}  # fmt: skip


def shape_of(arguments: Any) -> list[tuple[str, bool, bool]]:
    """Names of arguments, which are by keyword only, and which have a default."""
    return [(a.name, a.kwarg_only, a.has_default) for a in arguments if a.name != "out"]


@pytest.mark.parity
def test_operators_are_those_of_torch():
    """What `foreign` says of operators: PyTorch has the others, with the same arguments."""
    torch = pytest.importorskip("torch")
    theirs: dict[str, dict[str, Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        theirs.setdefault(schema.name, {})[schema.overload_name] = schema
    wrong = []
    for kind in schemas.all_kinds():
        ours = schemas.of(kind)
        if foreign.is_absent(kind):
            found = theirs.get(ours.name, {}).get(ours.overload)
            wrong += [f"{kind} is there"] if found is not None else []
            continue
        if ours.name not in theirs:
            wrong += [] if kind in foreign.RENAMED else [f"{kind} is not there"]
            continue
        schema = theirs[ours.name].get(ours.overload)
        if schema is None and kind not in OTHER_OVERLOADS:
            wrong.append(f"{kind} is not there")
        if schema is None or any(arg.is_written and arg.kwarg_only for arg in ours.args):
            continue
        given = [(a.name, a.kwarg_only, a.has_default_value()) for a in schema.arguments]
        if ours.name.partition("::")[2] not in OTHER_FORMS and shape_of(ours.args) != given:
            wrong.append(f"{ours.text} is {schema}")
    assert not wrong, wrong


@jit.script
class Doubling:
    def __init__(self) -> None:
        self.by = 2

    def twice(self, x: Tensor) -> Tensor:
        return x * self.by


@jit.script
class Adding:
    def __init__(self, by: float) -> None:
        self.by = by

    def twice(self, x: Tensor) -> Tensor:
        return x + self.by


@jit.interface
class Twice:
    def twice(self, x: Tensor) -> Tensor:
        pass


class WithObject(nn.Module):
    held: Twice

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held

    def forward(self, x: Tensor) -> Tensor:
        return self.held.twice(x)


def test_objects_behind_interfaces():
    for held, expected in ((Doubling(), 6.0), (Adding(0.5), 3.5), (Adding(1.0), 4.0)):
        module = jit.script(WithObject(held))
        for each in (module, loaded(module.save_to_buffer())):
            assert each(weft.tensor(3.0)).item() == expected
