"""Compiled files of each version of the format that there was: they run today, and give what their
archives give. To keep those of another version, run this file with the folder to write them to."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.jit.archive_writer import ROOT, Member, Object, archive, forward

import weft
from weft import _C, jit

FOLDER = pathlib.Path(__file__).parent / "compiled"
CODE = """class Kind(Enum):
  ONE = 1
  TWO = 2
class Pair(NamedTuple):
  value : Tensor
  counts : Dict[str, int]
class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["seen", ]
  weight : Tensor
  seen : Tensor
  names : List[str]
  scale : Optional[float]
  kind : __torch__.Kind
  training : bool
  def forward(self, x: Tensor, n: int=2) -> __torch__.Pair:
    _0 = torch.add_(self.seen, n)
    y = torch.linear(x, self.weight, CONSTANTS.c0)
    y0 = torch.mul(torch.tanh(y), torch.add(torch.sigmoid(y), 1))
    scale = self.scale
    if torch.__isnot__(scale, None):
      y1 = torch.mul(y0, unchecked_cast(float, scale))
    else:
      y1 = y0
    y2 = y1
    for i in range(n):
      y2 = torch.add(torch.relu(y2), i)
    counts = annotate(Dict[str, int], {})
    for name in self.names:
      torch._set_item(counts, name, torch.add(torch.len(name), n))
    if torch.eq(self.kind, __torch__.Kind.TWO):
      y3 = torch.exp(torch.neg(y2))
    else:
      ops.prim.RaiseException("one", "builtins.ValueError")
      y3 = y2
    return __torch__.Pair(y3, counts)
  def text(self, name: str) -> str:
    return torch.format("{}: {}", torch.upper(name), int(torch.sum(self.seen)))
"""
STATE = {
    "weight": weft.linspace(-1, 1, 12).reshape(3, 4).requires_grad_(),
    "seen": weft.zeros(1, dtype=weft.int64),
    "names": ["a", "bc"],
    "scale": 2.5,
    "kind": Member("__torch__.Kind", 2),
    "training": False,
}


def net() -> Any:
    root = Object("__torch__.Net", STATE)
    return jit.load(archive({"__torch__": CODE}, root, [weft.tensor([0.5, -0.25, 1.0])]))


def calls() -> Any:
    """A program that calls an operator of the host."""
    return jit.load(archive(forward("ops.compiled_versions.scale(torch.add(x, 1), 2.)"), ROOT))


def contexts() -> Any:
    """A program in which an exception leaves the context of an object."""
    return jit.script(Entering())


class Context:
    def __init__(self, target: weft.Tensor):
        self.target = target

    def __enter__(self):
        pass

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.target.add_(1)


class Entering(weft.nn.Module):
    def forward(self, x: weft.Tensor, n: int) -> weft.Tensor:
        with Context(x):
            if n > 2:
                raise ValueError("large")
        return x


@contextlib.contextmanager
def operator() -> Iterator[None]:
    """The operator that they call."""
    library = weft.library.Library("compiled_versions", "DEF")
    library.define("scale(Tensor x, float by) -> Tensor")
    library.impl("scale", lambda x, by: x * by, "CPU")
    try:
        yield
    finally:
        library._destroy()


def test_version_1():
    file, program = _C.CompiledModule(str(FOLDER / "version_1.weft")), net()
    x = (weft.arange(8.0) / 4 - 1).reshape(2, 4)
    for n in (2, 3):
        found, expected = file.call("forward", x, n), program(x, n)
        assert weft.allclose(found.value, expected.value, rtol=1e-6, atol=1e-6)
        assert found.counts == expected.counts == {"a": 1 + n, "bc": 2 + n}
    assert file.call("text", "ab") == program.text("ab") == "AB: 5"
    found.value.sum().backward()
    expected.value.sum().backward()
    grad = dict(file.parameters())["weight"].grad
    assert weft.allclose(grad, program.weight.grad, rtol=1e-5, atol=1e-6)


def test_version_1_with_narrow_registers():
    call = "from tests.jit import test_compiled_versions as t; t.test_version_1()"
    environment = {**os.environ, "WEFT_ISA": "v2"}
    done = subprocess.run([sys.executable, "-c", call], env=environment, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()


def test_version_2():
    file = _C.CompiledModule(str(FOLDER / "version_2.weft"))
    with operator():
        assert file.call("forward", weft.tensor([1.0, -3.0])).tolist() == [4.0, -4.0]


def test_version_3():
    file, x = _C.CompiledModule(str(FOLDER / "version_3.weft")), weft.zeros(2)
    assert file.call("forward", x, 1).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="large"):
        file.call("forward", x, 3)
    assert x.tolist() == [2.0, 2.0]


if __name__ == "__main__":
    with operator():
        for number, program in enumerate((net(), calls(), contexts()), 1):
            jit.aot_compile(program, pathlib.Path(sys.argv[1]) / f"version_{number}.weft")
