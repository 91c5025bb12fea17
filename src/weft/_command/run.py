"""`weft run`."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from pathlib import Path

from weft.compat import install
from weft.distributed.guard import guard
from weft.distributed.launchers import name_as_torchrun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The program, a file or a module, and everything behind it, which is the program's own."""
    parser.add_argument("-m", dest="module", action="store_true", help="program is a module")
    parser.add_argument("--guarded", action="store_true", help=argparse.SUPPRESS)  # weft launch
    parser.add_argument("program", help="a file, or the name of a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets")


def run(given: argparse.Namespace) -> None:
    """Runs the program as Python does. What it raises ends the process with its traceback."""
    if given.guarded:
        guard()
    install.install_as_torch()
    _install_in_children()
    name_as_torchrun()
    sys.argv = [given.program, *given.arguments]
    sys.path.insert(0, "" if given.module else str(Path(given.program).resolve().parent))
    try:
        if given.module:
            runpy.run_module(given.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(given.program, run_name="__main__")
    except Exception as error:
        _show(error)
        raise SystemExit(1) from None


def _install_in_children() -> None:
    """Lets `import torch` mean weft in the processes that the program starts."""
    folder = str(Path(install.__file__).parent / "path")
    root = str(Path(install.__file__).parents[2])
    paths = [folder, root, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path.insert(0, folder)  # which spawned processes take over


def _show(error: Exception) -> None:
    """Prints the traceback from the program's first line on, without this file and runpy, as the
    interpreter would: by its hook, which a program may have changed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = sum(1 for frame in frames if frame.filename in (__file__, runpy.__file__))
    frozen = sum(1 for frame in frames if frame.filename == "<frozen runpy>")
    trace = error.__traceback__
    for _ in range(own + frozen):
        trace = trace.tb_next if trace is not None else None
    sys.excepthook(type(error), error.with_traceback(trace), trace)
