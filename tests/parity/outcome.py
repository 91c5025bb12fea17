"""What a run found, by operator, and the file that holds what is expected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_name("expected.txt")
GROUPS = ("bool", "int", "float", "complex", "grad")
#: of a full run: calls that must raise
ERRORS = "errors"


def group_of(dtype: str) -> str:
    """The column a dtype is counted in."""
    if dtype.startswith(("int", "uint")):
        return "int"
    return next((g for g in ("bool", "complex") if dtype.startswith(g)), "float")


@dataclass
class Outcome:
    """One operator: counts per group, and what went wrong."""

    name: str
    missing: bool = False
    crashed: bool = False
    passed: dict[str, int] = field(default_factory=dict)
    tested: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)  # dtypes weft says it does not have
    failures: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, group: str, good: bool) -> None:
        """One more sample."""
        self.tested[group] = self.tested.get(group, 0) + 1
        self.passed[group] = self.passed.get(group, 0) + good

    @property
    def perfect(self) -> bool:
        """Whether there were samples and all of them passed."""
        good = sum(self.passed.values()) == sum(self.tested.values()) > 0
        return good and not self.missing and not self.crashed

    @property
    def state(self) -> str:
        """missing, passed, failed, or untested where no dtype was left."""
        if self.missing:
            return "missing"
        if self.perfect:
            return "passed"
        return "failed" if self.failures or self.crashed else "untested"


def fraction(outcome: Outcome, group: str) -> str:
    """ "7/8", or "-" where the operator has no such samples."""
    tested = outcome.tested.get(group, 0)
    return f"{outcome.passed.get(group, 0)}/{tested}" if tested else "-"


def table(outcomes: Iterable[Outcome]) -> str:
    """The operators that exist, one line each."""
    lines = [f"{'operator':<44}" + "".join(f"{group:>9}" for group in GROUPS) + "  state"]
    for one in outcomes:
        if one.missing:
            continue
        cells = "".join(f"{fraction(one, group):>9}" for group in GROUPS)
        note = f"  (no {', '.join(one.refused)})" if one.refused else ""
        state = "crashed" if one.crashed else one.state
        lines.append(f"{one.name:<44}{cells}  {state}{note}")
    return "\n".join(lines)


def summary(outcomes: Iterable[Outcome]) -> str:
    """The totals, by line of op_db and by operator (all its lines together)."""
    outcomes = list(outcomes)
    by_operator: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_operator.setdefault(operator_of(one.name), []).append(one)
    states = [_joint_state(group) for group in by_operator.values()]
    lines = [one.state for one in outcomes]
    words = ("passed", "failed", "missing", "untested")
    entries = ", ".join(f"{lines.count(word)} {word}" for word in words)
    operators = ", ".join(f"{states.count(word)} {word}" for word in words)
    narrow = sum(one.perfect and bool(one.refused) for one in outcomes)
    return (
        f"entries of op_db: {entries} ({narrow} of the passed refuse a dtype that PyTorch takes)\n"
        f"operators: {operators}"
    )


def causes(outcomes: Iterable[Outcome]) -> list[tuple[str, list[str]]]:
    """What goes wrong, without numbers and the names of operators, with the entries where it does;
    those of the most entries first."""
    found: dict[str, list[str]] = {}
    for one in outcomes:
        texts = {_cause(failure, one.name) for failure in one.failures}
        texts |= {f"no {dtype}" for dtype in one.refused}
        for text in texts | ({"missing"} if one.missing else set()):
            found.setdefault(text, []).append(one.name)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def _cause(failure: dict[str, Any], name: str) -> str:
    what = failure["what"].replace(name.rpartition(".")[2], "OP")
    return f"{failure['group']}: {re.sub(r'[-+]?[0-9][0-9.e+-]*j?|inf|nan', '#', what)[:110]}"


def operator_of(name: str) -> str:
    """The operator of an entry: without the variant after the name."""
    prefixes = ("nn.functional.", "linalg.", "special.", "fft.", "masked.", "signal.windows.")
    prefix = next((p for p in prefixes if name.startswith(p)), "")
    if name.startswith(("torch.", "sparse.")):
        return name
    return prefix + name[len(prefix) :].partition(".")[0]


def _joint_state(group: list[Outcome]) -> str:
    states = {one.state for one in group}
    return next((s for s in ("failed", "missing", "untested") if s in states), "passed")


# The checked-in file ----------------------------------------------------------------------------


def write_expected(outcomes: Iterable[Outcome], version: str) -> None:
    """One line an operator: its name and the samples that pass, per group."""
    lines = [
        "# Samples of PyTorch's op_db that pass; written by `python tools/parity.py --update`.",
        f"# torch {version}",
        f"# {'operator':<42}" + "".join(f"{group:>9}" for group in GROUPS),
    ]
    for one in sorted(outcomes, key=lambda one: one.name):
        if not one.missing:
            lines.append(f"{one.name:<44}" + "".join(f"{fraction(one, g):>9}" for g in GROUPS))
    EXPECTED.write_text("\n".join(lines) + "\n")


def read_expected() -> tuple[str, dict[str, dict[str, int]]]:
    """The version of PyTorch and the passing samples by operator and group."""
    version, found = "", {}
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("# torch "):
            version = line.split()[-1]
        elif not line.startswith("#"):
            name, *cells = line.split()
            counts = [int(cell.partition("/")[0]) if cell != "-" else 0 for cell in cells]
            found[name] = dict(zip(GROUPS, counts, strict=True))
    return version, found


def drops(outcomes: dict[str, Outcome], expected: dict[str, dict[str, int]]) -> list[str]:
    """What passes less than it should; [] is what everybody wants."""
    found = []
    for name, counts in expected.items():
        one = outcomes.get(name, Outcome(name, missing=True))
        for group, wanted in counts.items():
            got = one.passed.get(group, 0)
            if got < wanted:
                why = next((f["what"] for f in one.failures if f["group"] == group), one.state)
                found.append(f"{name}: expected {wanted} {group} samples, got {got} ({why})")
    return found
