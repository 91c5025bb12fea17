"""Checks that includes and imports go one way, and reports files that grow too long.

    python tools/layers.py [--report]

Exits with 1 and one line per offence: an include or import against the direction, a file of more
than 600 lines that is no test, more or larger circles of imports than the limits below, more
imports inside functions or at first use, more files inside that import the public package. --report
also lists the longest files, the lines of each folder and the circles. What only type checkers
import (`if TYPE_CHECKING:`) is in no circle: it cannot fail.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 600
# Ratchets: lower them whenever the numbers fall.
LARGEST_CIRCLE = 6  # files of src/weft that import each other
CIRCLES = 4
LATE = {
    "imports inside functions": 29,  # and other blocks; calls of import_module, lazy.find and value
    "imports at first use": 48,  # lazy.module and lazy.names: said at the head of a file
}
PUBLIC_IMPORTS = 0  # files inside that import the public package, for the names that it shows

# A layer may use itself and every layer before it.
CPP_LAYERS = ("core", "ops", "autograd", "runtime", "capi", "bindings")
# Headers made by the generators, and the first layer that may include them; those of all families
# too. "ops.h" declares the operators themselves, by core types only: the bodies in csrc/ops call
# each other through it.
OF_FAMILIES = re.compile(r"(ops|native)(_\w+)?\.h")
GENERATED = {
    "builtin_bodies.h": "runtime",
    "builtin_scalars.h": "runtime",
    "jit_instructions.h": "runtime",
}

# What each part of the package may import, besides the standard library and itself.
PYTHON_RULES: dict[str, tuple[str, ...]] = {
    "weft._ops": ("weft._kernels.lang", "weft._kernels.types"),
    "weft._kernels": ("weft._ops", "llvmlite"),
    "weft._command": ("weft", "weft.jit", "weft.serialization", "numpy"),
    "weft.compat": ("weft", "weft.nn", "weft.serialization"),
    "weft.compiler": ("weft", "weft.nn"),
    "weft.distributed": ("weft", "weft.nn", "weft.optim", "weft.serialization", "mpi4py"),
    "weft.distributions": ("weft", "weft.nn"),
    "weft.export": ("weft", "weft.nn", "weft.serialization", "weft.utils._pytree"),
    "weft.func": ("weft", "weft.utils._pytree"),
    "weft.fx": ("weft", "weft.nn", "weft.serialization", "weft.utils"),
    "weft.hub": ("weft", "weft.serialization"),
    "weft.jit.aot": ("weft", "weft.nn", "weft.serialization"),
    "weft.jit.archive": ("weft", "weft.nn", "weft.serialization"),
    "weft.jit.module_methods": ("weft", "weft.nn"),
    "weft.jit.script_module": ("weft", "weft.nn"),
    "weft.jit.tracing": ("weft", "weft.nn", "numpy"),
    "weft.library": ("weft", "weft.utils._pytree", "PIL"),
    "weft.multiprocessing": ("weft",),
    # (what type checkers alone import counts, too)
    "weft.nn": ("weft", "weft.utils.hooks", "weft.utils._pytree", "typing_extensions"),
    "weft.onnx": (
        "weft",
        "weft.func",
        "weft.jit",
        "weft.utils._pytree",
        "numpy",
        "onnx",
        "onnxruntime",
    ),
    "weft.optim": ("weft", "weft.nn", "weft.utils.hooks"),
    "weft.overrides": ("weft", "weft.nn", "weft.optim", "weft.serialization", "weft.utils"),
    "weft.serialization": ("weft", "weft.nn", "numpy"),
    "weft.utils": (
        "weft",
        "weft.multiprocessing",
        "numpy",
        "setuptools",
        "tensorboard",
        "google.protobuf",
    ),
}
# What each folder of the compiler may import of its others; the modules beside them may import all.
JIT_RULES: dict[str, tuple[str, ...]] = {
    "ir": (),
    "cache": ("memo", "python_classes"),
    "codegen": ("ir", "schemas", "operator_facts"),
    "passes": ("ir", "schemas", "codegen"),
    "frontend": ("ir", "cache", "schemas", "memo", "python_classes", "python_functions"),
    "tracing": (
        *("ir", "schemas", "schema_parts", "passes", "frontend", "execution"),
        *("script", "module_methods", "script_function", "compiled_function", "script_module"),
    ),
    "native": ("ir", "cache", "operator_facts", "recursion"),
}
# Parts that use weft as programs do.
PUBLIC_USERS = ("weft.__main__", "weft._command", "weft.compat")
# Parts that stand above the rest of the package: only weft/__init__.py may import them.
UPPER = ("weft.nn", "weft.optim", "weft.serialization", "weft.utils")

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def check_cpp() -> Iterator[str]:
    """Offences of includes in csrc/."""
    for path in sorted([*ROOT.glob("csrc/**/*.h"), *ROOT.glob("csrc/**/*.cpp")]):
        relative = path.relative_to(ROOT / "csrc")
        layer = relative.parts[0]
        if layer not in CPP_LAYERS:
            continue
        for include in INCLUDE.findall(path.read_text()):
            first = "ops" if OF_FAMILIES.fullmatch(include) else include.split("/")[0]
            used = GENERATED.get(include, first)
            if used in CPP_LAYERS and CPP_LAYERS.index(used) > CPP_LAYERS.index(layer):
                yield f"csrc/{relative}: {layer} must not include {include} ({used})"


class Import(NamedTuple):
    """One module that a statement imports."""

    name: str
    line: int
    in_function: bool
    for_types: bool


@functools.cache
def imported(path: Path, module: str) -> tuple[Import, ...]:
    """What a file imports anywhere, by full names."""
    return tuple(_imported(path, module))


def _imported(path: Path, module: str) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    waiting: list[tuple[ast.AST, bool, bool]] = [(parsed(path), False, False)]
    while waiting:
        node, inside, types = waiting.pop()
        line = getattr(node, "lineno", 0)
        for name in names_imported(node, package):
            yield Import(name, line, inside, types)
        for name in loaded(node, path, package):
            yield Import(name, line, True, types)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        guarded = node.body if is_for_types(node) else []
        for child in ast.iter_child_nodes(node):
            waiting.append((child, inside, types or child in guarded))


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


def names_imported(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that one statement of a module of `package` imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parts, base] if base else parts)
        # `from weft import nn` imports a part of the package, not only names of it.
        nested = [f"{base}.{alias.name}" for alias in node.names]
        yield from (name if is_module(name) else base for name in nested)


def loaded(node: ast.AST, path: Path, package: str) -> set[str]:
    """The modules that a call of a loader may import: the one that it is given, or those among the
    texts of the file, in full, within the package, or behind the start of an f-string."""
    if not isinstance(node, ast.Call) or not (is_loader(node) or is_lazy(node)):
        return set()
    given = next((each for each in node.args if not isinstance(each, ast.Attribute)), None)
    if is_lazy(node) and not is_named(node):
        found = {m for t in texts_of(path) for w in t.split() for m in modules_named(w, package)}
        return found - {"weft"}  # which finds, and is not found
    if isinstance(given, ast.Constant):
        return modules_named(str(given.value), package) or {str(given.value)}
    start = given.values[0] if isinstance(given, ast.JoinedStr) else None
    prefix = str(start.value).rstrip(".") if isinstance(start, ast.Constant) else ""
    names = {word for text in texts_of(path) for word in text.split()}
    found = {m for name in names for m in modules_named(name, prefix or package)}
    return found - {"weft"} or {"importlib"}  # a word of docstrings


def texts_of(path: Path) -> Iterator[str]:
    """The texts in a file, and in the table of what its package exports."""
    for each in filter(Path.is_file, (path, path.with_name("_exports.py"))):
        constants = (node for node in ast.walk(parsed(each)) if isinstance(node, ast.Constant))
        yield from (node.value for node in constants if isinstance(node.value, str))


def modules_named(text: str, package: str) -> set[str]:
    """The module of ours that a text names, in full or within a package."""
    return {text, f"{package}.{text.lstrip('.')}"} & modules().keys()


def is_import(node: ast.AST) -> bool:
    """Whether it is a statement that imports."""
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether it is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def is_loader(call: ast.Call) -> bool:
    """Whether a call imports: import_module(name), run(import_module, name)."""
    called = [call.func, *call.args[:1]]
    names = [getattr(each, "id", getattr(each, "attr", "")) for each in called]
    return names[0] == "__import__" or "import_module" in names


def is_lazy(call: ast.Call) -> bool:
    """Whether a call finds what a package imports at first use (weft._runtime.lazy)."""
    called = ast.unparse(call.func).lstrip("_")
    return called in ("lazy.find", "lazy.module", "lazy.names", "lazy.value")


def is_named(call: ast.Call) -> bool:
    """Whether a call of lazy.module or lazy.value says the module itself."""
    is_text = isinstance(call.args[0], ast.Constant)
    return is_text and call.func.attr in ("module", "value")  # type: ignore[attr-defined]


def is_at_head(node: ast.AST) -> bool:
    """Whether it is a call of lazy.module or lazy.names: what a file says at its head to import at
    first use."""
    called = ast.unparse(node.func).lstrip("_") if isinstance(node, ast.Call) else ""
    return called in ("lazy.module", "lazy.names")


def is_module(name: str) -> bool:
    """Whether a dotted name is a module of our package."""
    if name == "weft._C":
        return True
    path = ROOT / "src" / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def within(name: str, part: str) -> bool:
    """Whether `name` is the module `part` or lies below it."""
    return name == part or name.startswith(part + ".")


@functools.cache
def modules() -> dict[str, Path]:
    """The modules of src/weft by name."""
    found = {}
    for path in sorted(ROOT.glob("src/weft/**/*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def check_python() -> Iterator[str]:
    """Offences of imports in src/weft."""
    for module, path in modules().items():
        part = next((p for p in PYTHON_RULES if within(module, p)), None)
        for name in dict.fromkeys(each.name for each in imported(path, module)):
            if name.split(".")[0] in sys.stdlib_module_names:
                continue
            if not allowed(module, part, name):
                yield f"{path.relative_to(ROOT)}: {module} must not import {name}"


def check_circles() -> Iterator[str]:
    """Circles and imports inside functions beyond the limits."""
    found = circles()
    if len(found) > CIRCLES:
        yield f"src/weft: {len(found)} circles of imports, more than {CIRCLES}"
    if found and len(found[0]) > LARGEST_CIRCLE:
        large = f"{len(found[0])} files import each other, more than {LARGEST_CIRCLE}"
        yield f"src/weft: {large}: {' '.join(found[0])}"
    for (what, limit), late in zip(LATE.items(), late_imports(), strict=True):
        if (count := sum(late.values())) > limit:
            yield f"src/weft: {count} {what}, more than {limit}"
    public = public_imports()
    if len(public) > PUBLIC_IMPORTS:
        yield f"src/weft: {len(public)} files import weft itself, more than {PUBLIC_IMPORTS}"


def public_imports() -> list[str]:
    """The modules inside that take names from the public package, which takes them from where they
    are defined: so the order of imports matters, and the layers are not seen."""
    return [
        module
        for module, path in modules().items()
        if module != "weft" and not any(within(module, user) for user in PUBLIC_USERS)
        if any(each.name == "weft" and not each.for_types for each in imported(path, module))
    ]


def late_imports() -> tuple[Counter[str], Counter[str]]:
    """By module, how many statements below its own level import something and how many calls import
    a module by its name; and what it says at its head to import at first use. What only type
    checkers import does not count."""
    inside: Counter[str] = Counter()
    first_use: Counter[str] = Counter()
    for module, path in modules().items():
        waiting: list[ast.AST] = [each for each in parsed(path).body if not is_import(each)]
        while waiting:
            node = waiting.pop()
            is_call = isinstance(node, ast.Call) and (is_loader(node) or is_lazy(node))
            first_use[module] += is_at_head(node)
            inside[module] += (is_import(node) or is_call) and not is_at_head(node)
            guarded = node.body if is_for_types(node) else []
            waiting.extend(each for each in ast.iter_child_nodes(node) if each not in guarded)
    return inside, first_use


def circles() -> list[list[str]]:
    """The modules that import each other, also by way of others; the largest circle first. A
    package imports the modules, too, whose names it finds at first use."""
    graph = {
        module: {
            each.name
            for each in imported(path, module)
            if not each.for_types and each.name in modules() and each.name != module
        }
        for module, path in modules().items()
    }
    # Kosaraju: forwards, the last one done reaches all of its circle; backwards it reaches no more.
    order: dict[str, None] = {}
    for module in graph:
        walk(graph, module, set(order), order)
    back: dict[str, set[str]] = {module: set() for module in graph}
    for module, used in graph.items():
        for each in used:
            back[each].add(module)
    seen: set[str] = set()
    found = []
    for module in reversed(order):
        group: dict[str, None] = {}
        walk(back, module, seen, group)
        seen |= group.keys()
        found.append(sorted(group))
    return sorted((each for each in found if len(each) > 1), key=len, reverse=True)


def walk(graph: dict[str, set[str]], start: str, seen: set[str], done: dict[str, None]) -> None:
    """Adds what `start` reaches and was not `seen` to `done`, each behind all that it reaches."""
    waiting = [(start, False)]
    visited: set[str] = set()
    while waiting:
        node, is_left = waiting.pop()
        if is_left:
            done[node] = None
        elif node not in seen and node not in visited:
            visited.add(node)
            waiting.append((node, True))
            waiting.extend((each, False) for each in graph[node])


def allowed(module: str, part: str | None, name: str) -> bool:
    """Whether `module` (of a ruled part, or of the rest of the package) may import `name`."""
    folder = module.split(".")[2] if within(module, "weft.jit") and module != "weft.jit" else ""
    if folder in JIT_RULES and within(name, "weft.jit"):
        mine = (folder, *JIT_RULES[folder])
        return any(within(name, f"weft.jit.{other}") for other in mine)
    if folder == "ir":  # the standard library only
        return False
    if part is None:
        return module == "weft" or not any(within(name, upper) for upper in UPPER)
    if within(name, part):
        return True
    # "weft" stands for the package without its upper parts, which need a rule of their own.
    upper = next((u for u in UPPER if within(name, u)), None)
    for rule in PYTHON_RULES[part]:
        if rule == "weft" and upper is None and within(name, "weft"):
            return True
        if rule != "weft" and within(name, rule):
            return True
    return False


def lengths() -> dict[Path, int]:
    """Lines of every source file."""
    patterns = ("csrc/**/*.h", "csrc/**/*.cpp", "src/**/*.py", "tools/**/*.py", "tests/**/*.py")
    patterns += ("bench/**/*.py", "examples/**/*.py")
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in files}


def report(lines: dict[Path, int]) -> None:
    """Prints the lines of each folder and the ten longest files."""
    folders: Counter[str] = Counter()
    for path, count in lines.items():
        depth = 3 if path.parts[0] == "src" else 2
        folders["/".join(path.parent.parts[:depth])] += count
    for folder, count in sorted(folders.items()):
        print(f"{count:7,}  {folder}")
    print(f"{sum(lines.values()):7,}  in all; the longest:")
    for path, count in sorted(lines.items(), key=lambda item: -item[1])[:10]:
        print(f"{count:7,}  {path}")
    for what, late in zip(LATE, late_imports(), strict=True):
        print(f"{sum(late.values()):7,}  {what}; the most:")
        for module, count in late.most_common(5):
            print(f"{count:7,}  {module}")
    print(f"{len(public_imports()):7,}  files inside that import weft itself")
    for circle in circles():
        print(f"{len(circle):7,}  files in a circle: {' '.join(circle)}")


def main() -> int:
    """Checks, prints, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="also print sizes")
    options = parser.parse_args()
    lines = lengths()
    offences = [*check_cpp(), *check_python(), *check_circles()]
    for path, count in lines.items():
        if count > LONGEST and path.parts[0] != "tests":
            offences.append(f"{path}: {count} lines, more than {LONGEST}")
    if options.report:
        report(lines)
    for offence in offences:
        print(offence)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
