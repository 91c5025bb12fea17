"""How a case is timed: libraries in alternation, calibrated loops, the best or the middle one."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median
from timeit import Timer
from typing import Any

from bench.case import Case, Probe

SAMPLE_SECONDS = 0.004
LEAST_SAMPLES = 5
# The threads of the library before spin, ONNX Runtime's for 40 ms, on the cores this one needs.
PAUSE_SECONDS = 0.05


class Stopwatch:
    """Times one statement of one library."""

    def __init__(self, case: Case, library: Any) -> None:
        names = {"torch": library, **case.setup(library)}
        self.timer = Timer(case.statement, globals=names)
        self.loops = 1
        self.statistic = median if case.middle else min
        self.samples: list[float] = []
        self._calibrate()

    def _calibrate(self) -> None:
        """Finds how many loops make one sample; the first runs warm everything up."""
        self.timer.timeit(1)
        while (taken := self.timer.timeit(self.loops)) < SAMPLE_SECONDS:
            growth = SAMPLE_SECONDS / max(taken, 1e-7)
            self.loops = int(self.loops * min(growth * 1.1, 100)) + 1

    def sample(self) -> float:
        """Takes one sample and returns how long it took."""
        time.sleep(PAUSE_SECONDS)
        self.timer.timeit(1)  # outside the sample: it wakes this library's threads
        taken = self.timer.timeit(self.loops)
        self.samples.append(taken / self.loops)
        return taken

    def seconds(self) -> float:
        """The best of the samples, or their median, as the case says."""
        return self.statistic(self.samples)


def time_case(case: Case, libraries: dict[str, Any]) -> dict[str, float | str]:
    """Seconds per run for each library; the text of the error for one that fails."""
    watches: dict[str, Stopwatch] = {}
    results: dict[str, float | str] = {}
    for name, library in libraries.items():
        try:
            watches[name] = Stopwatch(case, library)
        except Exception as error:  # a missing operator must not end the table
            results[name] = f"{type(error).__name__}: {error}"
    budget = case.seconds * len(watches)
    spent, samples = 0.0, 0
    while watches and (spent < budget or samples < LEAST_SAMPLES):
        spent += sum(watch.sample() for watch in watches.values())
        samples += 1
    return {**results, **{name: watch.seconds() for name, watch in watches.items()}}


def run_probe(probe: Probe, libraries: list[str]) -> dict[str, float | str]:
    """The number each library's process prints: the smallest of the runs."""
    results: dict[str, float | str] = {}
    for library in probe.libraries:
        if library not in libraries:
            continue
        program = probe.program
        for name, value in {**probe.values(), "library": library}.items():
            program = program.replace(f"{{{name}}}", value)
        values = []
        for _ in range(probe.runs):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
            if done.returncode:
                said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
                results[library] = said[-1]
                break
            values.append(float(done.stdout.split()[-1]))
        else:
            results[library] = min(values)
    return results
