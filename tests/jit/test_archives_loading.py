"""What loading an archive does, and what it leaves for the first use."""

from __future__ import annotations

import enum
import io
import math
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.jit.archive_writer import ROOT, Object, archive, forward

import weft
from weft import Tensor, jit, nn
from weft.jit import FrontendError
from weft.jit.frontend.source import code as source
from weft.serialization import LoadError

TWO = """class M(Module):
  training : bool
  inner : __torch__.part.Part
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    inner = self.inner
    return (inner).forward(__torch__.tools.twice(x, ), )
  def other(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.sub(x, 1)
"""
PART = """class Part(Module):
  training : bool
  def forward(self: __torch__.part.Part,
    x: Tensor) -> Tensor:
    return torch.add(x, 1)
"""
TOOLS = "def twice(x: Tensor) -> Tensor:\n  return torch.mul(x, 2)\n"


def two(**code: str) -> io.BytesIO:
    files = {"__torch__": TWO, "__torch__.part": PART, "__torch__.tools": TOOLS}
    files |= {f"__torch__.{name}": text for name, text in code.items()}
    part = Object("__torch__.part.Part", {"training": False})
    return archive(files, Object("__torch__.M", {"training": False, "inner": part}))


def test_methods_are_compiled_when_they_are_asked_for():
    loaded = jit.load(two())
    assert loaded._jit_info.compiled == loaded.inner._jit_info.compiled == {}
    assert loaded(weft.ones(1)).item() == 3.0
    assert set(loaded._jit_info.compiled) == {"forward"}
    assert loaded.other(weft.ones(1)).item() == 0.0
    assert set(loaded._jit_info.compiled) == {"forward", "other"}


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.graph, lambda m: m.code, lambda m: m.forward.schema, jit.freeze,
        lambda m: m.save_to_buffer(), lambda m: m.inlined_graph,
    ],
)  # fmt: skip
def test_what_shows_a_program_compiles_it(use):
    loaded = jit.load(two())
    use(loaded)
    assert "forward" in loaded._jit_info.compiled


def test_operators_of_methods_that_were_not_compiled():
    names = ["aten::add.Scalar", "aten::mul.Scalar", "aten::sub.Scalar"]
    assert jit.export_opnames(jit.load(two())) == names


def test_each_file_is_parsed_once(monkeypatch):
    parsed = []
    parse = source.parse
    monkeypatch.setattr(
        source, "parse", lambda text, *a, **k: parsed.append(text) or parse(text, *a, **k)
    )
    loaded = jit.load(two())
    loaded(weft.ones(1))
    loaded.other(weft.ones(1))
    assert sorted(parsed) == sorted([TWO, PART, TOOLS])


def test_malformed_code_is_refused_before_it_is_needed():
    with pytest.raises(
        FrontendError, match=r"expected Python source, got [^\n]*\n.*code/__torch__/tools.py"
    ):
        jit.load(two(tools="def twice(x: Tensor -> Tensor:\n"))
    with pytest.raises(LoadError, match="expected definitions in"):
        jit.load(two(tools="import os\n"))
    with pytest.raises(LoadError, match=r"expected no attribute .?__globals__"):
        jit.load(two(tools="def twice(x: Tensor) -> Tensor:\n  return x.__globals__\n"))


def test_code_without_sense_is_refused_where_it_is_called():
    loaded = jit.load(archive(forward("torch.add(x, nothing)"), ROOT))
    for _ in range(2):
        with pytest.raises(FrontendError, match=r"nothing(.|\n)*code/__torch__.py"):
            loaded(weft.ones(1))


@pytest.mark.parametrize(
    ("start", "again"), [("(x, x)", "({0}, {0})"), ("[(x, x)]", "[({0}, {0})]")]
)
def test_types_that_double_from_line_to_line_are_refused(start, again):
    """Sixty lines name a type of 2**60 parts: the compiler would never end."""
    lines = [f"a0 = {start}", *(f"a{i + 1} = {again.format(f'a{i}')}" for i in range(60))]
    written = "".join(f"    {line}\n" for line in lines)
    code = forward("x")["__torch__"].replace("    return", f"{written}    return")
    with pytest.raises(FrontendError, match="tuples of at most 100000 parts, got one of"):
        jit.load(archive({"__torch__": code}, ROOT))(weft.ones(1))


