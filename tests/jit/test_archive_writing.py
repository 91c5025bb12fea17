"""Writing TorchScript archives: what is written, and that it is the same program when it is loaded, by weft and by
PyTorch (parity)."""

from __future__ import annotations

import io
import zipfile
from typing import Final

import pytest

import weft
from weft import Tensor, jit, nn


def records(data: bytes) -> dict[str, bytes]:
    """The records of an archive by name, without its folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def code(data: bytes) -> dict[str, str]:
    """The files of code of an archive."""
    return {name: text.decode() for name, text in records(data).items() if name.endswith(".py")}


def loaded(data: bytes):
    """The program of an archive."""
    return jit.load(io.BytesIO(data))


def in_torch(data: bytes):
    """The program of an archive as PyTorch loads it."""
    import torch

    return torch.jit.load(io.BytesIO(data))


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
  def forward(self: __torch__.tests.jit.test_archive_writing.Net,
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
        "code/__torch__/tests/jit/test_archive_writing.py": NET,
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
            packed = each.filename.endswith(".py")
            assert each.compress_type == (zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED)
    extra = {"notes/a.txt": "", "b": ""}
    jit.load(path, _extra_files=extra)
    assert extra == {"notes/a.txt": b"text", "b": b"bytes"}


VERSIONS = {
    "x + 1": 3,
    "x / 2": 4,
    "weft.full([2], 1.0)": 5,
    "weft.linspace(0, 1, 3)": 8,
    "weft.logspace(0, 1, 3)": 9,
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


def test_what_is_not_compiled_is_refused(tmp_path):
    with pytest.raises(TypeError, match="expected a compiled module or function, got Net"):
        jit.save(Net(), tmp_path / "net.pt")
    with pytest.raises(TypeError, match="expected a path or a writable file, got int"):
        jit.save(jit.script(Net()), 3)
    assert not list(tmp_path.iterdir())


@jit.ignore
def outside(x: Tensor) -> Tensor:
    return x


def recursive(n: int) -> int:
    return 1 if n < 1 else recursive(n - 1) + 1


REFUSED = {
    "print(n, end=''); return round(0.5, n)": "aten::round.digits|prim::write",
    "return outside(x)": "prim::CallPython",
    "d: Dict[Tuple[int, int], int] = {(n, n): n}; return d[n, n]": r"a dict whose keys are \(int",
    "return recursive(n)": "recursive, which calls itself",
    "return f'{n:03d}'": "aten::format_spec",
}


@pytest.mark.parametrize("text", REFUSED)
def test_programs_that_archives_cannot_hold(text):
    space = {"outside": outside, "recursive": recursive, "Dict": dict, "Tuple": tuple}
    unit = jit.CompilationUnit()
    unit.define(f"def f(x: Tensor, n: int): {text}", lambda name: space.get(name)) if 0 else None
    source = f"def f(x: Tensor, n: int):\n    {text}\n"
    program = jit.CompilationUnit(source, _names=space).f if 0 else compiled(source, space)
    with pytest.raises(RuntimeError, match="save: expected a program that archives can hold") as e:
        program.save_to_buffer()
    for part in REFUSED[text].split("|"):
        assert part.replace("\\", "") in str(e.value)


def compiled(source: str, space: dict) -> jit.ScriptFunction:
    """The function f of a text."""
    names = {**space, "Tensor": Tensor, "weft": weft, "__source__": source}
    exec(source, names)
    return jit.script(names["f"])
