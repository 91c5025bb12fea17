"""Writes the public names of PyTorch, module by module, as a table: src/weft/compat/names.txt.

    python tools/torch_names.py [--usage names.csv]

Names only, read from the installed PyTorch by importing each public module. A line is a module and
its names; `name=torch.other` says that PyTorch has the same object at a shorter place. Private
modules and names are listed where programs use them: the first column of the table after --usage,
whose other names are ignored. Without --usage the private names of the table before stay.
"""

from __future__ import annotations

import argparse
import ast
import csv
import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

TABLE = Path(__file__).resolve().parent.parent / "src" / "weft" / "compat" / "names.txt"


def is_private(name: str) -> bool:
    """Whether a part of a dotted name begins with an underscore."""
    return any(part.startswith("_") for part in name.split("."))


def public_modules(package: ModuleType) -> Iterator[str]:
    """The public modules below a package; packages that cannot be imported end there."""
    for info in pkgutil.iter_modules(getattr(package, "__path__", ()), package.__name__ + "."):
        if is_private(info.name):
            continue
        yield info.name
        if info.ispkg and (module := imported(info.name)) is not None:
            yield from public_modules(module)


def imported(name: str) -> ModuleType | None:
    """A module, or None for one that needs what is not installed here."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        print(f"{name}: names from its source, because {error}", file=sys.stderr)
        return None


def names_of(name: str) -> dict[str, Any]:
    """The public names of a module and what they stand for: None where it cannot be imported."""
    module = imported(name)
    if module is None:
        return dict.fromkeys(names_in_source(name))
    given = getattr(module, "__all__", ())
    # Imported modules of others, and names of typing and the like, are no part of the module.
    own = {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_") and key != "TYPE_CHECKING" and is_torchs(value)
    }
    return own | {key: getattr(module, key, None) for key in given if key.isidentifier()}


def is_torchs(value: Any) -> bool:
    """Whether PyTorch defines the value, as far as it says: no module, no type variable."""
    if isinstance(value, ModuleType | TypeVar):
        return False
    home = getattr(value, "__module__", None)
    return not isinstance(home, str) or home.partition(".")[0] == "torch"


def names_in_source(name: str) -> list[str]:
    """The public names that statements of a module define or import."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return []
    found = []
    for node in ast.parse(Path(spec.origin).read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.ImportFrom):
            found += [alias.asname or alias.name for alias in node.names]
    return [each for each in found if not each.startswith("_") and each != "annotations"]


def private_names(usage: Path | None) -> dict[str, dict[str, Any]]:
    """Private modules with all of their public names, and private names of public modules."""
    if usage is None:
        wanted = [f"{m}.{n}" for m, names in read(TABLE).items() for n in names]
        wanted += list(read(TABLE))
    else:
        with usage.open() as file:
            wanted = [row[0] for row in csv.reader(file) if row]
    found: dict[str, dict[str, Any]] = {}
    for dotted in wanted:
        if dotted.startswith("torch.") and is_private(dotted):
            add_private(found, dotted)
    return found


def add_private(found: dict[str, dict[str, Any]], dotted: str) -> None:
    """Adds the modules on the way to a private name, and its last part found in a module."""
    name, module = "torch", importlib.import_module("torch")
    for part in dotted.split(".")[1:]:
        value = getattr(module, part, None)
        inner = f"{name}.{part}"
        if not isinstance(value, ModuleType) and hasattr(module, "__path__"):
            value = imported(inner) if importlib.util.find_spec(inner) else value
        if not isinstance(value, ModuleType):
            if value is not None:
                found.setdefault(name, {})[part] = value
            return
        name, module = inner, value
        if is_private(name) and name not in found:
            found[name] = names_of(name) if name != "torch._C" else {}


def homes(tables: dict[str, dict[str, Any]]) -> dict[int, str]:
    """The shortest public place of each function, class and dtype, by identity."""
    found: dict[int, str] = {}
    places = [f"{module}.{name}" for module in tables for name in tables[module]]
    for place in sorted(places, key=lambda place: (is_private(place), place.count("."), place)):
        module, _, name = place.rpartition(".")
        value = tables[module][name]
        if callable(value) or type(value).__name__ in ("dtype", "layout", "memory_format"):
            found.setdefault(id(value), place)
    return found


def read(path: Path) -> dict[str, list[str]]:
    """The table as it stands: names by module."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {module: [n.partition("=")[0] for n in names.split()] for module, _, names in rows}


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--usage", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")
    tables = {name: names_of(name) for name in ("torch", *public_modules(torch))}
    for module, names in private_names(given.usage).items():
        tables[module] = tables.get(module, {}) | names
    # torch.ops and the like are objects, whatever their types say.
    tables = {k: v for k, v in tables.items() if k == "torch" or k.rpartition(".")[0] in tables}
    shortest = homes(tables)
    version = str(torch.__version__).partition("+")[0]
    lines = [f"# The names of PyTorch {version}, by tools/torch_names.py."]
    for module in sorted(tables):
        words = []
        for name in sorted(tables[module]):
            home = shortest.get(id(tables[module][name]), f"{module}.{name}")
            words.append(name if home == f"{module}.{name}" else f"{name}={home}")
        lines.append(f"{module}: {' '.join(words)}")
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
