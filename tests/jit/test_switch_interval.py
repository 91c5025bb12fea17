"""While groups are compiled threads hand the interpreter lock over quickly, and only then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from weft.jit.native import available, compiler, switch_interval
from weft.jit.native.switch_interval import yielding


@pytest.fixture
def interval():
    compiler.stop()  # until the next program is made
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def test_the_lock_is_handed_over_sooner_meanwhile(interval):
    with yielding():
        assert sys.getswitchinterval() == pytest.approx(switch_interval.INTERVAL)
    assert sys.getswitchinterval() == interval
    with pytest.raises(KeyError), yielding():
        raise KeyError
    assert sys.getswitchinterval() == interval


def test_the_interval_of_a_program_stays(interval):
    shorter = switch_interval.INTERVAL / 2
    sys.setswitchinterval(shorter)
    with yielding():
        assert sys.getswitchinterval() == pytest.approx(shorter)
    assert sys.getswitchinterval() == pytest.approx(shorter)
    sys.setswitchinterval(interval)
    with yielding():
        sys.setswitchinterval(0.02)  # by another thread of the program, say
    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_a_child_made_in_the_middle_has_the_interval_of_the_program(interval):
    with yielding():
        child = os.fork()
        if child == 0:
            os._exit(0 if sys.getswitchinterval() == interval else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


HOT = """
import os, sys, time
sys.setswitchinterval(float(sys.argv[1]))
import weft as torch
from weft.jit.native import compiler
chain = torch.jit.CompilationUnit('''
def chain(x, y):
    return torch.sigmoid(x * y + 1.0) * torch.tanh(x - y) + x * 0.5
''').chain
x, y = torch.ones(64), torch.ones(64)
end = time.perf_counter() + float(sys.argv[2])
while not compiler.compiled and not compiler.failures and time.perf_counter() < end:
    chain(x, y)
assert compiler.compiled, compiler.failures
compiler.stop()
"""


# With an interval of 20 s the compiling thread gets the lock only where calls offer it.
@pytest.mark.parametrize(("interval", "seconds"), [("0.005", "60"), ("20", "10")])
def test_native_code_comes_while_a_program_calls_without_a_pause(tmp_path, interval, seconds):
    if not available():
        pytest.skip("no llvmlite")
    environment = {**os.environ, "WEFT_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", HOT, interval, seconds]
    subprocess.run(command, check=True, env=environment)
