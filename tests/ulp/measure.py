"""Errors in units of the last place, in exact arithmetic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp

from . import exact
from .functions import Function


def exact_values(function: Function, arguments: tuple[np.ndarray, ...]) -> list[Any]:
    """The function at every argument, as mpmath numbers; None at a pole."""
    values: list[Any] = []
    with mp.workdps(exact.DIGITS):
        for row in zip(*(a.tolist() for a in arguments)):
            try:
                value = function.exact(*map(mp.mpf, row))
            except (ValueError, ZeroDivisionError):  # how mpmath names poles
                value = None
            values.append(None if value is None or not mp.isfinite(value) else value)
    return values


def _unit_size(function: Function, value: Any, row: tuple[float, ...], tiny: float) -> Any:
    if function.unit == "one":
        return max(abs(value), mp.mpf(1))
    if function.unit == "argument":
        return max([abs(value), *(abs(mp.mpf(a)) for a in row)])
    if function.unit == "times tiny":
        return max(abs(value), abs(mp.mpf(row[0])) * tiny)
    return abs(value)


def ulp_errors(
    function: Function, got: np.ndarray, values: list[Any], arguments: tuple[np.ndarray, ...]
) -> np.ndarray:
    """|got - exact| in units of the last place; 0 at poles.

    As if exponents had no upper end an overflow counts as the power of two after the greatest
    number: right where the exact value is at least as great or within the bound of it.
    """
    info = np.finfo(got.dtype)
    over = mp.mpf(2) ** int(info.maxexp)
    errors = np.zeros(got.size)
    with mp.workdps(exact.DIGITS):
        rows = zip(got.tolist(), values, zip(*(a.tolist() for a in arguments)))
        for i, (answer, value, row) in enumerate(rows):
            if value is None:
                continue
            if answer != answer:
                errors[i] = np.inf
                continue
            clipped = min(max(value, -over), over)
            size = min(_unit_size(function, value, row, float(info.tiny)), over / 2)
            exponent = mp.frexp(size)[1] - 1 if size else int(info.minexp)
            unit = mp.ldexp(1, max(exponent, int(info.minexp)) - int(info.nmant))
            given = mp.mpf(answer) if np.isfinite(answer) else over * (1 if answer > 0 else -1)
            errors[i] = float(abs(given - clipped) / unit)
    return errors


Job = tuple[Function, tuple[np.ndarray, ...]]


def _run_worker(isa: str, *arguments: str) -> str:
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([root, *(p for p in sys.path if p)])
    environment = {**os.environ, "WEFT_ISA": isa, "PYTHONPATH": path}
    command = [sys.executable, "-m", "ulp.worker", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"worker at {isa}: {done.stderr}")
    return done.stdout


def answers(isa: str, jobs: dict[str, Job]) -> dict[str, np.ndarray]:
    """What weft computes at an instruction-set level, in a process of its own, for every job."""
    calls = {k: (f.call, dict(f.options), len(a)) for k, (f, a) in jobs.items()}
    with tempfile.TemporaryDirectory() as folder:
        source, result = str(Path(folder, "in.npz")), str(Path(folder, "out.npz"))
        arrays = {f"{k}/{i}": a for k, (_, args) in jobs.items() for i, a in enumerate(args)}
        np.savez(source, calls=json.dumps(calls), **arrays)
        _run_worker(isa, "values", source, result)
        with np.load(result) as archive:
            return {k: archive[k] for k in jobs}


def halves(isa: str) -> dict[str, str]:
    """By function and 16-bit dtype: "" or the first argument whose result is not the wide one's."""
    return json.loads(_run_worker(isa, "halves"))
