"""How every test runs: one thread each, drawn examples fixed, a heap that collections need not walk.

`pytest -n 0` runs in one process, for debuggers. Tests run in any order, side by side.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before NumPy and weft are imported, and for the processes that tests start: workers share the cores.
for library in ("WEFT", "OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
# Tests ask what compiling does; tests/jit/test_cache.py asks what is kept of it.
os.environ["WEFT_JIT_CACHE"] = "0"

import pytest
from _pytest.runner import runtestprotocol
from cpp_programs import built_once, libtorch_programs, pytorch_programs
from drawing import SCALE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libraries import lib, seed_the_cpu_only
from shm_support import private_shm

# Fixtures.
__all__ = ["built_once", "lib", "libtorch_programs", "private_shm", "pytorch_programs"]

# However long an example takes: machines are busy.
settings.register_profile(
    "ci",
    derandomize=SCALE == 1,
    database=None,
    print_blob=SCALE > 1,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("ci")

# A shell's background job ignores Ctrl-C, and what tests start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


WHOLE_FILE = re.compile(r"^pytestmark = \[?pytest\.mark\.parity\b", re.MULTILINE)
COMPARES = re.compile(r"\bparity\b|\blib\b")  # by a mark, or as a program in both libraries


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips",
        action="store_true",
        help="what skips fails: for runs where all that tests compare with is installed",
    )


def _unskipped(config: pytest.Config, report: Any) -> Any:
    if config.getoption("no_skips") and report.skipped:
        report.outcome, report.longrepr = "failed", f"--no-skips: {report.longrepr[2]}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker tells what a test's setup and teardown did where they failed: 30,000 tests of some milliseconds
    each would spend a third of them on telling."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    return _unskipped(item.config, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    return _unskipped(collector.config, (yield))


def _may_compare(config: pytest.Config) -> bool:
    """Whether tests marked `parity` run; with --no-skips they fail where PyTorch is not installed."""
    return config.getoption("no_skips") or importlib.util.find_spec("torch") is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which all tests compare with PyTorch imports it when it is collected. With `-m parity` files
    without such tests need not be imported."""
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    if config.getoption("markexpr") == "parity" and not COMPARES.search(text):
        return True
    return (not _may_compare(config) and WHOLE_FILE.search(text) is not None) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `nightly` run where more examples are drawn, too; those marked `parity` where
    PyTorch is installed."""
    left_out = {"nightly": SCALE == 1, "parity": not _may_compare(config)}
    marks = {name for name, is_left_out in left_out.items() if is_left_out}
    kept: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        kept[marks.isdisjoint(each.name for each in item.iter_markers())].append(item)
    config.hook.pytest_deselected(items=kept[False])
    items[:] = kept[True]


@settings(max_examples=1)
@given(st.none())
def _draw_once(_: None) -> None:
    """hypothesis makes its generator with the first example, and asks the collector who holds it: on Python 3.14
    a frozen object."""


def pytest_collection_finish() -> None:
    """What pytest made for 19,000 tests stays: tests that collect garbage need not walk it."""
    seed_the_cpu_only()
    _draw_once()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _frozen_heap() -> None:
    """What the files before left stays, too: a worker that ran most of them has a gigabyte of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _two_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked `threads` run with two threads, whatever the machine has."""
    if request.node.get_closest_marker("threads") is None:
        yield
        return
    import weft

    before = weft.get_num_threads()
    weft.set_num_threads(2)
    yield
    weft.set_num_threads(before)
