"""weft.distributed in several processes: each test starts a program of tests/mpi once."""

from __future__ import annotations

import pytest
from mpi_support import SIZES, run

pytestmark = pytest.mark.threads
sizes = pytest.mark.parametrize("count", SIZES)


@sizes
def test_collectives(count: int) -> None:
    run("collectives.py", count, "0")
