"""Drawn tests draw the same examples in every run, so that a red run is a fault of the change and not the luck
of the draw. `pytest --hypothesis-profile=explore` draws anew: do that after a change, and turn what it finds into
a named case."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import settings
from shm_support import private_shm

__all__ = ["private_shm"]  # a fixture

settings.register_profile("same", derandomize=True, database=None)
settings.register_profile("explore", print_blob=True)
settings.load_profile("same")

# A shell's background job ignores Ctrl-C, and what tests start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    return _unskipped(item.config, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    return _unskipped(collector.config, (yield))
