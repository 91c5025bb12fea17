"""weft.distributed.tensor: tensors over several processes, and modules that are cut over them."""

from __future__ import annotations

import pytest
from mpi_support import SIZES, run

pytestmark = pytest.mark.threads
sizes = pytest.mark.parametrize("count", sorted({1, 3, *SIZES}))


@sizes
@pytest.mark.parametrize(
    "program", ["tensors.py", "tensor_operators.py", "tensor_parallel.py"], ids=lambda p: p[:-3]
)
def test_tensors(program: str, count: int) -> None:
    run(program, count)
