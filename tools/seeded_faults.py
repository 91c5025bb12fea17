"""What the tests really find: seeds one-line faults, one at a time, and says which test fails.

    python tools/seeded_faults.py                     # all of them
    python tools/seeded_faults.py --area engine --jobs 2
    python tools/seeded_faults.py --only core-3 --all # goes on after the first test that fails
    python tools/seeded_faults.py --draw engine       # random lines of an area, to write faults for

The faults are data: tools/faults/AREA.toml, each a file, a text that occurs in it once, and what
replaces it. They were written for lines that `--draw` drew, so they do not follow what is known to
be tested. A fault in Python needs no build; others rebuild what depends on the file, in a build
folder that stays (`--work`). The environment needs what CI installs: the extras test and parity,
cmake and ninja, nanobind and llvmlite.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tools" / "faults"
COPIED = ("src", "csrc", "cmake", "tools", "tests", "docs", "bench", "examples", ".ci")

# Where the faults of an area lie; not where a pattern begins with "!".
AREAS = {
    "core": ["csrc/core/*"],
    "tile": ["csrc/ops/tile*"],
    "kernels": ["src/weft/_kernels/*", "csrc/ops/*", "!csrc/ops/tile*"],
    "rows": ["src/weft/_ops/*"],
    "engine": ["csrc/autograd/*"],
    "arguments": ["csrc/bindings/args.h", "csrc/bindings/op_*", "csrc/bindings/tensor_*",
                  "csrc/bindings/construct.cpp", "csrc/bindings/interop_*", "csrc/bindings/index*"],
    "frontend": ["src/weft/jit/frontend/**/*"],
    "passes": ["src/weft/jit/passes/*"],
    "codegen": ["src/weft/jit/codegen/*", "src/weft/jit/native/*"],
    "interpreter": ["csrc/runtime/*", "!csrc/runtime/fused*"],
    "fused": ["csrc/runtime/fused*"],
    "tracing": ["src/weft/jit/tracing/*", "csrc/bindings/trace*"],
    "sharing": ["src/weft/multiprocessing/*", "csrc/core/shared*"],
    "workers": ["src/weft/utils/data/**/*"],
    "serialization": ["src/weft/serialization/*"],
    "export": ["src/weft/export/*"],
    "nn": ["src/weft/nn/**/*"],
    "optim": ["src/weft/optim/*"],
    "libtorch": ["csrc/libtorch/*", "csrc/capi/library_operator.cpp", "tools/gen/libtorch*.py",
                 "csrc/capi/composed_operator.cpp", "tools/gen/composed.*"],
    "outside": [],
}  # fmt: skip


@dataclass
class Fault:
    """One line of a file, written wrongly."""

    name: str
    area: str
    file: str
    text: str
    replacement: str
    tests: list[str] = field(default_factory=list)  # tried first: only to be quicker
    equivalent: str = ""  # why no program can see the difference

    @property
    def is_built(self) -> bool:
        """Whether the file is compiled, or compiles."""
        built = ("csrc/", "tools/", "src/weft/_ops/", "src/weft/_kernels/")
        return self.file.startswith(built) or self.file.endswith("codegen/instructions.py")


def load_faults() -> list[Fault]:
    """Every fault of tools/faults; raises ValueError for a text that is not there once."""
    faults = []
    for path in sorted(DATA.glob("*.toml")):
        for number, entry in enumerate(tomllib.loads(path.read_text())["fault"], 1):
            fault = Fault(f"{path.stem}-{number}", path.stem, **entry)
            count = (ROOT / fault.file).read_text().count(fault.text)
            if count != 1:
                raise ValueError(
                    f"{fault.name}: expected its text once in {fault.file}, got {count}"
                )
            faults.append(fault)
    return faults


def draw(area: str, count: int) -> None:
    """Prints random lines of code of an area, the same ones every time."""
    inside = {p for pattern in AREAS[area] if pattern[0] != "!" for p in ROOT.glob(pattern)}
    outside = {p for pattern in AREAS[area] if pattern[0] == "!" for p in ROOT.glob(pattern[1:])}
    lines = []
    for path in sorted(inside - outside):
        if path.suffix not in (".py", ".h", ".cpp") or "test" in path.name:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r"\s+[\w*&(\[!~-]", line) and len(line.strip()) > 8:
                lines.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    print(*random.Random(area).sample(lines, count), sep="\n")


class Tree:
    """A copy of the sources with the package built in it: one fault at a time is seeded there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        for path in ROOT.glob("*.*"):
            if path.is_file():
                shutil.copy2(path, folder)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the tree, on the package that was built there."""
        env = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=self.folder, env=env, text=True, timeout=3600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)  # fmt: skip

    def configure(self) -> None:
        """A build folder, and what it makes put where the package looks for it."""
        blas = Path(importlib.util.find_spec("scipy_openblas32").submodule_search_locations[0])
        with contextlib.suppress(FileExistsError):
            (self.folder / "src" / "scipy_openblas32").symlink_to(blas)
        self.run("cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DCMAKE_UNITY_BUILD=ON", "-DWEFT_WERROR=OFF",
                 f"-DPython_EXECUTABLE={sys.executable}")  # fmt: skip
        if error := self.make():
            sys.exit(f"without a fault the build fails: {error}")

    def make(self) -> str:
        """Builds what changed and installs it. Returns the first error, or an empty text."""
        done = self.run("cmake", "--build", "build")
        if done.returncode == 0:
            self.run("cmake", "--install", "build", "--prefix", "src")
            return ""
        errors = [line for line in done.stdout.splitlines() if "rror" in line]
        return (errors or ["the build fails"])[0]

    def take_build_of(self, other: Tree) -> None:
        """The package as another tree has built it."""
        shutil.copytree(
            other.folder / "src", self.folder / "src", symlinks=True, dirs_exist_ok=True
        )

    def seed(self, fault: Fault) -> str:
        """Writes the fault into the tree; returns the file as it was."""
        path = self.folder / fault.file
        text = path.read_text()
        path.write_text(text.replace(fault.text, fault.replacement))
        return text


def failures(output: str) -> list[str]:
    """The names of the tests that a run of pytest or of the C++ tests calls failed."""
    return re.findall(r"(?:FAILED|ERROR) (\S+)", output)


def stages(fault: Fault, options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """The commands that CI runs, those first that are likely to find the fault."""
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    pytest += [] if options.all else ["-x"]
    result = []
    if fault.tests:
        result.append(("tests of the area", [*pytest, "-n", "0", *fault.tests]))
    if fault.is_built:
        result.append(("C++ tests", ["build/weft_tests"]))
    if not options.quick:
        workers = ["-n", str(options.workers)]
        result.append(("tests", [*pytest, *workers]))
        result.append(("parity", [*pytest, *workers, "-m", "parity"]))
    return result


def judge(tree: Tree, fault: Fault, options: argparse.Namespace) -> str:
    """Which test finds a fault; an empty text when none does."""
    before = tree.seed(fault)
    try:
        error = tree.make() if fault.is_built else ""
        if error:
            return f"build: {error.strip()[:120]}"
        for stage, command in stages(fault, options):
            done = tree.run(*command)
            # 5: no test was chosen
            if done.returncode not in (0, 5):
                names = failures(done.stdout) or [done.stdout.strip().splitlines()[-1][:120]]
                return f"{stage}: {names[0]}" + (f" and {len(names) - 1}" if names[1:] else "")
        return ""
    except subprocess.TimeoutExpired:
        return "a test hangs"
    finally:
        (tree.folder / fault.file).write_text(before)


def work_on(tree: Tree, queues: list[queue.SimpleQueue[Fault]], options: argparse.Namespace,
            results: dict[str, str]) -> None:  # fmt: skip
    """Judges faults of the first queue, then of the second."""
    for faults in queues:
        while True:
            try:
                fault = faults.get_nowait()
            except queue.Empty:
                break
            start = time.monotonic()
            results[fault.name] = found = judge(tree, fault, options)
            seconds = time.monotonic() - start
            print(f"{fault.name:16} {seconds:5.0f} s  {found or 'SURVIVES'}", flush=True)
        if tree.folder.name == "0":
            tree.make()  # what the last fault left


def false_alarms(tree: Tree, results: dict[str, str]) -> set[str]:
    """Those of the tests that found something which fail without a fault, too."""
    tree.make()
    found = {result.partition(": ")[2].partition(" and ")[0] for result in results.values()}
    python = sorted(name for name in found if name.startswith("tests/"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", *python]
    output = tree.run(*command).stdout if python else ""
    return found & {*failures(output), *failures(tree.run("build/weft_tests").stdout)}


def seed_all(faults: list[Fault], options: argparse.Namespace) -> dict[str, str]:
    """What found each fault, by its name. One tree is built, the others copy its package."""
    built: queue.SimpleQueue[Fault] = queue.SimpleQueue()
    plain: queue.SimpleQueue[Fault] = queue.SimpleQueue()
    for fault in faults:
        (built if fault.is_built else plain).put(fault)
    trees = [Tree(options.work / str(i)) for i in range(options.jobs)]
    trees[0].configure()
    for other in trees[1:]:
        other.take_build_of(trees[0])
    results: dict[str, str] = {}
    threads = [
        threading.Thread(
            target=work_on, args=(tree, [plain] if i else [built, plain], options, results)
        )
        for i, tree in enumerate(trees)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for test in sorted(false_alarms(trees[0], results)):
        print(f"fails without a fault: {test}")
    return results


def main() -> None:
    """Parses the command line; exits with 1 when a fault survives that is not equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--area", choices=AREAS, help="only these faults")
    parser.add_argument("--only", nargs="*", help="only faults of these names")
    parser.add_argument("--all", action="store_true", help="run every test, also after one failed")
    parser.add_argument("--quick", action="store_true", help="only the tests named with the fault")
    parser.add_argument("--draw", choices=AREAS, help="print random lines of an area, do nothing")
    parser.add_argument("--count", type=int, default=60, help="how many lines to draw")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time, each with a build")
    parser.add_argument("--workers", type=int, default=2, help="workers of pytest")
    parser.add_argument(
        "--work", type=Path, default=Path("/tmp/weft-faults"), help="folder of builds"
    )
    options = parser.parse_args()
    if options.draw:
        return draw(options.draw, options.count)
    chosen = [
        fault
        for fault in load_faults()
        if options.area in (None, fault.area) and (not options.only or fault.name in options.only)
    ]
    results = seed_all([fault for fault in chosen if not fault.equivalent], options)
    alive = [name for name, found in results.items() if not found]
    equal = sum(bool(fault.equivalent) for fault in chosen)
    print(f"{len(results)} seeded, {len(alive)} survive, {equal} equivalent not seeded")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
