"""Children of fork() work, whatever the threads of the parent were doing at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIOS = Path(__file__).with_name("fork_support.py")
SECONDS = 400  # each takes some seconds on a quiet machine; nothing may ever hang


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "name",
    ["storm", "together", "compiling", "hooks", "allocator", "leaving", "lost_future", "importing"],
)
def test_children_of_fork_work(name: str, threads: int) -> None:
    """In a process of its own, killed with all of its children if it hangs. With more threads than
    processors, too."""
    run = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCENARIOS), name],
        env={**os.environ, "WEFT_NUM_THREADS": str(threads)},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        _, errors = run.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        _, errors = run.communicate()
        pytest.fail(f"{name} hangs: {errors[-4000:]}")
    assert run.returncode == 0, errors[-4000:]


COLLECTOR = """
import gc, os, weft
from weft import _imports
weft.fft
assert gc.isenabled()
try:
    _imports.load("weft.no_such_module")
except ImportError:
    pass
assert gc.isenabled()
gc.disable()
weft.special
assert not gc.isenabled()  # as the program wants it
gc.enable()

class Forking:  # as another thread might, in the middle of an import
    def find_spec(self, name, path, target=None):
        if name == "weft.signal":
            assert not gc.isenabled()
            child = os.fork()
            if child == 0:
                os._exit(0 if gc.isenabled() else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

import sys
sys.meta_path.insert(0, Forking())
weft.signal
assert gc.isenabled()
"""


def test_the_collector_rests_for_an_import_and_no_longer() -> None:
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", COLLECTOR], check=False)
    assert ran.returncode == 0
