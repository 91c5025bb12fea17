"""`python -m bench [--group NAME ...] [--threads N] [--compile] [--json]`: the table of ratios."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import sys
from collections.abc import Collection, Iterator
from typing import Any

from bench.case import Case, Group, Probe
from bench.timing import run_probe, time_case

GROUPS = (
    "import_size",
    "small_ops",
    "small_graphs",
    "elementwise",
    "rows",
    "functions",
    "matmul",
    "conv",
    "fft",
    "mlp",
    "models",
    "memory",
    "loader",
    "distributed",
    "jit",
    "jit_loops",
    "archives",
)


def load(name: str) -> Group:
    """The group defined in bench/<name>.py."""
    return importlib.import_module(f"bench.{name}").group


def measure(
    group: Group, libraries: dict[str, Any], threads: int, chosen: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """One row per case of the group, each as soon as it is measured. `chosen`: options given."""
    for case in group.cases:
        if isinstance(case, Case) and case.needs and case.needs not in chosen:
            continue
        if isinstance(case, Probe):
            found, unit = run_probe(case, list(libraries)), case.unit
        else:
            found, unit = time_case(case, libraries), "s"
        values = {name: v if isinstance(v, float) else None for name, v in found.items()}
        weft, torch = values.get("weft"), values.get("torch")
        row = {
            "group": group.name,
            "name": case.name,
            "threads": threads,
            "weft_seconds": weft,
            "torch_seconds": torch,
            "ratio": torch / weft if weft and torch else None,
            "unit": unit,  # of the two values; the ratio has none
        }
        errors = {name: v for name, v in found.items() if isinstance(v, str)}
        if errors:
            row["errors"] = errors
        yield row


def shown(value: float | None, unit: str) -> str:
    """A value with three or four digits and its unit."""
    if value is None:
        return "-"
    if unit != "s":
        return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            return f"{value / scale:.4g} {name}"
    return f"{value * 1e9:.0f} ns"


def print_row(row: dict[str, Any]) -> None:
    """One line of the table, and one more for each library that failed."""
    ratio = f"{row['ratio']:.2f}" if row["ratio"] else "-"
    ours, theirs = (shown(row[f"{lib}_seconds"], row["unit"]) for lib in ("weft", "torch"))
    print(f"{row['group']:<13}{row['name']:<46}{ours:>14}{theirs:>14}{ratio:>9}", flush=True)
    for library, text in row.get("errors", {}).items():
        print(f"{'':13}! {library}: {text}", flush=True)


def print_mean(rows: list[dict[str, Any]]) -> None:
    """The geometric mean of the ratios of one group."""
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{rows[0]['group']:<13}{'geometric mean':<74}{mean:>9.2f}\n", flush=True)


def import_libraries(threads: int) -> dict[str, Any]:
    """weft, and torch where it is installed, both set to `threads`."""
    libraries = {"weft": importlib.import_module("weft")}
    if importlib.util.find_spec("torch"):
        libraries["torch"] = importlib.import_module("torch")
    for library in libraries.values():
        library.set_num_threads(threads)
        library.manual_seed(0)
    return libraries


def main() -> None:
    """Measures the groups asked for and prints the table or the JSON list."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--group", action="append", choices=GROUPS, help="default: all groups")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print a list of objects, no table")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="jit, models: torch.compile too",
    )
    options = parser.parse_args()
    chosen = {"compile"} if options.compile else set()
    libraries = import_libraries(options.threads)
    results = []
    if not options.json:
        header = "ratio"
        print(f"{'group':<13}{'case':<46}{'weft':>14}{'torch':>14}{header:>9}")
        if "torch" not in libraries:
            print("(torch is not installed: no ratios)", file=sys.stderr)
    for name in options.group or GROUPS:
        rows = []
        for row in measure(load(name), libraries, options.threads, chosen):
            rows.append(row)
            if not options.json:
                print_row(row)
        if not options.json:
            print_mean(rows)
        results += rows
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
