"""The command `weft`, word by word."""

from __future__ import annotations

import numpy as np
import pytest
from tests.jit.archive_writer import Object, archive

import weft
from weft._command.main import main

CODE = """class Scale(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  def forward(self: __torch__.Scale,
    x: Tensor) -> Tensor:
    weight = self.weight
    return torch.add(torch.mul(x, weight), 1)
  def twice(self: __torch__.Scale,
    x: Tensor) -> Tensor:
    return torch.mul(x, 2)
  def keyed(self: __torch__.Scale,
    x: Tensor) -> Dict[str, Tensor]:
    return {"less": x, "more": torch.mul(x, 2)}
  def named(self: __torch__.Scale,
    x: Tensor) -> __torch__.Both:
    return __torch__.Both(x, torch.mul(x, 2))
  def pair(self: __torch__.Scale,
    x: Tensor) -> Tuple[Tensor, Tensor]:
    return (torch.mul(x, 2), x)
class Both(NamedTuple):
  less : Tensor
  more : Tensor
"""


@pytest.fixture
def model(tmp_path):
    weight = weft.full((3,), 0.5, requires_grad=True)
    state = {"weight": weight, "training": False}
    data = archive({"__torch__": CODE}, Object("__torch__.Scale", state))
    path = tmp_path / "scale.pt"
    path.write_bytes(data.getvalue())
    return path


def array(path, *rows: float):
    np.save(path, np.array(rows, dtype=np.float32))
    return path


def test_compile_and_exec(model, tmp_path, capsys) -> None:
    assert main(["compile", str(model), "--example", "3", "--packed", "--method", "twice"]) == 0
    compiled = model.with_suffix(".weft")
    assert capsys.readouterr().out == f"{compiled}: {compiled.stat().st_size} bytes\n"
    x, y = array(tmp_path / "x.npy", 1, 2, 4), tmp_path / "y.npy"
    assert main(["exec", str(compiled), "--input", f"x={x}", "--output", str(y)]) == 0
    assert np.load(y).tolist() == [1.5, 2, 3]
    assert main(["exec", str(compiled), "--method", "twice", "--input", str(x)]) == 0
    assert capsys.readouterr().out == "tensor([2., 4., 8.])\n"


def test_outputs_by_name(model, tmp_path, capsys) -> None:
    """By the key or field of that name; results without names take them in order."""
    methods = [word for name in ("keyed", "named", "pair") for word in ("--method", name)]
    assert main(["compile", str(model), *methods]) == 0
    compiled = str(model.with_suffix(".weft"))
    x, y, z = array(tmp_path / "x.npy", 1, 2), tmp_path / "y.npy", tmp_path / "z.npy"
    for method in ("keyed", "named", "pair"):
        words = ["exec", compiled, "--method", method, "--input", str(x)]
        assert main([*words, "--output", f"more={y}", "--output", f"less={z}"]) == 0
        assert np.load(y).tolist() == [2, 4] and np.load(z).tolist() == [1, 2]
    words = ["exec", compiled, "--method", "named", "--input", str(x)]
    assert main([*words, "--output", str(y), "--output", str(z)]) == 0  # in order
    assert np.load(y).tolist() == [1, 2] and np.load(z).tolist() == [2, 4]
    assert main([*words, "--output", f"most={y}"]) == 1
    assert main([*words, "--output", str(y)]) == 1
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == "weft exec: expected outputs among less, more, got most"
    assert printed[1] == "weft exec: expected an output for each of 2 results, got 1"


def test_compile_frozen(model, tmp_path, capsys) -> None:
    plain, frozen = tmp_path / "plain.weft", tmp_path / "frozen.weft"
    for output, more in ((plain, []), (frozen, ["--freeze"])):
        words = ["compile", str(model), "-o", str(output), "--method", "twice", *more]
        assert main(words) == 0
    assert frozen.stat().st_size < plain.stat().st_size  # no attributes, no getter of a parameter
    x, y = array(tmp_path / "x.npy", 1, 2, 4), tmp_path / "y.npy"
    for method, expected in (("forward", [1.5, 2, 3]), ("twice", [2, 4, 8])):
        words = ["exec", str(frozen), "--method", method, "--input", str(x), "--output", str(y)]
        assert main(words) == 0
        assert np.load(y).tolist() == expected


def test_an_archive_may_be_compiled_in_its_place(model, tmp_path, capsys) -> None:
    before = weft.jit.load(model)(weft.ones(3)).detach()
    assert main(["compile", str(model), "-o", str(model)]) == 0
    assert weft.equal(weft.jit.load(model)(weft.ones(3)), before)
    x = array(tmp_path / "x.npy", 1, 1, 1)
    capsys.readouterr()
    assert main(["exec", str(model), "--input", f"x={x}"]) == 0
    assert capsys.readouterr().out == f"{before}\n"


def test_show(model, tmp_path, capsys) -> None:
    page = tmp_path / "page.html"
    assert main(["show", str(model), "--code", "--graph", "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    for text in ("3 numbers", "12 bytes", "forward(", "aten::mul", "return"):
        assert text in shown
    assert "<html" in page.read_text()


@pytest.mark.parametrize(
    "words, message",
    [
        (["compile", "nowhere.pt"], "nowhere.pt"),
        (["exec", "nowhere.weft"], "nowhere.weft"),
        (["compile", "MODEL", "--example", "axb"], "expected sizes like 2x3x4, got axb"),
        (["compile", "MODEL", "--target", "riscv"], "got 'riscv'"),
    ],
)
def test_failures_are_one_line(words, message, model, capsys) -> None:
    assert main([str(model) if word == "MODEL" else word for word in words]) == 1
    printed = capsys.readouterr().err
    assert message in printed and printed.startswith(f"weft {words[0]}: ")
    assert printed.count("\n") == 1


def test_folders(capsys) -> None:
    assert main(["--include", "--library", "--cmake-prefix"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert line.rpartition("/weft/")[2] in ("include", "lib", "lib/cmake")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"weft {weft.__version__}\n"
    assert main([]) == 2


def test_show_tells_what_is_missing(tmp_path, capsys) -> None:
    code = CODE.replace("torch.mul(x, 2)", "ops.mine.op(torch.absent(x), 2)")
    weight = weft.ones(3, requires_grad=True)
    data = archive(
        {"__torch__": code}, Object("__torch__.Scale", {"weight": weight, "training": False})
    )
    path = tmp_path / "scale.pt"
    path.write_bytes(data.getvalue())
    assert main(["show", str(path)]) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first == "missing: aten::absent at code/__torch__.py:12:23"
    assert second == "missing: mine::op at code/__torch__.py:12:11"
