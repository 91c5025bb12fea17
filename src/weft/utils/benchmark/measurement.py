"""What was measured, and of what."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable
from typing import Any

_RESOLUTION = 1e-7  # seconds: what clocks and calls leave uncertain
_WIDE, _VERY_WIDE = 0.1, 0.25  # shares of the median that the middle half of the times spans
_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def select_unit(t: float) -> tuple[str, float]:
    """The unit of a time in seconds, and its seconds."""
    power = math.floor(math.log10(t) / 3) if t > 0 else 0
    scale, name = _UNITS[min(max(power + 3, 0), 3)]
    return name, scale


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What is measured: the statement, and how it is called in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and sub-label; without a label the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        indented = "\n".join(f"  {line}" for line in self.stmt.splitlines())
        return f"stmt:\n{indented}"

    def setup_str(self) -> str:
        """The setup as `summarize` shows it."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        return "setup:\n" + "\n".join(f"  {line}" for line in self.setup.splitlines()) + "\n"

    def summarize(self) -> str:
        """The title, description and setup, a line each."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(
            part + "\n" * ("\n" in part and part is parts[0]) for part in parts if part
        )


class Measurement:
    """The times of some runs: raw_times are seconds of number_per_run executions each.

    >>> spec = weft.utils.benchmark.TaskSpec("x + y", "pass")
    >>> weft.utils.benchmark.Measurement(10, [1e-3, 3e-3], spec).median
    0.0002
    """

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        task_spec: TaskSpec,
        metadata: dict[Any, Any] | None = None,
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, list(raw_times)
        self.task_spec, self.metadata = task_spec, metadata

    def __getattr__(self, name: str) -> Any:
        if name == "task_spec":  # a copy that has no members yet
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    def _some(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("Measurement: expected some times, got none")
        return sorted(self.times)

    @property
    def times(self) -> list[float]:
        """Seconds of one execution, run by run."""
        return [time / self.number_per_run for time in self.raw_times]

    median = property(lambda self: statistics.median(self._some()), doc="The median of times.")
    mean = property(lambda self: statistics.fmean(self._some()), doc="Their mean.")

    def _quantile(self, share: float) -> float:
        times = self._some()
        place = share * (len(times) - 1)
        low = math.floor(place)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (place - low)

    @property
    def iqr(self) -> float:
        """What the middle half of the times spans."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """Digits of the median that a 90 % interval of confidence leaves, from 1 to 4."""
        times = self._some()
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        digits = math.floor(math.log10(self.median / max(interval, _RESOLUTION)))
        return min(max(digits, 1), 4)

    def meets_confidence(self, threshold: float = _WIDE) -> bool:
        """Whether the middle half of the times spans less than this share of the median."""
        return self.iqr / self.median < threshold

    has_warnings = property(lambda self: not self.meets_confidence(), doc="The times vary much.")
    title = property(lambda self: self.task_spec.title, doc="That of the task.")
    as_row_name = property(
        lambda self: self.sub_label or self.stmt or "[Unknown]", doc="The name of its row."
    )

    def __repr__(self) -> str:
        name, scale = select_unit(self.median)
        count, number, threads = len(self.raw_times), self.number_per_run, self.num_threads
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {name}")
        if count >= 4:
            low, high = (self._quantile(share) / scale for share in (0.25, 0.75))
            lines.append(f"  IQR:    {high - low:.2f} {name} ({low:.2f} to {high:.2f})")
        runs = f"{number} runs {'per measurement' if count > 1 else ''}"
        of_threads = f"{threads} thread{'s' if threads > 1 else ''}"
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {runs}, {of_threads}")
        if self.has_warnings:
            share = self.iqr / self.median
            lines.append(
                f"  WARNING: Interquartile range is {share:.1%} of the median measurement."
            )
            wide = "suggests significant environmental influence."
            meaning = wide if share >= _VERY_WIDE else "could indicate system fluctuation."
            lines.append(f"           This {meaning}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of all its times."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).append(each)
        return [
            Measurement(1, [time for each in group for time in each.times], spec)
            for spec, group in groups.items()
        ]
