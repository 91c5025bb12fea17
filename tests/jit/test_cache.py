"""Programs on disk: found by a second process, and not found once anything they depend on changed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.jit.script_function import KeptFunction

END = """
import sys
result = f(*GIVEN)
print("weft.jit.frontend" in sys.modules, result.tolist())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("WEFT_JIT_CACHE", "1")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(weft, "relu", weft.relu)  # which a program replaces
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def run(folder: Path, source: str, **modules: str) -> tuple[bool, list[float]]:
    """Imports a program anew: whether its f was found on disk, and what f gives."""
    for name, text in {"program": source, **modules}.items():
        (folder / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    made = importlib.import_module("program")
    return isinstance(made.f, KeptFunction), made.f(*made.GIVEN).tolist()


def in_a_process(folder: Path, source: str) -> list[str]:
    """The same in a process of its own: whether it needed the compiler, and what f gives."""
    (folder / "program.py").write_text(source + END)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split(maxsplit=1)


HEAD = "import weft\nGIVEN = (weft.ones(2),)\n"

FUNCTION = (
    HEAD
    + """
@weft.jit.script
def f(x):
    return x * 2 + 1
"""
)


def test_a_second_process_needs_no_compiler(folder):
    assert in_a_process(folder, FUNCTION) == ["True", "[3.0, 3.0]\n"]
    assert in_a_process(folder, FUNCTION) == ["False", "[3.0, 3.0]\n"]


# name: source with {} in the place that changes, its two contents, modules beside it
CHANGES = {
    "the body": ("@weft.jit.script\ndef f(x):\n    return x * {}", "2", "3"),
    "a global": ("K = {}\n@weft.jit.script\ndef f(x):\n    return x * K", "2", "3"),
    "the type of a global": ("K = {}\n@weft.jit.script\ndef f(x):\n    return x + K", "2", "2.0"),
    "a called function": (
        "def g(x):\n    return x + {}\n@weft.jit.script\ndef f(x):\n    return g(x)",
        "2",
        "3",
    ),
    "what a called function reads": (
        "K = {}\ndef g(x):\n    return x + K\n@weft.jit.script\ndef f(x):\n    return g(x)",
        "2",
        "3",
    ),
    "a scripted function": (
        "K = {}\n@weft.jit.script\ndef g(x):\n    return x + K\n"
        "@weft.jit.script\ndef f(x):\n    return g(x)",
        "2",
        "3",
    ),
    "a class attribute": (
        "class C:\n    k = {}\n@weft.jit.script\ndef f(x):\n    return x + C.k",
        "2",
        "3",
    ),
    "an attribute of a base": (
        "class B:\n    k = {}\nclass C(B):\n    pass\n@weft.jit.script\ndef f(x):\n    return x + C.k",
        "2",
        "3",
    ),
    "a default": ("@weft.jit.script\ndef f(x, k: int = {}):\n    return x + k", "2", "3"),
    "a default behind a name": (
        "K = {}\n@weft.jit.script\ndef f(x, k: int = K):\n    return x + k",
        "2",
        "3",
    ),
    "an enum": (
        "import enum\nclass E(enum.Enum):\n    A = {}\n"
        "@weft.jit.script\ndef f(x):\n    return x + E.A.value",
        "2",
        "3",
    ),
    "a decorator": (
        "def one(g):\n    return g\ndef two(g):\n    return lambda x: x + 5\n@{}\n"
        "def g(x):\n    return x + 1\n@weft.jit.script\ndef f(x):\n    return g(x)",
        "one",
        "two",
    ),
    "a variable around it": (
        "def make(k):\n    def f(x):\n        return x + k\n    return weft.jit.script(f)\n"
        "f = make({})",
        "2",
        "3",
    ),
    "an item": ("K = [1, {}]\n@weft.jit.script\ndef f(x):\n    return x + K[1]", "2", "3"),
    "a key": ("K = dict(a={})\n@weft.jit.script\ndef f(x):\n    return x + K['a']", "2", "3"),
    "the annotation": (
        "@weft.jit.script\ndef f(x, k: {} = 2):\n    return x + k / 2",
        "int",
        "float",
    ),
    "a variable's annotation": (
        "from typing import List\n@weft.jit.script\ndef f(x):\n    xs: {} = []\n"
        "    return x + len(xs)",
        "List[int]",
        "List[str]",
    ),
    "a type behind a name": (
        "T = {}\n@weft.jit.script\ndef f(x, k: T = 2):\n    return x + k / 2",
        "int",
        "float",
    ),
    "a dtype": (
        "D = {}\n@weft.jit.script\ndef f(x):\n    return x.to(D)",
        "weft.int32",
        "weft.half",
    ),
    "a tensor's dtype": (
        "W = weft.ones(2, dtype={})\n@weft.jit.script\ndef f(x):\n    return x + W",
        "weft.float32",
        "weft.float64",
    ),
    "arguments bound before": (
        "import functools\ndef g(x, k: int):\n    return x + k\nh = functools.partial(g, k={})\n"
        "@weft.jit.script\ndef f(x):\n    return h(x)",
        "2",
        "3",
    ),
    "a function of weft": (
        "def one(x):\n    return x + 1\ndef two(x):\n    return x + 2\nweft.relu = {}\n"
        "@weft.jit.script\ndef f(x):\n    return weft.relu(x)",
        "one",
        "two",
    ),
    "where it stands": ("{}@weft.jit.script\ndef f(x):\n    return x", "", "\n"),
    "a text": ("f = weft.jit.CompilationUnit('def f(x): return x + {}').f", "2", "3"),
    "what a text reads": (
        "K = {}\nf = weft.jit.CompilationUnit('def f(x): return x + K').f",
        "2",
        "3",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_a_program_depends_on_is_a_miss(folder, name):
    source, *contents = CHANGES[name]
    first, second = (HEAD + source.format(content) + "\n" for content in contents)
    found, printed = run(folder, first)
    assert not found
    assert run(folder, first) == (True, printed)
    found, changed = run(folder, second)
    assert not found
    assert run(folder, second) == (True, changed)
    assert run(folder, first) == (True, printed)


def test_a_change_of_another_module_is_a_miss(folder):
    source = HEAD + "import other\n@weft.jit.script\ndef f(x):\n    return other.g(x) + other.K\n"
    other = "from other_still import J\nK = {}\ndef g(x):\n    return x * J\n"

    def outcome(k: int, j: int) -> tuple[bool, list[float]]:
        return run(folder, source, other=other.format(k), other_still=f"J = {j}")

    assert outcome(1, 2) == (False, [3.0, 3.0])
    assert outcome(1, 2) == (True, [3.0, 3.0])
    assert outcome(2, 2) == (False, [4.0, 4.0])
    assert outcome(2, 3) == (False, [5.0, 5.0])
    assert outcome(2, 3) == (True, [5.0, 5.0])
