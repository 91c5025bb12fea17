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
several = pytest.mark.parametrize("count", [size for size in SIZES if size > 1])


@sizes
def test_collectives(count: int) -> None:
    run("collectives.py", count, "0")


@pytest.mark.nightly  # needs 9 GB
def test_large_messages() -> None:
    run("large.py", 2)


@sizes
def test_data_parallel(count: int) -> None:
    run("parallel.py", count)


@sizes
def test_wrapped_modules(count: int) -> None:
    run("wrapped.py", count)


@sizes
def test_gradients(count: int) -> None:
    run("gradients.py", count)


@sizes
def test_functional_collectives(count: int) -> None:
    run("functional_collectives.py", count)


# fault, seconds of the timeout, the error of all ranks but the last
FAULTS = [
    ("raises", 100, r"DistBackendError: all_reduce: rank {last} raised KeyError: 'lost'"),
    ("stopped", 4, r"DistBackendError: all_reduce: .* within 4 s, got no sign of rank {last}"),
    ("elsewhere", 4, r"DistBackendError: .*got (rank {last} waits in recv|rank 0 waits in all_r)"),
    ("killed", 10, r"DistBackendError: all_reduce: rank {last} ended in the middle of it"),
    ("crashed", 10, r"DistBackendError: all_reduce: rank {last} ended in the middle of it"),
    ("parts", 100, r"DistBackendError: all_to_all: expected 12 bytes of rank {last}, got 8"),
    ("order", 100, r"DistError: all_reduce: .* all_reduce\(torch.float32\[3\], SUM\) on ranks"),
    ("shapes", 100, r"DistError: .*, got all_reduce\(torch.float32\[3\], SUM\) on ranks \[0\], all"),
]  # fmt: skip
SIGNALS = {"killed": "SIGKILL", "crashed": "SIGABRT"}


@several
@pytest.mark.parametrize(("fault", "seconds", "message"), FAULTS)
def test_faults(fault: str, seconds: int, message: str, count: int) -> None:
    """All processes end, by an error that names the one that is lost."""
    pytest.importorskip("mpi4py")
    last = count - 1
    process = start("faults.py", count, fault, str(seconds), WEFT_DISTRIBUTED_DEBUG="1")
    text = ended(process)
    assert process.returncode != 0, text
    for rank in range(last):
        assert re.search(rf"rank {rank}: {message.format(last=last)}", text), (rank, text)
    if fault in SIGNALS:
        assert re.search(rf"rank {last} \(process \d+ of \S+\) ended by {SIGNALS[fault]}", text), (
            text
        )
    none_lives(re.findall(r"pid (\d+)", text))


def test_no_rank_outlives_the_launcher() -> None:
    """Not even one that is killed, of ranks that do not ask MPI."""
    pytest.importorskip("mpi4py")
    process = start("faults.py", 2, "sleeps", "1000")
    assert process.stdout is not None
    text, pids = "", []
    while len(pids) < 2:  # lines of two processes may be mixed
        text += (line := process.stdout.readline())
        assert line, text
        pids = re.findall(r"pid (\d+)", text)
    process.kill()
    ended(process)
    none_lives(pids)


def none_lives(pids: list[str]) -> None:
    """Fails unless these processes end soon."""
    end = time.monotonic() + PATIENCE
    while any(map(lives, pids)):
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


@pytest.mark.parity
def test_gloo_trains_alike() -> None:
    pytest.importorskip("torch")
    expected, got = (
        json.loads(text.splitlines()[-1])
        for text in (gloo("alike_training.py"), run("alike_training.py", 2))
    )
    for rank, values in enumerate(expected):
        assert values.keys() == got[rank].keys()
        for name, value in values.items():
            assert near(value, got[rank][name]), (name, rank, value, got[rank][name])


def near(one: object, other: object) -> bool:
    """Whether nested lists and dicts have the same numbers, to rounding."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(near(v, other[key]) for key, v in one.items())
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, 1e-4, 1e-5))
    return one == other


@pytest.mark.nightly  # needs four processes of 270 MB
def test_a_share_of_the_memory() -> None:
    """Of a model of 50 million parameters and Adam, each of 4 processes has 35 % at most."""
    alone, shared = (json.loads(run("../../bench/shard_memory.py", n)) for n in (1, 4))
    for name, whole in alone.items():
        assert shared[name] < 0.35 * whole, (name, alone, shared)


def test_checkpoints(tmp_path: Path) -> None:
    """A checkpoint of one number of processes is read by another, and training goes on."""
    for count in (2, 1, SIZES[-1]):
        run("checkpoints.py", count, str(tmp_path))


# When a process is lost in a save: before its file, with the file whole but not named, with the file,
# with the index whole but not named, and behind that; what the folder then holds.
STAGES = [("begin", 1.0), ("file", 1.0), ("gather", 1.0), ("index", 1.0), ("removal", 2.0)]
SAVES = [(*each, "save") for each in STAGES] + [(*STAGES[at], "async_save") for at in (1, 3)]


@several
@pytest.mark.parametrize(("stage", "holds", "how"), SAVES)
def test_lost_in_a_save(stage: str, holds: float, how: str, count: int, tmp_path: Path) -> None:
    lost_in_a_save(stage, "SIGKILL", how, count, tmp_path)
    assert run("checkpoint_faults.py", 1, str(tmp_path)) == f"holds {holds} files 2\n"


@pytest.mark.parametrize("how", ["save", "async_save"])
def test_stopped_in_a_save(how: str, tmp_path: Path) -> None:
    lost_in_a_save("file", "SIGSTOP", how, 2, tmp_path)
    assert run("checkpoint_faults.py", 1, str(tmp_path)) == "holds 1.0 files 2\n"


def lost_in_a_save(stage: str, signal: str, how: str, count: int, folder: Path) -> None:
    """All other processes end, by an error that names the one that is lost."""
    pytest.importorskip("mpi4py")
    process = start("checkpoint_faults.py", count, str(folder), stage, signal, how)
    text = ended(process)
    assert process.returncode != 0, text
    victim = 0 if stage in ("index", "removal") else count - 1
    why = f"rank {victim} ended in" if signal == "SIGKILL" else f"4 s, got no sign of rank {victim}"
    for rank in set(range(count)) - {victim}:
        assert re.search(rf"rank {rank}: DistBackendError: .*{why}", text), (rank, text)
    none_lives(re.findall(r"pid (\d+)", text))


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
