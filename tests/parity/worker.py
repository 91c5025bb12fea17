"""The process that runs operators: one JSON line on stdout before and after each.

It is a process of its own so that a crash costs one operator and not the run.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
import warnings
from typing import Any

import torch

from .compare import check, make_case
from .convert import name_of
from .operators import DELIBERATE, dtypes_of, op_infos, samples_of, weft_function
from .outcome import Outcome, group_of
from .refusals import refusals

#: failures described per operator and group; the rest are only counted
DESCRIBED = 12


def main(wanted: list[str], full: bool) -> None:
    """Runs the entries `wanted`; in a full run all their samples, and those that must raise."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    infos = op_infos()
    for name in wanted:
        _say({"start": name})
        _say({"done": dataclasses.asdict(run(name, infos[name], full))})


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def run(name: str, info: Any, full: bool = False) -> Outcome:
    """All dtypes of one entry."""
    outcome = Outcome(name)
    started = time.perf_counter()
    ours = weft_function(info)
    if ours is None:
        outcome.missing = True
        return outcome
    for dtype, gradients in dtypes_of(info, full):
        if (name.partition(".")[0], dtype) in DELIBERATE:
            continue
        _run_dtype(outcome, info, ours, dtype, gradients, full)
    if full:
        for refused, text in refusals(info, ours):
            _record(outcome, "errors", None if refused else f"let through: {text}", None, 0, None)
    outcome.seconds = round(time.perf_counter() - started, 2)
    return outcome


def _run_dtype(
    outcome: Outcome, info: Any, ours: Any, dtype: torch.dtype, gradients: bool, full: bool
) -> None:
    try:
        samples = samples_of(info, dtype, gradients, full)
    except Exception:
        return  # PyTorch cannot make them: a dtype its own tests skip
    results = []
    for index, sample in enumerate(samples):
        case = make_case(info, ours, sample)
        try:
            forward, backward = check(case, gradients)
        except Exception:
            continue  # nor does PyTorch run this one
        results.append((index, sample, forward, backward))
    said = [forward for _, _, forward, _ in results]
    if said and all(text is not None and _refuses_dtype(text, dtype) for text in said):
        outcome.refused.append(name_of(dtype))
        return
    for index, sample, forward, backward in results:
        _record(outcome, group_of(name_of(dtype)), forward, dtype, index, sample)
        if gradients:
            _record(outcome, "grad", backward, dtype, index, sample)


def _refuses_dtype(text: str, dtype: torch.dtype) -> bool:
    """Whether weft said clearly that it has no kernel for the dtype."""
    return "expected" in text and "dtype" in text and text.endswith(f"got {name_of(dtype)}")


def _record(
    outcome: Outcome,
    group: str,
    what: str | None,
    dtype: torch.dtype | None,
    index: int,
    sample: Any,
) -> None:
    outcome.count(group, what is None)
    if what is not None and sum(f["group"] == group for f in outcome.failures) < DESCRIBED:
        text = _described(sample)
        outcome.failures.append(
            {"group": group, "dtype": name_of(dtype), "index": index, "what": what, "call": text}
        )


def _described(sample: Any) -> str:
    """The call, with tensors as their shapes."""
    try:
        parts = sample.summary()
        return str(parts).replace("SampleInput", "")[:300]
    except Exception:
        return ""


if __name__ == "__main__":
    main(**json.loads(sys.stdin.read()))
