"""Instructions of operator paths, counted by valgrind: a slower path is seen without a clock.

    python tools/instructions.py [--update]

Each case runs some times on one thread; its count is that of one run, without the start of Python.
Exits with 1 where a count is more than 15 % and 1,000 above that in tools/instructions.txt (so much
does the start of Python vary); --update writes the file. Valgrind knows no AVX-512, so that all
processors of x86-64-v3 take the same kernels.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_suffix(".txt")
TOLERANCE, SLACK = 1.15, 1_000
RUNS = 200


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
        "max_pool2d": lambda: functional.max_pool2d(image, 3, 2, 1),
        "index": lambda: rows[places],
        "sort": lambda: rows.sort(-1),
        "backward": lambda: (leaf * leaf).sum().backward(),
        "ResNet block": residual,
    }


def run(name: str) -> None:
    """The counted process: all cases are warmed, then one runs; none for an empty name."""
    given = cases()
    gc.disable()
    for case in given.values():
        for _ in range(3):
            case()
    case = given.get(name, lambda: None)
    for _ in range(RUNS):
        case()


def counted(name: str) -> int:
    """Instructions of a process."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}"]
        + [sys.executable, __file__, "--run", name],
        check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    return int(done.stderr.split("Collected :")[1].split()[0])


def counts() -> dict[str, int]:
    """Instructions of one run of each case, without the start of Python."""
    names = list(cases())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        empty, *rest = pool.map(counted, ["", *names])
    return {name: (each - empty) // RUNS for name, each in zip(names, rest, strict=True)}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--run", metavar="CASE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run is not None:
        run(given.run)
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