SORTED = """class M(Module):
  training : bool
  def forward(self: __torch__.M) -> Tuple[List[int], List[Tensor], List[Tensor]]:
    ranks = [__torch__.rank(1), __torch__.rank(3), __torch__.rank(2)]
    torch.sort(ranks, True)
    empty = annotate(List[Tensor], [])
    torch.sort(empty)
    return ([(ranks[0]).place, (ranks[1]).place, (ranks[2]).place], empty, torch.list(empty))
class Rank:
  place : int
  def __init__(self: __torch__.Rank,
    place: int) -> NoneType:
    self.place = place
    return None
  def __lt__(self: __torch__.Rank,
    other: __torch__.Rank) -> bool:
    return torch.lt(self.place, other.place)
def rank(place: int) -> __torch__.Rank:
  made = __torch__.Rank.__new__(__torch__.Rank)
  _0 = (made).__init__(place, )
  return made
"""


def test_sorted_lists():
    loaded = jit.load(archive({"__torch__": SORTED}, ROOT))
    assert loaded() == ([3, 2, 1], [], [])


DEFAULTS = """class M(Module):
  training : bool
  def forward(self: __torch__.M,
    x: Tensor,
    kind: __torch__.Kind=__torch__.Kind.TWO,
    low: float=-inf,
    pair: Tuple[float, float]=(inf, 1.),
    device: Device=torch.device("cuda", 1)) -> Tuple[Tensor, int, str]:
    low0 = torch.add(low, pair[0])
    return (torch.clamp(x, low, pair[1]), kind.value, torch.str(device))
class Kind(Enum):
  ONE = 1
  TWO = 2
"""


def test_defaults():
    loaded = jit.load(archive({"__torch__": DEFAULTS}, ROOT), map_location="cpu")
    x, value, device = loaded(weft.tensor([-5.0, 5.0]))
    assert (x.tolist(), value, device) == ([-5.0, 1.0], 2, "cpu")
    again = jit.load(loaded.save_to_buffer())
    assert again(weft.ones(1))[1:] == (2, "cpu") and again.code == loaded.code


@pytest.mark.parametrize(
    "text", ["print", "torch.add", "CONSTANTS", "__torch__", "int", "x", "ops.a(1)"]
)
def test_defaults_that_are_no_values(text):
    code = {"__torch__": DEFAULTS.replace("__torch__.Kind.TWO", text)}
    with pytest.raises(FrontendError, match="expected"):
        jit.load(archive(code, ROOT))(weft.ones(1))


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def nested(depth: int) -> bytes:
    """Modules that hold the next one twice each: as many objects as levels, 2**depth paths."""
    code = "class C0(Module):\n  training : bool\n  def forward(self, x: Tensor) -> Tensor:\n    return x\n"
    data = b"\x80\x02c__torch__\nC0\n)\x81}" + _text("training") + b"\x88sbq\0"
    for level in range(1, depth):
        below = f"__torch__.C{level - 1}"
        code += f"class C{level}(Module):\n  training : bool\n  a : {below}\n  b : {below}\n"
        code += "  def forward(self, x: Tensor) -> Tensor:\n    return (self.a).forward(x, )\n"
        data += f"c__torch__\nC{level}\n".encode() + b")\x81}(" + _text("training") + b"\x88"
        data += b"".join(_text(name) + b"h" + bytes([level - 1]) for name in "ab")
        data += b"ubq" + bytes([level])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        records = {"code/__torch__.py": code, "data.pkl": data + b".", "version": "3\n"}
        records["constants.pkl"] = pickle.dumps((), 2)
        for name, record in records.items():
            out.writestr(f"net/{name}", record)
    return file.getvalue()


def test_modules_that_are_in_many_others_are_read_once():
    loaded = jit.load(nested(60))
    assert loaded.a is loaded.b and loaded(weft.ones(1)).item() == 1.0


class Scaled:
    def __init__(self, by: int):
        self.by = by

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.by


