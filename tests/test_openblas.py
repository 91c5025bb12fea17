"""OpenBLAS is loaded by the first operator that needs it, without threads of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os, threading, time
import weft

def is_loaded():
    return any("libscipy_openblas.so" in line for line in open("/proc/self/maps"))

def threads():
    return len(os.listdir("/proc/self/task"))

weft.set_num_threads(1)
network = weft.nn.Sequential(weft.nn.Conv2d(3, 8, 3), weft.nn.Flatten(), weft.nn.Linear(288, 4))
optimizer = weft.optim.Adam(network.parameters())
network(weft.randn(1, 3, 8, 8)).sum().backward()
optimizer.step()
assert not is_loaded() and threads() == 1, threads()
{first}
for _ in range(500):  # threads that were joined may end a little later
    if threads() > 1:
        time.sleep(0.01)
assert is_loaded() and threads() == 1, threads()
assert len(os.sched_getaffinity(0)) == {processors}  # of this thread: as before
"""
FIRST = {
    "a product of complex numbers": "x = weft.eye(70, dtype=weft.complex64) * 2; assert weft.equal(x @ x, x * 2)",
    "a factorization": "assert weft.allclose(weft.linalg.cholesky(weft.eye(5) * 4), weft.eye(5) * 2)",
    "several threads at once": """
found = []
def run():
    found.append(weft.linalg.inv(weft.eye(99) * 2))
workers = [threading.Thread(target=run) for _ in range(8)]
for worker in workers: worker.start()
for worker in workers: worker.join()
assert all(weft.equal(x, weft.eye(99) / 2) for x in found) and len(found) == 8
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("first", list(FIRST))
def test_loaded_by_its_first_call(first: str) -> None:
    program = _PROGRAM.format(first=FIRST[first], processors=len(os.sched_getaffinity(0)))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
