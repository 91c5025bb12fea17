"""`weft launch`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import signal
import sys
from pathlib import Path

# Open MPI counts cores and refuses more processes; MPICH does not.
_SETTINGS = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The number of processes, the program, and everything behind it."""
    parser.add_argument("-n", dest="count", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--mpiexec", help="the launcher; by default the one beside the interpreter, then the path's"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="program is a module")
    parser.add_argument("program", help="a file, or the name of a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets")


def run(given: argparse.Namespace) -> None:
    """Becomes mpiexec, which starts `weft run` that many times."""
    if given.count < 1:
        raise ValueError(f"expected at least one process, got {given.count}")
    if importlib.util.find_spec("mpi4py") is None:
        raise RuntimeError("expected mpi4py (pip install weft[mpi]), which is not installed")
    words = [given.mpiexec or _mpiexec(), "-n", str(given.count), sys.executable, "-m", "weft"]
    words += ["run", "--guarded", *(["-m"] if given.module else [])]
    words += [given.program, *given.arguments]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and mpiexec would too
    os.execvpe(words[0], words, _SETTINGS | os.environ)


def _mpiexec() -> str:
    """MPI from a package index lies in the environment of mpi4py, beside the interpreter."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.is_file() else shutil.which("mpiexec") or shutil.which("mpirun")
    if found is None:
        raise RuntimeError("expected mpiexec on the path, got none; `pip install mpich` brings one")
    return found
