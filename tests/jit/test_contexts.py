"""`with` on objects of a program's classes, whose block an exception leaves."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import zipfile
from typing import Any

import pytest

import weft
from weft import _C, Tensor, jit

# Over PyTorch too, whose compiler reads the file.
SOURCE = '''
from typing import Any, List
import torch


class Logged:
    """Tells what happens to it; may fail when it is entered (1) or left (2)."""

    def __init__(self, name: str, fails: int):
        self.name = name
        self.fails = fails

    def __enter__(self):
        print("in", self.name)
        if self.fails == 1:
            print([1][self.fails])

    def __exit__(self, type: Any, value: Any, traceback: Any):
        print("out", self.name, torch.is_grad_enabled())
        if self.fails == 2:
            print([1][self.fails])


def inner(n: int):
    with Logged("inner", 0):
        if n > 0:
            print([1][n])


def nested(a: int, b: int, before: int, behind: int) -> int:
    with Logged("a", a):
        with torch.no_grad():
            with Logged("b", b):
                inner(before)
        inner(behind)
    return 5


def in_a_loop(n: int) -> int:
    total = 0
    for i in range(4):
        with Logged("loop", 0), Logged("second", 0):
            total += [1, 2, 3][i + n]
    return total
'''
INNER, OFF = "in inner, out inner True", "out inner False, out b False"
NESTED = {  # PyTorch calls __exit__ where __enter__ raises, too
    (0, 0, 0, 0): f"in a, in b, in inner, {OFF}, {INNER}, out a True",
    (0, 0, 1, 0): f"in a, in b, in inner, {OFF}, out a True",
    (0, 0, 0, 1): f"in a, in b, in inner, {OFF}, {INNER}, out a True",
    (0, 1, 0, 0): "in a, in b, out b False, out a True",
    (0, 2, 0, 0): f"in a, in b, in inner, {OFF}, out a True",
    (0, 2, 1, 0): f"in a, in b, in inner, {OFF}, out a True",
    (1, 0, 0, 0): "in a, out a True",
    (2, 0, 0, 0): f"in a, in b, in inner, {OFF}, {INNER}, out a True",
    (2, 2, 1, 0): f"in a, in b, in inner, {OFF}, out a True",
}
ROUND = "in loop, in second, out second True, out loop True"


def functions(folder: Any, torch: Any) -> Any:
    name = f"contexts_over_{torch.__name__}"
    path = folder / f"{name}.py"
    path.write_text(SOURCE.replace("import torch", f"import {torch.__name__} as torch"))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Any:
    return functions(tmp_path_factory.mktemp("program"), weft)


def told(function: Any, *arguments: Any, output: Any) -> str:
    """What a call prints, on one line; with what it raises."""
    try:
        function(*arguments)
    except Exception as error:
        assert "list index out of range" in str(error)
    return ", ".join(output.readouterr().out.split("\n")[:-1])


@pytest.mark.parametrize("numbers", NESTED)
def test_an_exception_leaves_contexts(program, numbers, capsys):
    function = jit.script(program.nested)
    assert told(function, *numbers, output=capsys) == NESTED[numbers]
    if any(numbers):
        with pytest.raises(IndexError, match="list index out of range"):
            function(*numbers)
    assert weft.is_grad_enabled()
    assert told(function, 0, 0, 0, 0, output=capsys).endswith(NESTED[0, 0, 0, 0])


def test_an_exception_leaves_contexts_of_loops(program, capsys):
    function = jit.script(program.in_a_loop)
    for n in (0, 1, 3):
        expected = ", ".join([ROUND] * (4 - n if n else 4))
        assert told(function, n, output=capsys) == expected


@pytest.mark.parity
def test_contexts_beside_pytorch(tmp_path, capfd):
    torch = pytest.importorskip("torch")
    theirs = functions(tmp_path, torch)
    nested, loop = torch.jit.script(theirs.nested), torch.jit.script(theirs.in_a_loop)
    for numbers, expected in NESTED.items():
        assert told(nested, *numbers, output=capfd) == expected
    assert told(loop, 1, output=capfd) == ", ".join([ROUND] * 3)


class Adds:
    """Adds to a tensor in place when it is left; `step` is set inside."""

    def __init__(self, target: Tensor):
        self.target = target
        self.step = 1

    def __enter__(self):
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.target.add_(self.step)


def raises(x: Tensor, n: int) -> Tensor:
    with Adds(x) as adds:
        adds.step = 5
        if n > 2:
            raise ValueError("large")
        x.mul_(10)
        adds.step = int(x.shape[n])
    return x


def always(x: Tensor) -> Tensor:
    with Adds(x):
        raise ValueError("always")


def leaves_early(x: Tensor, n: int) -> Tensor:
    for i in range(5):
        with Adds(x):
            if i == n:
                return x * 100
            if i % 2 == 0:
                continue
            if i == 3:
                break
            x.mul_(2)
    return x


def test_the_object_is_as_it_was_when_the_exception_came():
    function = jit.script(raises)
    x = weft.ones(2)
    with pytest.raises(ValueError, match="large"):
        function(x, 3)
    assert x.tolist() == [6.0, 6.0]
    with pytest.raises(IndexError):
        function(x, 1)
    assert x.tolist() == [65.0, 65.0]
    assert function(x, 0).tolist() == [652.0, 652.0]
    with pytest.raises(ValueError, match="always"):
        jit.script(always)(x)
    assert x.tolist() == [653.0, 653.0]


@pytest.mark.parametrize("n", range(6))
def test_other_ways_out_leave_once(n):
    x, y = weft.ones(2), weft.ones(2)
    assert jit.script(leaves_early)(x, n).tolist() == leaves_early(y, n).tolist()
    assert x.tolist() == y.tolist()


class Raising(weft.nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        return raises(x, n)


class Always(weft.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return always(x)


@pytest.mark.parametrize("of", ["script", "saved", "frozen", "compiled"])
def test_forms_of_programs(of, tmp_path):
    made, fails = jit.script(Raising().eval()), jit.script(Always().eval())
    if of == "saved":
        made, fails = (_saved(each) for each in (made, fails))
    elif of == "frozen":
        made, fails = jit.freeze(made), jit.freeze(fails)
    elif of == "compiled":
        jit.aot_compile(made, tmp_path / "net.weft")
        file = _C.CompiledModule(str(tmp_path / "net.weft"))

        def made(*arguments):
            return file.call("forward", *arguments)

    x = weft.ones(2)
    with pytest.raises(ValueError, match="large"):
        made(x, 3)
    assert x.tolist() == [6.0, 6.0]
    if of != "compiled":
        with pytest.raises(ValueError, match="always"):
            fails(x)
        assert x.tolist() == [7.0, 7.0]


def _saved(module: Any) -> Any:
    file = io.BytesIO()
    jit.save(module, file)
    return jit.load(io.BytesIO(file.getvalue()))


@pytest.mark.parity
def test_archives_in_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    for module, arguments, last in ((Raising(), (3,), 6.0), (Always(), (), 2.0)):
        jit.save(jit.script(module), tmp_path / "net.pt")
        x = torch.ones(2)
        with pytest.raises(Exception, match=r"large|always"):
            torch.jit.load(tmp_path / "net.pt")(x, *arguments)
        assert x.tolist() == [last, last]


def test_files_with_contexts_have_a_version_of_their_own(tmp_path):
    for module, version in ((Raising(), b"3"), (weft.nn.Linear(2, 2), b"1")):
        jit.aot_compile(jit.script(module), tmp_path / "net.weft")
        with zipfile.ZipFile(tmp_path / "net.weft") as archive:
            assert archive.read("archive/weft/version") == version


def deep(x: Tensor, n: int) -> Tensor:
    with Adds(x):
        return x if n == 0 else deep(x, n - 1)


def test_too_deep_a_recursion_leaves_every_context():
    x = weft.zeros(1)
    with pytest.raises(RecursionError):
        jit.script(deep)(x, 100_000)
    assert 1000 < x.item() <= 4000


class Again:
    """Is entered anew when it is left, and raises there."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        pass

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.count += 1
        with self:
            raise ValueError("again")


def endless(x: Tensor) -> Tensor:
    with Again():
        return x[7]


def test_a_context_that_never_ends_leaving():
    with pytest.raises(IndexError):
        jit.script(endless)(weft.ones(2))


def test_an_interrupt_leaves_contexts(tmp_path):
    path = tmp_path / "interrupted.py"
    path.write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.stdout == "in\nout\ninterrupted\n", done.stderr


INTERRUPTED = """
import os, signal, sys, threading, weft

class Output:  # the signal comes behind the first line
    def write(self, text):
        sys.__stdout__.write(text)
        if text.startswith("in\\n"):
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    def flush(self):
        sys.__stdout__.flush()

class Context:
    def __init__(self):
        self.n = 0
    def __enter__(self):
        print("in")
    def __exit__(self, a: object, b: object, c: object):
        print("out")

def runs(x: weft.Tensor):
    with Context():
        while bool(x[0] == 0):
            pass

function = weft.jit.script(runs)
sys.stdout = Output()
try:
    function(weft.zeros(1))
except KeyboardInterrupt:
    print("interrupted")
"""
