"""The command line: prints the table, or the failures of single operators, or updates the file."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from . import runner
from .operators import op_infos
from .outcome import Outcome, causes, drops, read_expected, summary, table, write_expected


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 when something passes less than expected.txt says."""
    parser = argparse.ArgumentParser(prog="parity", description=__doc__)
    parser.add_argument("--op", action="append", default=[], help="only entries with this name")
    parser.add_argument("--update", action="store_true", help="write tests/parity/expected.txt")
    parser.add_argument("--failures", action="store_true", help="say what is wrong")
    parser.add_argument("--missing", action="store_true", help="name what weft does not have")
    parser.add_argument(
        "--full", action="store_true", help="all samples, wide unsigned dtypes, and errors"
    )
    parser.add_argument("--causes", action="store_true", help="group what is wrong")
    parser.add_argument("--json", type=Path, help="also write every outcome there")
    options = parser.parse_args(arguments)

    started = time.perf_counter()
    names = [name for name in op_infos() if not options.op or _wanted(name, options.op)]
    outcomes = runner.run(names, full=options.full)
    print(table(outcomes.values()))
    if options.failures or options.op:
        print(*(_described(one) for one in outcomes.values() if one.failures), sep="\n")
    if options.missing:
        print("missing:", *(one.name for one in outcomes.values() if one.missing))
    if options.causes:
        for text, entries in causes(outcomes.values()):
            print(f"{len(entries):4} {text}  [{' '.join(entries[:8])}]")
    print(summary(outcomes.values()))
    print(f"{time.perf_counter() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([vars(one) for one in outcomes.values()]))
    if options.update:
        _update(outcomes, bool(options.op) or options.full)
        return 0
    return _verdict(outcomes, bool(options.op))


def _wanted(name: str, asked: list[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in asked)


def _described(outcome: Outcome) -> str:
    lines = [f"\n{outcome.name}"]
    for one in outcome.failures:
        lines.append(f"  {one['group']} {one['dtype']} #{one['index']}: {one['what']}")
        lines.append(f"      {one['call']}")
    return "\n".join(lines)


def _update(outcomes: dict[str, Outcome], partial: bool) -> None:
    if partial:
        raise SystemExit("parity: expected --update without --op and --full")
    write_expected(outcomes.values(), torch.__version__.partition("+")[0])


def _verdict(outcomes: dict[str, Outcome], partial: bool) -> int:
    _, expected = read_expected()
    if partial:
        expected = {name: counts for name, counts in expected.items() if name in outcomes}
    lost = drops(outcomes, expected)
    print(*lost, sep="\n")
    return 1 if lost else 0
