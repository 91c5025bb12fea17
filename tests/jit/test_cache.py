"""Programs on disk: found by a second process, and not found once anything they depend on changed."""

from __future__ import annotations

import functools
import importlib
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.jit.cache.entry import Damaged, Entry, encode
from weft.jit.cache.files import PROGRAMS, Files, key, sha256
from weft.jit.cache.walk import Walk
from weft.jit.codegen import lower_program
from weft.jit.frontend.types import module_types, names
from weft.jit.script_function import CachedFunction

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
    return isinstance(made.f, CachedFunction), made.f(*made.GIVEN).tolist()


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


def test_classes_that_refuse_instance_checks(folder):
    given = "from typing import TypedDict\nclass D(TypedDict):\n    n: int\n"
    cls = "class C:\n    k = {}\n    def d(self):\n        return D\n"
    source = HEAD + given + cls + "@weft.jit.script\ndef f(x):\n    return x * C.k\n"
    assert run(folder, source.replace("{}", "2")) == (False, [2.0, 2.0])
    assert run(folder, source.replace("{}", "2")) == (True, [2.0, 2.0])
    assert run(folder, source.replace("{}", "3")) == (False, [3.0, 3.0])


class Refusing:
    def refuse(self, *_):
        raise NotImplementedError

    __len__ = __iter__ = items = keys = __str__ = __int__ = refuse


@pytest.mark.parametrize("base", [tuple, list, dict, str, int])
def test_values_of_classes_that_refuse_what_their_base_offers(base):
    """A walk asks the base what such a value holds, and calls nothing of the program."""
    values = {
        tuple: [(1,), (2,)],
        list: [[1], [2]],
        dict: [{"a": 1}, {"a": 2}],
        str: ["a", "b"],
        int: [1, 2],
    }[base]
    kind = type("Kind", (Refusing, base), {"__module__": __name__})

    def digest(value: object) -> str:
        held = kind.__new__(kind, value)
        if base is list:
            list.extend(held, value)
        elif base is dict:
            dict.update(held, value)
        walk = Walk()
        walk._put(held)
        walk._finish()
        return walk.digest

    assert digest(values[0]) == digest(values[0]) != digest(values[1])


# Modules -----------------------------------------------------------------------------------------

MODULE = (
    HEAD
    + """
class Inner(weft.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", weft.ones(2, dtype={buffer}))
        self.scale = {scale}
    def forward(self, x):
        return x * self.scale + self.b.sum()
class Net(weft.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = weft.nn.Linear(2, 2)
        self.inner = Inner()
        for p in self.parameters():
            weft.nn.init.ones_(p)
    def forward(self, x):
        return self.inner({call}(self.linear(x))) + {added}
f = weft.jit.script(Net().{mode}())
"""
)
AS_FIRST = {
    "buffer": "weft.float32",
    "scale": "2",
    "call": "weft.relu",
    "added": "1",
    "mode": "train",
}


def in_module(folder: Path, **given: str) -> tuple[bool, list[float]]:
    """Imports a program with a module anew: whether its forward was compiled, and what it gives."""
    names._names.clear()  # as a new process has it
    module_types._types.clear()
    found, printed = run(folder, MODULE.format(**{**AS_FIRST, **given}))
    info = sys.modules["program"].f._jit_info
    assert not found and info.cached is not None
    return not info.compiled, printed


def test_a_module_that_another_process_compiled_is_saved_with_its_methods(folder):
    assert in_module(folder)[0] is False
    assert in_module(folder)[0] is True
    module, x = sys.modules["program"].f, weft.ones(1, 2)
    for each in (module.inner, module):
        file = io.BytesIO()
        weft.jit.save(each, file)
        loaded = weft.jit.load(io.BytesIO(file.getvalue()))
        assert weft.equal(loaded(x), each(x))


@pytest.mark.parametrize(
    "changed",
    [
        {"buffer": "weft.float64"},
        {"scale": "3"},
        {"scale": "2.0"},
        {"call": "weft.tanh"},
        {"added": "2"},
    ],
    ids=str,
)
def test_a_module_is_found_as_long_as_it_is_the_same(folder, changed):
    with weft.no_grad():
        compiled, printed = in_module(folder)
        assert not compiled
        assert in_module(folder) == (True, printed)
        assert in_module(folder, mode="eval") == (True, printed)
        assert not in_module(folder, **changed)[0]
        assert in_module(folder, **changed)[0]
        assert in_module(folder) == (True, printed)


