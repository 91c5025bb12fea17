"""weft.distributed.tensor: tensors over several processes, and modules that are cut over them."""

from __future__ import annotations

import pytest
from mpi_support import SIZES, run

pytestmark = pytest.mark.threads


@pytest.mark.parametrize("count", sorted({1, 3, *SIZES}))
def test_tensors(count: int) -> None:
    run("tensors.py", count)
