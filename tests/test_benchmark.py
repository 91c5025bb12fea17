"""utils.benchmark: measurements and tables as PyTorch prints them, timers that count."""

from __future__ import annotations

import re
from typing import Any

import pytest

import weft

SPECS: list[tuple[dict[str, Any], int, list[float]]] = [
    ({}, 10, [1e-5] * 5),
    ({"label": "add", "sub_label": "4x4", "description": "torch", "num_threads": 4}, 10, [1e-5, 1.1e-5, 1.2e-5, 1.3e-5, 2e-5]),
    ({"label": "add", "sub_label": "4x4", "description": "weft"}, 1, [3.0, 3.1]),
    ({"label": "L", "env": "e", "setup": "import math\ny=1"}, 1, [1e-3]),
    ({"setup": "y=1"}, 1, [1e-3, 1e-3, 1e-3, 9e-3]),
    ({"stmt": "for i in range(3):\n    x\n    y", "description": "abc"}, 1, [1e-6 * i for i in range(1, 40)]),
    ({"label": "nano"}, 1000, [3e-6, 3.1e-6, 3e-6]),
]  # fmt: skip
FIGURES = (
    "median",
    "mean",
    "iqr",
    "significant_figures",
    "has_warnings",
    "title",
    "as_row_name",
    "env",
    "times",
)


def measured(bench: Any, spec: dict[str, Any], number: int, times: list[float]) -> Any:
    return bench.Measurement(
        number, times, bench.TaskSpec(**{"stmt": "x+y", "setup": "pass", **spec})
    )


def described(bench: Any, spec: dict[str, Any], number: int, times: list[float]) -> Any:
    one = measured(bench, spec, number, times)
    text = re.sub(r"<.*Measurement object at 0x\w+>", "", repr(one))
    return (
        [getattr(one, name) for name in FIGURES[:5]],
        [getattr(one, n) for n in FIGURES[5:8]],
        text,
    )


@pytest.mark.parity
@pytest.mark.parametrize("index", range(len(SPECS)))
def test_measurements_equal_torch(index: int) -> None:
    bench = pytest.importorskip("torch.utils.benchmark")
    got, expected = (described(b, *SPECS[index]) for b in (weft.utils.benchmark, bench))
    assert got[0] == pytest.approx(expected[0]) and got[1:] == expected[1:]


ROWS = [
    ("add", "4x4", "torch", 1, 1e-5), ("add", "4x4", "weft", 1, 2e-5), ("add", "64x64", "torch", 1, 1e-4),
    ("add", "64x64", "weft", 1, 9e-5), ("add", "64x64", "torch", 2, 3e-5), ("mul", "a", "torch", 1, 1.5e-2),
]  # fmt: skip


def table(bench: Any, trim: bool) -> str:
    rows = [
        measured(
            bench,
            {"label": label, "sub_label": sub, "description": name, "num_threads": threads},
            10,
            [t * (1 + 0.01 * i) for i in range(5)],
        )
        for label, sub, name, threads, t in ROWS
    ]
    compare = bench.Compare(rows)
    if trim:
        compare.trim_significant_figures()
    return str(compare)


@pytest.mark.parity
@pytest.mark.parametrize("trim", [False, True])
def test_tables_equal_torch(trim: bool) -> None:
    bench = pytest.importorskip("torch.utils.benchmark")
    assert table(weft.utils.benchmark, trim) == table(bench, trim)


def test_tables() -> None:
    text = table(weft.utils.benchmark, False)
    assert "      64x64  |   10.2  |  9.2 " in text and "Times are in microseconds (us)." in text
    compare = weft.utils.benchmark.Compare([measured(weft.utils.benchmark, *SPECS[1])])
    compare.highlight_warnings()
    compare.colorize()
    assert "(! 17%)" in str(compare) and "\x1b[92m" in str(compare)
    with pytest.raises(ValueError, match="Compare: expected measurements, got int"):
        weft.utils.benchmark.Compare([1])  # type: ignore[list-item]


def test_timers_count_runs() -> None:
    runs: list[int] = []
    clock = iter(range(10**6))
    options: Any = {"globals": {"runs": runs}, "num_threads": 1, "label": "count"}
    timer = weft.utils.benchmark.Timer(
        "runs.append(torch.get_num_threads())", timer=lambda: next(clock) * 1e-2, **options
    )
    before = weft.get_num_threads()
    measured = timer.timeit(500)
    assert measured.raw_times == [pytest.approx(0.01)] and measured.median == pytest.approx(2e-5)
    assert len(runs) == 505 and set(runs) == {1} and weft.get_num_threads() == before
    seen: list[Any] = []
    blocked = timer.blocked_autorange(
        lambda number, seconds: seen.append(number), min_run_time=0.05
    )
    assert len(blocked.raw_times) in (5, 6) and seen == [1] * len(blocked.raw_times)
    assert timer.adaptive_autorange(min_run_time=0.02).meets_confidence()
    merged = weft.utils.benchmark.Measurement.merge([measured, measured])
    assert len(merged) == 1 and merged[0].number_per_run == 1 and len(merged[0].times) == 2
    for use, error in (
        (lambda: weft.utils.benchmark.Timer(len), ValueError),
        (lambda: weft.utils.benchmark.Timer("x", language="c++"), NotImplementedError),
        (timer.autorange, NotImplementedError),
        (timer.collect_callgrind, NotImplementedError),
    ):
        with pytest.raises(error, match="Timer"):
            use()
