"""Writes docs/programs.md: which names of PyTorch are real under `weft run`, and which raise.

    python tools/coverage.py [--check] [--usage names.csv]

The names are those of src/weft/compat/names.txt, asked of the weft that is imported. --check writes
nothing and exits with 1 where the page is another one. --usage prints which names of a table
(columns name, count, number_of_client_projects) resolve, weighted by the projects that use them.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import weft
import weft.compat.torch as torch
from weft.compat import names

PAGE = Path(__file__).resolve().parent.parent / "docs" / "programs.md"
ABSENT = object()

HEAD = """# Other people's programs

    weft run script.py [arguments]
    weft run -m module [arguments]
    import weft.compat.torch        # in a program: from here on `import torch` means weft

Under the name torch, every public module of PyTorch {version} can be imported. A name in it is
weft's own, or a placeholder:

- A placeholder can be mentioned: imported, given as a base class, an annotation or a default,
  asked for in `isinstance` (which answers False).
- Where it is used - called, a derived class made, its value read - it raises `NotImplementedError:
  torch.x.name: expected a name that weft has, got one it has not yet`.
- `hasattr(torch.x, "name")` and `getattr(torch.x, "name", default)` answer honestly: a name that
  weft lacks is not there. Programs probe for newer or optional parts (`float8_e4m3fn`, `xpu`,
  `compile`) and have another way where they are missing.
- A name that PyTorch has not raises AttributeError, as there.

`torch.__version__` is "{version}", the PyTorch whose behaviour weft has, and compares by numbers;
`importlib.metadata.version("torch")` says the same. `weft.__version__` is weft's. The types of
tensors, parameters, dtypes and devices say `torch` in `__module__` once the name is installed.
Processes that a program under `weft run` starts import weft as torch, too.

`python tools/coverage.py` writes what follows: {real} of {total} public names are real, each
counted where PyTorch has it at its shortest place. Other devices, distributed work beyond one
process and quantised tensors are outside.
"""


class Module(NamedTuple):
    """A public module of PyTorch, and its names that are not another module's."""

    name: str
    real: list[str]
    raising: list[str]


def is_private(name: str) -> bool:
    """Whether a part of a dotted name begins with an underscore."""
    return any(part.startswith("_") for part in name.split("."))


def modules() -> Iterator[Module]:
    """The public modules with names of their own."""
    for name in names.modules():
        if is_private(name):
            continue
        own = [
            each
            for each, home in names.names(name).items()
            if home == f"{name}.{each}" and each[0] != "_" and not names.is_module(home)
        ]
        if own:
            real = [n for n in own if is_real(name, n)]
            yield Module(name, real, [n for n in own if n not in real])


def is_real(module: str, name: str) -> bool:
    """Whether a module has a name. Where it needs a package that is missing, its text tells."""
    try:
        return getattr(importlib.import_module(module), name, ABSENT) is not ABSENT
    except ModuleNotFoundError:
        path = source(module)
        return path.exists() and f'"{name}"' in path.read_text()


def source(module: str) -> Path:
    """The file of a module that may not be importable."""
    path = Path(weft.__file__).parent.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def page() -> str:
    """The text of docs/programs.md."""
    found = list(modules())
    real = sum(len(each.real) for each in found)
    total = real + sum(len(each.raising) for each in found)
    lines = [HEAD.format(version=torch.__version__, real=f"{real:,}", total=f"{total:,}")]
    lines += ["## Modules with real names", "", "| module | real | raise |", "|---|---|---|"]
    for each in found:
        if each.real:
            raising = " ".join(f"`{name}`" for name in each.raising)
            lines.append(f"| {each.name} | {len(each.real)} | {raising} |")
    lines += ["", "## Modules whose names all raise", ""]
    lines += [", ".join(f"`{each.name}`" for each in found if not each.real)]
    return "\n".join(lines) + "\n"


# ---- what programs use ----


def resolves(dotted: str) -> bool:
    """Whether a name as programs write it is weft's: `torch.a.b`, `Tensor.x`, `nn.Module.x`."""
    layer = torch.nn.Linear(1, 1)
    starts = {
        "Tensor": torch.ones(1),
        "nn.Module": layer,
        "optim.Optimizer": torch.optim.SGD(layer.parameters(), lr=0.1),
        "torch": torch,
    }
    start = next((each for each in starts if dotted == each or dotted.startswith(each + ".")), "")
    value: Any = starts.get(start, torch)
    for part in filter(None, dotted.removeprefix(start).split(".")):
        value = value_of(value, part)
        if value is ABSENT:
            return False
    # An empty module only says that PyTorch has one.
    return not (isinstance(value, ModuleType) and is_empty(value))


def value_of(value: Any, name: str) -> Any:
    """An attribute, or what stands for its absence. One that raises for this value is there."""
    try:
        found = getattr(value, name, ABSENT)
    except RuntimeError:
        return None
    if found is ABSENT and isinstance(value, ModuleType):
        return submodule(f"{value.__name__}.{name}")
    return found


def submodule(name: str) -> Any:
    """A module that programs import by its name, as private ones are."""
    name = name.replace("weft", "torch", 1)
    try:
        return importlib.import_module(name)
    except ImportError:
        return ABSENT


def is_empty(module: ModuleType) -> bool:
    """Whether weft has nothing at the place of a module of PyTorch."""
    return module.__name__.startswith("torch.") and not hasattr(module, "__file__")


def report(usage: Path) -> None:
    """Prints the share of the names that resolve, and those that do not, the most used first."""
    with usage.open() as file:
        rows = [
            (row["name"], int(row["number_of_client_projects"])) for row in csv.DictReader(file)
        ]
    missing = [(name, projects) for name, projects in rows if not resolves(name)]
    for name, projects in missing:
        print(f"{projects:5} {name}")
    for title, least in (("all names", 0), ("names of 3 projects or more", 3)):
        uses = [projects for _, projects in rows if projects >= least]
        lost = [projects for _, projects in missing if projects >= least]
        share = 1 - sum(lost) / sum(uses)
        print(f"{title}: {len(uses) - len(lost)} of {len(uses)} resolve, {share:.1%} by projects")


def main() -> int:
    """Writes or checks the page, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 for another page")
    parser.add_argument("--usage", type=Path, help="print the share of these names instead")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.usage:
        report(given.usage)
        return 0
    text = page()
    if given.check:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
