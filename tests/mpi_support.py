"""Programs of several processes: a file of checks, started once for all of them by mpiexec."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "mpi"
PATIENCE = 240  # seconds: what takes longer hangs
SIZES = [int(n) for n in os.environ.get("WEFT_MPI_SIZES", "2").split(",")]

# The machine's own loopback, more processes than cores, and root as in containers.
LOCAL = {
    "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "HYDRA_IFACE": "lo",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_btl": "self,sm", "OMPI_MCA_pml": "ob1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}  # fmt: skip


def start(program: str, count: int, *words: str, **variables: str) -> subprocess.Popen[str]:
    """`weft launch` of a program of tests/mpi."""
    command = [sys.executable, "-m", "weft", "launch", "-n", str(count)]
    return subprocess.Popen(
        [*command, str(FOLDER / program), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | LOCAL | variables,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed. Fails where it hangs, and ends all of its processes then."""
    try:
        return process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return pytest.fail(f"hangs: {process.communicate()[0]}")


def gloo(program: str, count: int = 2) -> str:
    """What rank 0 prints of a program of tests/mpi that PyTorch runs. Fails where a rank fails. One
    that PyTorch aborts as it ends ("terminate called without an active exception", once in some
    hundred runs) runs again."""
    for _ in range(3):
        ranks = gloo_ranks(program, count)
        texts = [ended(rank) for rank in ranks]
        if all(rank.returncode != -signal.SIGABRT for rank in ranks):
            break
    assert not any(rank.returncode for rank in ranks), texts
    return texts[0]


def gloo_ranks(program: str, count: int) -> list[subprocess.Popen[str]]:
    """The processes of a program that PyTorch runs, at a port of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    return [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(FOLDER / program)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | world | {"RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo"},
            start_new_session=True,
        )
        for rank in range(count)
    ]


def run(program: str, count: int, *words: str, **variables: str) -> str:
    """What a program prints. Fails where it fails."""
    pytest.importorskip("mpi4py")
    process = start(program, count, *words, **variables)
    text = ended(process)
    assert process.returncode == 0, text
    return text
