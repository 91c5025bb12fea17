"""weft.distributed.tensor: tensors over several processes, and modules that are cut over them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mpi_support import SIZES, gloo, run

pytestmark = pytest.mark.threads
sizes = pytest.mark.parametrize("count", sorted({1, 3, *SIZES}))


@sizes
@pytest.mark.parametrize(
    "program", ["tensors.py", "tensor_operators.py", "tensor_parallel.py"], ids=lambda p: p[:-3]
)
def test_tensors(program: str, count: int) -> None:
    run(program, count)


# Where weft does without a collective, or leaves equal terms of a sum where they are.
OTHERWISE = {"clone P(sum)", "view S(1)", "flatten S(1)"} | {
    f"{name} {terms}" for name in ("add", "cat") for terms in ("R P(sum)", "P(sum) R")
}


@pytest.mark.parity
def test_placements_are_those_of_gloo() -> None:
    pytest.importorskip("torch")
    expected, got = (
        json.loads(text.splitlines()[-1])
        for text in (gloo("alike_tensors.py"), run("alike_tensors.py", 2))
    )
    for rank, values in enumerate(expected):
        assert values.keys() == got[rank].keys()
        assert values.pop("reprs") == got[rank].pop("reprs")
        different = {name for name, value in values.items() if not alike(value, got[rank][name])}
        assert different == OTHERWISE


def alike(one: object, other: object) -> bool:
    """Whether placements and sizes are the same, and elements to rounding."""
    if not isinstance(one, list) or not isinstance(other, list):
        return False
    return one[:3] == other[:3] and np.allclose(one[3], other[3], 1e-4, 1e-5)
