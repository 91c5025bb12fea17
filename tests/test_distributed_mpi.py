"""weft.distributed in several processes: each test starts a program of tests/mpi once."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from mpi_support import PATIENCE, SIZES, ended, gloo, run, start

pytestmark = pytest.mark.threads
sizes = pytest.mark.parametrize("count", SIZES)


@sizes
def test_collectives(count: int) -> None:
    run("collectives.py", count, "0")


@sizes
def test_data_parallel(count: int) -> None:
    run("parallel.py", count)


# fault, seconds of the timeout, what is printed
FAULTS = [
    ("raises", 100, r"DistBackendError: all_reduce: rank {last} raised KeyError: 'lost'"),
    ("stopped", 4, r"DistBackendError: all_reduce: .* within 4 s, got no sign of rank {last}"),
    ("elsewhere", 4, r"got rank {last} waits in recv|got rank 0 waits in all_reduce"),
    ("killed", 10, r"DistBackendError: all_reduce: rank {last} ended in the middle of it"),
    ("crashed", 10, r"rank {last} \(process \d+ of \S+\) ended by SIGABRT"),
    ("order", 100, r"expected the same call on all ranks, got all_reduce\(torch.float32\[3\], SUM\) on ranks"),
    ("shapes", 100, r"DistError: all_reduce: .* all_reduce\(torch.float32\[3\], SUM\) on ranks \[0\], all"),
]  # fmt: skip


@sizes
@pytest.mark.parametrize(("fault", "seconds", "message"), FAULTS)
def test_faults(fault: str, seconds: int, message: str, count: int) -> None:
    """All processes end, with an error that names the one that is lost."""
    pytest.importorskip("mpi4py")
    process = start("faults.py", count, fault, str(seconds), WEFT_DISTRIBUTED_DEBUG="1")
    text = ended(process)
    assert process.returncode != 0 and re.search(message.format(last=count - 1), text), text
    end = time.monotonic() + PATIENCE
    while any(map(lives, re.findall(r"pid (\d+)", text))):
        assert time.monotonic() < end
        time.sleep(0.02)


def lives(pid: str) -> bool:
    """Whether a process does more than wait for its parent to ask how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_gloo_has_the_same_results() -> None:
    """Collectives and training of two processes, by PyTorch with gloo and by weft with MPI."""
    pytest.importorskip("torch")
    expected, got = (
        json.loads(text.splitlines()[-1]) for text in (gloo("alike.py"), run("alike.py", 2))
    )
    for rank, values in enumerate(expected):
        assert values.keys() == got[rank].keys()
        for name, value in values.items():
            close = np.allclose if name in ("sgd", "adam") else np.array_equal
            for one, other in zip(value, got[rank][name], strict=True):
                assert close(one, other), (name, rank, one, other)


def test_checkpoints(tmp_path: Path) -> None:
    """A checkpoint of one number of processes is read by another, and training goes on."""
    for count in (2, 1, SIZES[-1]):
        run("checkpoints.py", count, str(tmp_path))


def test_the_example_learns_alike() -> None:
    """One process and two see the same batches."""
    pytest.importorskip("sklearn")
    results = [
        json.loads(run("../../examples/digits_parallel.py", n, "--epochs", "6").splitlines()[-1])
        for n in (1, 2)
    ]
    assert [result["processes"] for result in results] == [1, 2]
    accuracies = [result["accuracy"] for result in results]
    assert min(accuracies) > 0.9 and abs(accuracies[0] - accuracies[1]) < 0.01, results
