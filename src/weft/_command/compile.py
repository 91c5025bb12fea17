"""compiles a TorchScript archive into a file that libweft runs without Python"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The archive, where the result goes, and methods besides those that are found."""
    parser.add_argument("archive", help="what torch.jit.save wrote")
    parser.add_argument("-o", "--output", help="the compiled file; by default archive.weft")
    parser.add_argument(
        "--method", action="append", default=[], help="one more method that can be called"
    )


def run(given: argparse.Namespace) -> None:
    """Loads the archive, compiles it, and says how large the result is."""
    from weft.jit import aot_compile, load

    output = Path(given.output or Path(given.archive).with_suffix(".weft"))
    aot_compile(load(given.archive), output, given.method)
    print(f"{output}: {output.stat().st_size} bytes")