class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled = Scaled(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(x)


def test_objects_that_can_be_called():
    loaded = jit.load(jit.script(Holds()).save_to_buffer())
    assert loaded(weft.ones(1)).item() == 3.0


# Programs on disk -----------------------------------------------------------------------------

RUN = """
import sys, weft
{before}
loaded = weft.jit.load("net.pt", map_location={place!r})
with weft.no_grad():
    results = [loaded(weft.ones(2)).tolist() for _ in range(3)]
assert results[0] == results[1] == results[2]
print(weft.jit.stats()["programs"], results[0], loaded.other(weft.ones(1)).item())
"""


def in_a_process(folder: Path, before: str = "", place: str = "cpu") -> tuple[int, str]:
    """How many programs a process made that loads and runs net.pt, and its results."""
    environment = os.environ | {"WEFT_CACHE": str(folder / "cache"), "WEFT_JIT_CACHE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(before=before, place=place)],
        cwd=folder, capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    made, results = done.stdout.split(maxsplit=1)
    return int(made), results


def test_a_second_process_finds_the_programs(tmp_path):
    (tmp_path / "net.pt").write_bytes(two().getvalue())
    made, results = in_a_process(tmp_path)
    assert made > 0 and results == "[3.0, 3.0] 0.0\n"
    assert in_a_process(tmp_path) == (0, results)
    assert in_a_process(tmp_path, place="cpu:0")[0] > 0
    (tmp_path / "net.pt").write_bytes(two(part=PART.replace("x, 1", "x, 5")).getvalue())
    assert in_a_process(tmp_path) == (made, "[7.0, 7.0] 0.0\n")


def test_an_archive_that_is_loaded_again_in_one_process(tmp_path):
    (tmp_path / "net.pt").write_bytes(two().getvalue())
    before = "first = weft.jit.load('net.pt', 'cpu')\nwith weft.no_grad():\n    first(weft.ones(1))"
    made, results = in_a_process(tmp_path, before)
    assert made > 0 and results == "[3.0, 3.0] 0.0\n"
    assert in_a_process(tmp_path, before) == (0, results)
    other = tmp_path / "other"
    other.mkdir()
    (other / "net.pt").write_bytes((tmp_path / "net.pt").read_bytes())
    assert in_a_process(other) == (made, results)  # the second time made none


def test_an_archive_with_classes_of_another_in_the_process(tmp_path):
    """Types of the second have other names, and programs are those that the first process made."""
    (tmp_path / "net.pt").write_bytes(two().getvalue())
    other = two(part=PART.replace("x, 1", "x, 5"))
    (tmp_path / "other.pt").write_bytes(other.getvalue())
    results = in_a_process(tmp_path)[1]
    before = "other = weft.jit.load('other.pt'); assert other(weft.ones(1)).item() == 7"
    in_a_process(tmp_path, before)
    assert in_a_process(tmp_path, before) == (0, results)


OPERATOR = """
@weft.jit.register_operator("mine::op")
def op(x: weft.Tensor) -> weft.Tensor:
    return x * {by}
"""


def test_programs_with_operators_of_users_are_not_kept(tmp_path):
    code = TOOLS.replace("torch.mul(x, 2)", "ops.mine.op(x)")
    (tmp_path / "net.pt").write_bytes(two(tools=code).getvalue())
    for by in (2, 4):
        made, results = in_a_process(tmp_path, OPERATOR.format(by=by))
        assert made > 0 and results == f"{[by + 1.0] * 2} 0.0\n"


def test_programs_that_lack_operators_are_not_kept(tmp_path):
    code = TOOLS.replace("torch.mul(x, 2)", "ops.mine.op(x)")
    (tmp_path / "net.pt").write_bytes(two(tools=code).getvalue())
    with pytest.raises(subprocess.CalledProcessError):
        in_a_process(tmp_path)
    library = """
made = weft.library.Library("mine", "DEF")
made.define("op(Tensor x) -> Tensor")
made.impl("op", lambda x: x * 3, "CPU")
"""
    assert in_a_process(tmp_path, library)[1] == "[4.0, 4.0] 0.0\n"


NUMBER = """class M(Module):
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.mul(x, CONSTANTS.c0)
  def other(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.add(x, CONSTANTS.c0)
"""


def numbered(value: float) -> bytes:
    return archive({"__torch__": NUMBER}, ROOT, [weft.tensor(value)]).getvalue()


def test_constants_that_are_numbers_belong_to_the_program(tmp_path):
    """The archives differ in the constant alone, which traces have for 2 and 3."""
    for value, results in ((2.0, "[2.0, 2.0] 3.0\n"), (3.0, "[3.0, 3.0] 4.0\n")):
        (tmp_path / "net.pt").write_bytes(numbered(value))
        made, found = in_a_process(tmp_path)
        assert made > 0 and found == results
        assert in_a_process(tmp_path) == (0, results)


def test_constants_on_the_meta_device():
    program = jit.load(numbered(2.0), map_location="meta")
    assert program(weft.ones(2, device="meta")).is_meta


def test_constants_and_classes_are_those_of_the_process(tmp_path):
    code = {
        "__torch__": """class M(Module):
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.add((self).pair(x, ).first, CONSTANTS.c0)
  def pair(self: __torch__.M,
    x: Tensor) -> __torch__.Pair:
    return __torch__.Pair(torch.mul(x, CONSTANTS.c1), __torch__.Kind.ONE)
  def other(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.add(x, CONSTANTS.c1)
class Pair(NamedTuple):
  first : Tensor
  kind : __torch__.Kind
class Kind(Enum):
  ONE = 1
  TWO = 2
class Strange(Nothing):
  x : int
"""
    }
    file = archive(code, ROOT, [weft.tensor([1.0, 2.0]), weft.tensor([10.0])])
    (tmp_path / "net.pt").write_bytes(file.getvalue())
    made, results = in_a_process(tmp_path)
    assert made > 0 and results == "[11.0, 12.0] 11.0\n"
    assert in_a_process(tmp_path) == (0, results)
    before = """
first, second = (weft.jit.load("net.pt") for _ in range(2))
pairs = [each.pair(weft.ones(1)) for each in (first, second, first)]
assert [type(pair).__name__ for pair in pairs] == ["Pair"] * 3
assert type(pairs[0]) is type(pairs[2]) is not type(pairs[1])
assert [pair.kind.name for pair in pairs] == ["ONE"] * 3
"""
    for _ in range(2):
        assert in_a_process(tmp_path, before)[1] == results


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


LEVELS = f"""class M(Module):
  training : bool
  def forward(self: __torch__.M,
    level: __torch__.{__name__}.Level) -> Tuple[__torch__.{__name__}.Level, bool]:
    HIGH = __torch__.{__name__}.Level.HIGH
    return (HIGH, torch.eq(level, HIGH))
"""
LEVEL = "class Level(Enum):\n  LOW = 1\n  HIGH = 2\n"


def test_members_of_an_enum_of_python():
    code = {"__torch__": LEVELS, f"__torch__.{__name__}": LEVEL}
    given, flag = jit.load(archive(code, ROOT))(Level.LOW)
    assert given is Level.HIGH and not flag
    code[f"__torch__.{__name__}"] = LEVEL.replace("2", "3")  # another enum of that name
    with pytest.raises(TypeError, match="expected value of type Level"):
        jit.load(archive(code, ROOT))(Level.LOW)


def test_members_of_an_enum_that_was_compiled():
    class Place(enum.Enum):  # which no module has
        HERE = "here"

    def here(place: Place) -> tuple[bool, Place]:
        return place == Place.HERE, Place.HERE

    here.__annotations__ = {"place": Place, "return": tuple[bool, Place]}
    loaded = jit.load(io.BytesIO(jit.script(here).save_to_buffer()))
    assert loaded(Place.HERE) == (True, Place.HERE)


CPU = weft.device("cpu")


class Defaults(nn.Module):
    def forward(
        self, x: Tensor, kind: Kind = Kind.TWO, low: float = -math.inf,
        pair: tuple[float, Kind] = (math.inf, Kind.ONE), device: weft.device = CPU,
    ) -> tuple[Tensor, int, float, str]:  # fmt: skip
        return x.clamp(low, pair[0]), kind.value + pair[1].value, low, str(device)


@pytest.mark.parity
def test_defaults_that_pytorch_reads():
    torch = pytest.importorskip("torch")
    loaded = torch.jit.load(io.BytesIO(jit.script(Defaults()).save_to_buffer()))
    x, *rest = loaded(torch.ones(1))
    assert x.item() == 1.0 and rest == [3, -math.inf, "cpu"]


def test_methods_that_forward_does_not_call_were_exported(tmp_path):
    loaded = jit.load(two())
    frozen = jit.freeze(loaded, preserved_attrs=["other"])
    assert frozen.other(weft.ones(1)).item() == 0.0
    jit.aot_compile(jit.load(two()), tmp_path / "two.weft")
    made = weft._C.CompiledModule(str(tmp_path / "two.weft"))
    assert made.call("other", weft.ones(1)).item() == 0.0
    assert made.call("forward", weft.ones(1)).item() == 3.0