def test_a_module_that_was_found_trains(folder):
    """Without a program for gradients the compiler makes one."""
    with weft.no_grad():
        in_module(folder)
        in_module(folder)
    module = sys.modules["program"].f
    module(weft.ones(2)).sum().backward()
    assert module.linear.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert module._jit_info.compiled
    in_module(folder)
    assert not sys.modules["program"].f._jit_info.compiled


# What is done to files ---------------------------------------------------------------------------


def entries(folder: Path) -> list[Path]:
    """The files of the cache."""
    return sorted((folder / "cache" / "programs").iterdir())


def sealed(data: bytes) -> bytes:
    """Bytes with their digest before them, as files have it."""
    return sha256(data).digest() + data


@pytest.mark.parametrize("seal", [False, True], ids=["torn", "forged"])
def test_a_damaged_file_is_a_miss(folder, seal):
    """Whatever is wrong with it: the program is compiled, gives the same, and is kept again."""
    outcome = run(folder, FUNCTION)
    good = {path: path.read_bytes() for path in entries(folder)}
    random = Random(0)
    for _ in range(12):
        for path, data in good.items():
            bad = bytearray(data[32:] if seal else data)
            for _ in range(random.choice((1, 1, 5))):
                bad[random.randrange(len(bad))] ^= random.randrange(1, 256)
            bad = bad[: random.choice((len(bad), random.randrange(len(bad))))]
            path.write_bytes(sealed(bytes(bad)) if seal else bytes(bad))
        found, printed = run(folder, FUNCTION)
        # A forged file may be another program of the same function; it never harms the process.
        assert seal or not found
        assert seal or printed == outcome[1]
        for path, data in good.items():
            path.write_bytes(data)
    assert run(folder, FUNCTION) == (True, outcome[1])


@examples(50)
@given(st.data())
def test_entries_of_any_bytes_are_damaged_or_run(data):
    """Bytes from anywhere, and good ones with a few others: an entry is made of them, or Damaged."""
    walk = Walk()
    walk.start(double)
    good = data.draw(st.sampled_from(good_entries()))
    at = data.draw(st.integers(0, len(good)))
    noise = data.draw(st.binary(max_size=8))
    bad = good[:at] + noise + good[at + data.draw(st.sampled_from((0, len(noise)))) :]
    try:
        made = Entry(bad, walk, ())
    except Damaged:
        return
    assert callable(made.run)


def double(x):
    return x * 2 + CONSTANT


CONSTANT = weft.ones(2)


@functools.cache
def good_entries() -> tuple[bytes, ...]:
    """The entry of a function with a constant, as it is kept."""
    walk = Walk()
    walk.start(double)
    compiled = weft.jit.script(double)
    data = lower_program([compiled.function])
    words = (data.encode(), data.tables.inputs, data.callables, {}, {})
    return (encode(walk, compiled.qualified_name, *words),)


def test_files_are_for_their_owner_alone(folder):
    run(folder, FUNCTION)
    programs = folder / "cache" / "programs"
    assert programs.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in entries(folder)} == {0o600}
    for mode in (0o755, 0o770, 0o777):
        programs.chmod(mode)
        assert PROGRAMS.folder() is None
        assert not run(folder, FUNCTION)[0]
    programs.chmod(0o700)
    assert run(folder, FUNCTION)[0]
    programs.rename(folder / "elsewhere")
    programs.symlink_to(folder / "elsewhere")
    assert PROGRAMS.folder() is None


def test_another_owner_is_nobody_to_trust(folder, monkeypatch):
    run(folder, FUNCTION)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert PROGRAMS.folder() is None


def test_the_size_is_bounded(folder):
    files = Files("bounded", limit=10_000)
    for number in range(200):
        files.save(key(str(number)), bytes(1_000))
    sizes = [path.stat().st_size for path in (folder / "cache" / "bounded").iterdir()]
    assert sum(sizes) <= 10_000 + 64 * 1_032  # a few may come between two looks
    assert files.load(key("199")) == bytes(1_000)


def test_writers_at_the_same_time_leave_whole_files(folder):
    files = Files("shared", limit=2**20)

    def write(number: int) -> None:
        for _ in range(50):
            files.save("name", bytes([number]) * 10_000)
            held = files.load("name")
            assert held is not None and held == held[:1] * 10_000

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [path.name for path in (folder / "cache" / "shared").iterdir()] == ["name"]


