"""Programs and libraries in C++ under test: compiled once for all workers, since their headers take seconds."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "libtorch"
STRICT = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-pedantic", "-Werror")

# The folder of a name, filled by a function if no worker has done so.
BuiltOnce = Callable[[str, Callable[[Path], object]], Path]


def run(*command: str | Path) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def weft_command(*words: str | Path) -> str:
    return run(sys.executable, "-m", "weft", *words).strip()


def pytorch_flags() -> list[str]:
    """Of a program over PyTorch's own library."""
    root = Path(pytest.importorskip("torch").__file__).parent
    headers = (root / "include", root / "include/torch/csrc/api/include")
    names = ("-ltorch", "-ltorch_cpu", "-lc10", f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}")
    return ["-std=c++17", "-O0", "-w", *(f"-I{each}" for each in headers), *names]


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    root = tmp_path_factory.getbasetemp()
    if "WEFT_TEST_PROGRAMS" in os.environ:  # set by .ci/run, where they serve two runs
        root = Path(os.environ["WEFT_TEST_PROGRAMS"])
        root.mkdir(exist_ok=True)
    elif "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def built(name: str, build: Callable[[Path], object]) -> Path:
        folder = root / name
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                partial = Path(tempfile.mkdtemp(dir=root))
                build(partial)
                partial.rename(folder)
        return folder

    return built


def _all_programs(name: str, flags: list[str], built_once: BuiltOnce) -> Path:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no c++")
    source = SOURCES / "all.cpp"
    return built_once(name, lambda to: run(compiler, source, *flags, "-o", to / "all")) / "all"


@pytest.fixture(scope="session")
def libtorch_programs(built_once: BuiltOnce) -> Path:
    """tests/libtorch/all.cpp over weft; its first word is the name of a program."""
    flags = [*STRICT, *weft_command("--libtorch-flags").split()]
    return _all_programs("libtorch_programs", flags, built_once)


@pytest.fixture(scope="session")
def pytorch_programs(built_once: BuiltOnce) -> Path:
    """The same over PyTorch's library."""
    return _all_programs("pytorch_programs", pytorch_flags(), built_once)
