"""Functions whose source is in no file: `python -c`, a piped file, the prompt, exec."""

from __future__ import annotations

import py_compile
import subprocess
import sys
import types
import zipfile

import pytest

import weft
from weft import jit
from weft.jit.frontend.source import search as source_search

PROGRAM = '''
import weft
@weft.jit.script
def double(x):
    """Twice x."""
    for _ in range(1):
        x = x * 2
    return x
class Net(weft.nn.Module):
    def forward(self, x):
        return double(x) + 1
print(weft.jit.script(Net())(weft.ones(1)).item())
'''


def test_command_line():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert run.stdout == "3.0\n", run.stderr


OF_ONE_NAME = """
import weft
def f(x: int) -> int:
    return x + 1
__source__ = '''
import weft
def f(x: int) -> int:
    return x + 2
'''
space = {"__source__": __source__}
exec(__source__, space)
print(weft.jit.script(f)(1), weft.jit.script(space["f"])(1))
"""


def test_texts_of_one_name():
    """The command line and what it gives to exec are both <string>, and f stands in the same line."""
    run = subprocess.run([sys.executable, "-c", OF_ONE_NAME], capture_output=True, text=True)
    assert run.stdout == "2 3\n", run.stderr


OWN_METHODS = """
import dataclasses, weft
@dataclasses.dataclass
class D:
    n: int
    def __eq__(self, other: "D") -> bool:
        return self.n % 10 == other.n % 10
    def __repr__(self) -> str:
        return f"<{self.n}>"
@dataclasses.dataclass
class E:
    n: int
@weft.jit.script
def f() -> tuple[bool, str, bool, str]:
    return D(1) == D(11), str(D(1)), E(1) == E(11), str(E(1))
print(*f())
"""


def test_methods_of_dataclasses_of_a_command_line():
    """Neither their own nor those that @dataclass wrote are in a file."""
    run = subprocess.run([sys.executable, "-c", OWN_METHODS], capture_output=True, text=True)
    assert run.stdout == "True <1> False E(n=1)\n", run.stderr


def test_input_from_a_file(tmp_path):
    path = tmp_path / "program"
    path.write_text(PROGRAM)
    with path.open() as file:
        run = subprocess.run([sys.executable], stdin=file, capture_output=True, text=True)
    assert run.stdout == "3.0\n", run.stderr


def test_text_given_to_exec():
    text = "def f(x):\n    return x * 2\n\n\ndef g(x):\n    return f(x) + 1\n"
    space: dict = {}
    exec(text, space)
    assert jit.script(space["g"])(weft.ones(1)).item() == 3.0


def _made(name: str, body: str, **space):
    exec(f"def {name}(x):\n    return {body}\n", space)
    return space[name]


def test_text_that_is_gone_is_refused_and_source_is_the_way_out():
    made = _made("gone", "x * 2")
    with pytest.raises(jit.FrontendError, match="__source__ = text among the globals"):
        jit.script(made)
    made.__globals__["__source__"] = "\n".join(["def gone(x):", "    return x * 2", ""])
    assert jit.script(made)(weft.ones(1)).item() == 2.0


def test_another_function_of_the_same_name_is_not_taken():
    made = _made("other", "x * 2", __source__="def other(x):\n    return x * 3\n")
    with pytest.raises(jit.FrontendError, match="expected source code"):
        jit.script(made)


def test_history_of_the_prompt(monkeypatch):
    history = ["import weft", "def f(x):", "    return x * 5", "def f(x):", "    y = x * 2"]
    history += [
        "",
        "    return y",
        "",
        "class A:",
        "    def g(self, x):",
        "        return x",
        "1 + 1",
    ]
    readline = types.SimpleNamespace(
        get_current_history_length=lambda: len(history),
        get_history_item=lambda i: history[i - 1],
    )
    monkeypatch.setitem(sys.modules, "readline", readline)
    space: dict = {}
    exec(compile("\n".join(history[3:8]) + "\n", "<stdin>", "exec"), space)
    exec(compile("\n".join(history[8:11]) + "\n", "<stdin>", "exec"), space)
    assert jit.script(space["f"])(weft.ones(1)).item() == 2.0
    lines = source_search.find_lines(space["A"].g)
    assert lines is not None and "".join(lines[0]) == "    def g(self, x):\n        return x\n"


def test_a_file_that_changed_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "changing_program.py"
    path.write_text("def f(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    import changing_program

    path.write_text("# other\n\ndef g(x):\n    return x * 5\n")
    with pytest.raises(jit.FrontendError, match="the file has changed since it was imported"):
        jit.script(changing_program.f)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns before")
def test_several_lambdas_on_a_line():
    scale = 4
    three = (lambda x: x * 2, lambda x: x * scale, lambda x: (lambda y: y + 1)(x * 3))
    scripts = [jit.script(each) for each in three]
    assert [script(weft.ones(1)).item() for script in scripts] == [2.0, 4.0, 4.0]


MODULE = """
import weft
from weft import Tensor

class Net(weft.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return twice(x) + 1

def twice(x: Tensor) -> Tensor:
    return x * 2
"""
USE = "import weft, packed; print(weft.jit.script(packed.Net())(weft.ones(1)).item())"


def _run(program, folder):
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {program}"]
    return subprocess.run(run, capture_output=True, text=True)


def test_modules_in_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as packed:
        packed.writestr("packed.py", MODULE)
    assert _run(USE, tmp_path / "all.zip").stdout == "3.0\n"


def test_modules_without_source(tmp_path):
    """As a frozen application has them: the refusal says what helps, and it does."""
    path = tmp_path / "packed.py"
    path.write_text(MODULE)
    py_compile.compile(str(path), cfile=str(tmp_path / "packed.pyc"))
    path.unlink()
    refused = _run(USE, tmp_path).stderr
    assert "__source__ = text among the globals" in refused and "packed.py" in refused
    path.with_suffix(".txt").write_text(MODULE)
    kept = f"import packed; packed.__source__ = open({str(path.with_suffix('.txt'))!r}).read(); "
    assert _run(kept + USE, tmp_path).stdout == "3.0\n"
