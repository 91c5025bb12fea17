"""Instructions of operator paths, counted by valgrind: a slower path is seen without a clock.

    python tools/instructions.py [--update]

All cases run some times on one thread of one process; a count is that of one run. Exits with 1
where it is more than 15 % and 1,000 above that in tools/instructions.txt; --update writes the file.
Valgrind knows no AVX-512, so that all processors of x86-64-v3 take the same kernels.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

EXPECTED = Path(__file__).with_suffix(".txt")
TOLERANCE, SLACK = 1.15, 1_000
RUNS = 20


def cases() -> dict[str, Callable[[], Any]]:
    """What is counted, by name."""
    import weft
    from weft import nn

    weft.set_num_threads(1)
    weft.manual_seed(0)
    functional = nn.functional
    small, other = weft.randn(8), weft.randn(8)
    matrix, image = weft.randn(64, 64), weft.randn(1, 16, 14, 14)
    rows, places = weft.randn(32, 128), weft.arange(0, 32, 2)
    kernel, weight = weft.randn(16, 16, 3, 3), weft.randn(128, 128)
    leaf = weft.randn(8, requires_grad=True)
    planes = weft.randn(1, 64, 28, 28).contiguous(memory_format=weft.channels_last)
    single, blocks = weft.randn(64, 1, 3, 3), weft.randn(16, 64, 32)
    left, right, line = weft.randn(16, 20, 30), weft.randn(16, 30, 20), weft.randn(4096)
    block = nn.Sequential(
        *(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)),
    ).eval()

    def residual() -> Any:
        with weft.no_grad():
            return functional.relu(block(image) + image)

    return {
        "add": lambda: small + other,
        "sum": lambda: matrix.sum(1),
        "matmul": lambda: matrix @ matrix,
        "linear": lambda: functional.linear(rows, weight),
        "softmax": lambda: functional.softmax(rows, -1),
        "layer_norm": lambda: functional.layer_norm(rows, (128,)),
        "conv2d": lambda: functional.conv2d(image, kernel, None, 1, 1),
        "depthwise": lambda: functional.conv2d(planes, single, None, 1, 1, 1, 64),
        "bmm": lambda: left @ right,
        "dot": lambda: line @ line,
        "narrow sum": lambda: blocks.sum(1),
        "max_pool2d": lambda: functional.max_pool2d(image, 3, 2, 1),
        "index": lambda: rows[places],
        "sort": lambda: rows.sort(-1),
        "backward": lambda: (leaf * leaf).sum().backward(),
        "ResNet block": residual,
    }


def run() -> None:
    """The counted process: all cases are warmed, then each runs between two calls of getppid, at
    which callgrind writes down what it has counted since the last one."""
    given = cases()
    gc.disable()
    for _ in range(3):
        for case in given.values():
            case()
    for case in (lambda: None, *given.values()):
        os.getppid()
        for _ in range(RUNS):
            case()
    os.getppid()


def counts() -> dict[str, int]:
    """Instructions of one run of each case, without those of the loop around it."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "counted"
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=getppid"]
            + [sys.executable, __file__, "--run"],
            check=True, capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        names = list(cases())
        # The first part is what came before the first call.
        parts = [out.with_suffix(f".{index}") for index in range(2, len(names) + 3)]
        empty, *rest = (
            int(re.findall(r"^(?:summary|totals): (\d+)", p.read_text(), re.M)[0]) for p in parts
        )
    return {name: (each - empty) // RUNS for name, each in zip(names, rest, strict=True)}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run()
        return 0
    found = counts()
    if given.update:
        EXPECTED.write_text("".join(f"{name}: {count}\n" for name, count in found.items()))
    lines = (line.split(": ") for line in EXPECTED.read_text().splitlines())
    expected = {name: int(count) for name, count in lines}
    slower = [name for name in found if found[name] > TOLERANCE * expected[name] + SLACK]
    for name, count in found.items():
        change = 100 * (count / expected[name] - 1)
        print(f"{name:<14} {count:>11,} {change:+6.1f} %{'  more' if name in slower else ''}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
