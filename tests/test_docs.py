"""What the documents promise: examples run as printed, layers keep their direction."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import _C

ROOT = Path(__file__).resolve().parent.parent
OPERATOR_DOCS = ROOT / "src" / "weft" / "_ops" / "docs"


def test_readme_example_prints_what_it_says() -> None:
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 8 and results.failed == 0


@pytest.mark.parametrize(
    "page, examples", [("torchscript", 12), ("jit_fusion", 5), ("data", 5), ("sharing", 9)]
)
def test_examples_of_pages(page: str, examples: int) -> None:
    results = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False)
    assert results.attempted >= examples and results.failed == 0


def test_the_page_of_programs_is_current() -> None:
    command = [sys.executable, "tools/coverage.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"run python tools/coverage.py {done.stderr}"


#: packages that need another's, which is installed for the tests of parity only
EXTRAS = ("onnx", "utils.tensorboard")


def _modules_with_examples() -> dict[str, list[str]]:
    """The modules whose docstrings have examples that run, by package."""
    found: dict[str, list[str]] = {}
    root = ROOT / "src" / "weft"
    for path in sorted(root.rglob("*.py")):
        if re.search(r"^ *>>> (?!.*SKIP)", path.read_text(encoding="utf-8"), re.MULTILINE):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(["weft", *parts]).removesuffix(".__init__")
            extra = [package for package in EXTRAS if name.startswith(f"weft.{package}")]
            found.setdefault(extra[0] if extra else parts[0], []).append(name)
    return found


MODULES = _modules_with_examples()
PACKAGES = [pytest.param(p, marks=pytest.mark.parity if p in EXTRAS else ()) for p in MODULES]


@pytest.mark.filterwarnings("ignore:range is deprecated")
@pytest.mark.parametrize("package", PACKAGES)
def test_examples_of_docstrings(package: str) -> None:
    """The name `weft` is known in all of them."""
    failed = []
    for name in MODULES[package]:
        results = doctest.testmod(importlib.import_module(name), extraglobs={"weft": weft})
        if results.failed or not results.attempted:
            failed.append(name)
    assert not failed


# ---- operators of the table ----


def _examples(text: str, name: str, globs: dict[str, Any] | None = None) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(text, {"weft": weft, **(globs or {})}, name, None, 0)


def _operators() -> dict[str, str]:
    """The docstrings of the operators that programs can name, by where they find them."""
    kinds = (_C._OpFunction, _C._OpMethod)
    places = {"weft": _C._functions, "nn": vars(_C._nn), "Tensor": vars(weft.Tensor)}
    places |= {name: vars(getattr(weft, name)) for name in ("linalg", "special", "functional")}
    found = {
        f"{place}.{name}": value.__doc__
        for place, names in places.items()
        for name, value in list(names.items())
        if isinstance(value, kinds)
    }
    return {name: text for name, text in found.items() if not name.split(".")[1].startswith("_")}


def test_operators_have_sections_and_an_example() -> None:
    operators = _operators()
    assert len(operators) > 800
    for name, text in operators.items():
        missing = [part for part in ("Raises: ", ">>> ") if part not in text]
        if name.split(".")[1] not in NO_TENSORS:
            missing += [part for part in ("Shape: ", "Dtype: ") if part not in text]
        assert not missing, f"{name}: expected {missing}, got {text}"


#: operators that return numbers and truth values
NO_TENSORS = ("allclose", "equal")


@pytest.mark.parametrize("family", sorted(path.stem for path in OPERATOR_DOCS.glob("*.txt")))
def test_examples_of_operators(family: str) -> None:
    runner = doctest.DocTestRunner()
    blocks = (OPERATOR_DOCS / f"{family}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    for name in (block.split()[0] for block in blocks if ">>> " in block):
        text = getattr(_C._aten, name).__doc__
        test = _examples(text[text.index(">>> ") :], name)
        assert test.examples and runner.run(test).failed == 0, name


# ---- packages ----

#: packages in which every public function and class has an example
COMPLETE = (
    "_functions.calculus", "_functions.elements",
    "_functions.layouts", "_functions.low_rank", "_functions.matrices", "_functions.norms",
    "_functions.segments",
    "_functions.shapes", "_functions.spectra", "_functions.stacking", "_functions.statistics",
    "fft", "func", "functional", "linalg", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "optim",
    "optim.lr_scheduler", "random", "signal.windows", "sparse", "special",
)  # fmt: skip
#: of these, functions say their dtypes and errors, but for those that cannot fail or have no dtype
SAID = ("fft", "functional", "linalg", "nn.functional")
UNSAID = (
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "sigmoid", "tanh", "vander", "LeastSquares"
)  # fmt: skip
_HELPERS = (
    "weft", "weft._functions.out", "weft._runtime.data_dependent", "weft._tensor.aliases"
)  # fmt: skip


def _public(package: str) -> dict[str, Any]:
    """Functions and classes that are written in Python. (A decorated one is of another module's globals, so
    that doctest.testmod passes it over.)"""
    module = importlib.import_module(f"weft.{package}")
    return {
        name: value
        for name, value in vars(module).items()
        if (inspect.isfunction(inspect.unwrap(value)) or inspect.isclass(value))
        and name in getattr(module, "__all__", [n for n in vars(module) if n[0] != "_"])
        and value.__module__.startswith("weft")
        and value.__module__ not in _HELPERS
        and value is not weft.linalg.LinAlgError
    }


@pytest.mark.parametrize("name", [*weft.special._BESSEL, *weft.special._POLYNOMIALS])
def test_examples_of_functions_that_are_made_at_first_use(name: str) -> None:
    test = _examples(getattr(weft.special, name).__doc__, name)
    assert test.examples and doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("package", COMPLETE)
def test_public_names_have_examples(package: str) -> None:
    runner = doctest.DocTestRunner()
    names = _public(package)
    assert names
    for name, value in names.items():
        text = inspect.getdoc(value) or ""
        globs = {**vars(sys.modules[value.__module__]), "weft": weft}
        test = _examples(text, f"{package}.{name}", globs)
        assert test.examples, f"{package}.{name}: expected an example, got {text!r}"
        if package in SAID and name not in UNSAID:
            said = text.partition(">>> ")[0]
            assert re.search("(?i)error|raise", said), f"{package}.{name}: expected errors"
            assert re.search("(?i)dtype|float|integer|complex|bool", said), (
                f"{package}.{name}: expected dtypes"
            )
        assert runner.run(test).failed == 0


def test_what_the_compiler_prints_is_up_to_date() -> None:
    docs = _tool("docs")
    page = docs.PAGE.read_text(encoding="utf-8")
    regions = dict(docs.REGION.findall(page))
    assert set(regions) == set(docs.REGIONS)
    for name, make in docs.REGIONS.items():
        assert regions[name] == make(), f"{name}: run python tools/docs.py"


def test_files_of_the_readers_path() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    path = re.findall(r"^\d+\. `([^`]+)`: ", text, re.MULTILINE)[:14]
    assert len(path) == 14 and path[-1].startswith("csrc/runtime/")
    lines = [len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in path]
    assert sum(lines) <= 3500  # an afternoon's


def test_layers() -> None:
    command = [sys.executable, str(ROOT / "tools" / "layers.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_house() -> None:
    command = [sys.executable, str(ROOT / "tools" / "house.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_house_finds_offences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house = _tool("house")
    for name, count in {"csrc/ops/tile.cpp": 9_999, "csrc/new/a.h": 1, "tools/fuzz.py": 1}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n" * count)
    house.ROOT = tmp_path
    assert house.main() == 1
    tile = next(each for each in house.PURPOSES if each.name == "tile driver")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "csrc/new/a.h: expected a purpose in tools/house.py, got none",
        f"tile driver: expected at most {max(tile.budget, tile.limit)} lines, got 9999",
    ]


def _tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def layers() -> Any:
    return _tool("layers")


def test_layers_finds_offences(layers: Any, tmp_path: Path) -> None:
    for name, text in {
        "csrc/core/a.h": '#include "ops/tile.h"\n#include "core/b.h"\n',
        "csrc/core/c.h": '#include "ops_unary.h"\n',
        "csrc/ops/b.cpp": '#include "builtin_bodies.h"\n#include "ops.h"\n',
        "src/weft/_ops/x.py": "import numpy\nimport re\n",
        "src/weft/_tensor.py": "from weft import nn\n",
        "src/weft/nn/y.py": "import weft\nfrom weft.optim import SGD\n",
        "src/weft/optim/z.py": "from weft import Tensor\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    layers.ROOT = tmp_path
    found = [*layers.check_cpp(), *layers.check_python()]
    assert found == [
        "csrc/core/a.h: core must not include ops/tile.h (ops)",
        "csrc/core/c.h: core must not include ops_unary.h (ops)",
        "csrc/ops/b.cpp: ops must not include builtin_bodies.h (runtime)",
        "src/weft/_ops/x.py: weft._ops.x must not import numpy",
        "src/weft/_tensor.py: weft._tensor must not import weft.nn",
        "src/weft/nn/y.py: weft.nn.y must not import weft.optim",
    ]


def test_circles_of_imports(layers: Any, tmp_path: Path) -> None:
    for name, text in {
        "weft/__init__.py": "from weft import a\n",
        "weft/a.py": "import weft.b\n",
        "weft/b.py": "def f():\n    from weft.c import x\n    import re\n    __import__('ast')\n"
        "    return run(import_module, 'json')\n",
        "weft/c.py": "from .a import y\nfrom weft.d import z\n",
        "weft/d.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import weft.c\n"
        "else:\n    import weft.e\n",
        "weft/e.py": "from weft import d\n",
        "weft/f/__init__.py": "def __getattr__(name):\n    return lazy.find('weft.f', name, 'weft.f.g')\n",
        "weft/f/g.py": "import weft.f\n",
        "weft/h.py": "i = lazy.module('weft.i')\n",
        "weft/i.py": "import weft.h\n__getattr__ = lazy.names('weft.i', {'a': 'weft.i'})\n",
    }.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    layers.ROOT = tmp_path
    assert layers.circles() == [
        ["weft.a", "weft.b", "weft.c"],
        ["weft.h", "weft.i"],
        ["weft.f", "weft.f.g"],
        ["weft.d", "weft.e"],
    ]
    inside, first_use = layers.late_imports()
    assert +inside == {"weft.b": 4, "weft.d": 1, "weft.f": 1}
    assert +first_use == {"weft.h": 1, "weft.i": 1}
    layers.LARGEST_CIRCLE, layers.CIRCLES = 2, 1
    layers.LATE = {"imports inside functions": 5, "imports at first use": 2}
    assert list(layers.check_circles()) == [
        "src/weft: 4 circles of imports, more than 1",
        "src/weft: 3 files import each other, more than 2: weft.a weft.b weft.c",
        "src/weft: 6 imports inside functions, more than 5",
    ]


def test_files_inside_that_import_the_public_package(layers: Any, tmp_path: Path) -> None:
    for name, text in {
        "weft/__init__.py": "from weft import _C, a\n",
        "weft/a.py": "from weft import _C\nfrom weft._C import Tensor\nfrom weft import b\n",
        "weft/b.py": "import weft\n",
        "weft/c.py": "def f():\n    from weft import Tensor\n",
        "weft/compat/d.py": "import weft\n",
    }.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    layers.ROOT = tmp_path
    assert layers.public_imports() == ["weft.b", "weft.c"]
    layers.PUBLIC_IMPORTS = layers.CIRCLES = layers.LATE_IMPORTS = 1
    assert list(layers.check_circles()) == [
        "src/weft: 2 files import weft itself, more than 1",
    ]


def test_the_readme_counts_what_agrees_with_pytorch() -> None:
    lines = (ROOT / "tests" / "parity" / "expected.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split()[1:] for line in lines if not line.startswith("#")]
    agree = sum(all(len({*cell.split("/")}) == 1 for cell in row) for row in rows)
    said = f"samples of {len(rows)} are compared, and {agree} agree in every dtype"
    assert said in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
