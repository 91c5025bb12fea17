"""Runs entries of op_db in a worker process and restarts it when an operator kills it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from .outcome import Outcome

#: seconds an operator may take before it counts as hung
PATIENCE = 120.0
PATIENCE_IN_FULL = 1800.0


def run(
    names: list[str], told: Callable[[Outcome], None] = lambda one: None, full: bool = False
) -> dict[str, Outcome]:
    """The outcome of every entry of `names`, in order; `told` hears of each as it is done."""
    found: dict[str, Outcome] = {}
    left = list(names)
    while left:
        before = len(left)
        victim = _run_worker(left, found, told, full)
        left = [name for name in left if name not in found]
        if victim is not None and victim in left:
            found[victim] = Outcome(victim, crashed=True, failures=[_crash()])
            told(found[victim])
            left.remove(victim)
        if len(left) == before:
            raise RuntimeError("parity: expected the worker to run, got nothing from it")
    return {name: found[name] for name in names}


def _crash() -> dict[str, object]:
    return {
        "group": "float", "dtype": "", "index": 0, "what": "the process ended or hung", "call": ""
    }  # fmt: skip


def _run_worker(
    names: list[str], found: dict[str, Outcome], told: Callable[[Outcome], None], full: bool
) -> str | None:
    """Runs until all is done or the worker ends; returns the entry it was at."""
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    worker = subprocess.Popen(
        [sys.executable, "-m", "parity.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert worker.stdin is not None
    with worker:
        worker.stdin.write(json.dumps({"wanted": names, "full": full}))
        worker.stdin.close()
        lines = _lines_of(worker)
        current: str | None = None
        while (line := _next(lines, PATIENCE_IN_FULL if full else PATIENCE)) is not None:
            message = json.loads(line)
            current = message.get("start", current)
            if "done" in message:
                outcome = Outcome(**message["done"])
                found[outcome.name] = outcome
                told(outcome)
        worker.kill()
    return current


def _lines_of(worker: subprocess.Popen[str]) -> queue.Queue[str | None]:
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            if line.startswith('{"'):
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _next(lines: queue.Queue[str | None], patience: float) -> str | None:
    try:
        return lines.get(timeout=patience)
    except queue.Empty:
        return None