def test_without_a_folder_programs_are_compiled(folder, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", "")
    assert run(folder, FUNCTION) == run(folder, FUNCTION) == (False, [3.0, 3.0])
    monkeypatch.setenv("WEFT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("WEFT_JIT_CACHE", "0")
    assert run(folder, FUNCTION) == run(folder, FUNCTION) == (False, [3.0, 3.0])
    assert not list((folder / "cache").glob("programs/*"))


# What a function that was found can do besides ----------------------------------------------------


def test_a_found_function_shows_what_a_compiled_one_shows(folder):
    source = HEAD + "@weft.jit.script\ndef f(x, n: int = 3):\n    'Adds.'\n    return x + n\n"
    run(folder, source)
    before = sys.modules["program"].f
    run(folder, source)
    after = sys.modules["program"].f
    assert isinstance(after, CachedFunction) and isinstance(after, weft.jit.ScriptFunction)
    for show in (repr, str, lambda f: (f.name, f.qualified_name, f.__name__, f.__doc__, f.__module__),
                 lambda f: str(f.graph), lambda f: f.code, lambda f: str(f.schema)):  # fmt: skip
        assert show(after) == show(before)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        after.nothing  # noqa: B018
    x = weft.ones(2, requires_grad=True)
    after(x, n=1).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_found_function_keeps_the_values_that_it_was_scripted_with(folder):
    source = HEAD + "K = 2\n@weft.jit.script\ndef f(x):\n    return x + K\n"
    run(folder, source)
    run(folder, source)
    program = sys.modules["program"]
    program.K = 5
    assert "value=2" in str(program.f.graph)  # compiled now
    x = weft.ones(2, requires_grad=True)
    assert program.f(x).tolist() == [3.0, 3.0]
    program.K = 2
    assert run(folder, source) == (True, [3.0, 3.0])


def test_a_trace_records_a_found_function(folder):
    run(folder, FUNCTION)
    run(folder, FUNCTION)
    f = sys.modules["program"].f
    traced = weft.jit.trace(lambda x: f(x) * 2, weft.ones(2))
    assert traced(weft.zeros(2)).tolist() == [2.0, 2.0]


def test_a_value_that_changes_between_two_scripts_is_not_kept_under_the_wrong_name(folder):
    """g was compiled with K = 2 and is not compiled again for f: its file must not say K = 3."""
    source = (
        HEAD
        + "K = 2\ndef g(x):\n    return x + K\n@weft.jit.script\ndef first(x):\n    return g(x)\n"
        "K = 3\n@weft.jit.script\ndef f(x):\n    return g(x)\n"
    )
    assert run(folder, source) == (False, [3.0, 3.0])
    honest = source.replace("K = 2\n", "K = 3\n", 1)
    assert run(folder, honest) == (False, [4.0, 4.0])
    assert run(folder, honest) == (True, [4.0, 4.0])


def test_a_name_that_is_one_of_a_compiled_module_too(folder):
    """The walk meets the module `x` of the globals, whose members lie in its compiled object."""
    source = (
        HEAD + "x = weft.jit.script(weft.nn.Sequential(weft.nn.Linear(2, 2)))\n"
        "@weft.jit.script\ndef f(x):\n    return x + 1\n"
    )
    assert run(folder, source)[1] == [2.0, 2.0]


def test_what_a_trace_compiles_is_looked_for_without_being_recorded(folder):
    """The variables around the call of `script` may be the tensors of the trace."""
    (folder / "padded.py").write_text(
        "import weft, functools\n\ndef f(y, like):\n"
        "    return weft.nn.functional.pad(y, [0, like.shape[-1] - y.shape[-1]])\n\n"
        "def decorated(f):\n    @functools.wraps(f)\n    def wrapper(*args):\n"
        "        return weft.jit.script(f)(*args)\n    return wrapper\n\nf = decorated(f)\n"
    )
    padded = importlib.import_module("padded")
    traced = weft.jit.trace(lambda x: padded.f(x[:, :-3], x), weft.ones(2, 8))
    assert traced(weft.ones(3, 9)).tolist() == [[1.0] * 6 + [0.0] * 3] * 3


# As metaclasses written in C may be: with a descriptor in the place of annotations.
KIND = type("Kind", (type,), {"__annotations__": vars(type)["__annotations__"]})


def test_walks_over_metaclasses_with_descriptors():
    def f(x):
        return x if KIND is None else -x

    walk = Walk()
    walk.start(f)
    assert walk.knows(KIND)
