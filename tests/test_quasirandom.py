"""Sobol sequences: their points, what scrambling keeps, and PyTorch's numbers."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.quasirandom import SobolEngine


def test_points_are_binary_fractions_in_gray_code_order() -> None:
    points = SobolEngine(3).draw(5)
    expected = [[0, 0, 0], [4, 4, 4], [6, 2, 2], [2, 6, 6], [3, 3, 5]]
    assert points.mul(8).tolist() == expected
    assert points.dtype == weft.float32


@pytest.mark.parametrize("scramble", (False, True))
def test_each_dimension_of_a_block_has_one_point_in_each_interval(scramble: bool) -> None:
    points = SobolEngine(1111, scramble=scramble, seed=3).draw_base2(6, dtype=weft.float64)
    cells = points.mul(64).long().sort(0).values
    assert weft.equal(cells, weft.arange(64).unsqueeze(1).expand(-1, 1111))


def test_drawing_goes_on_and_begins_again() -> None:
    engine = SobolEngine(4, scramble=True, seed=1)
    whole = engine.draw(9)
    assert engine.reset() is engine and engine.num_generated == 0
    parts = [engine.draw(2), engine.draw(3)]
    engine.fast_forward(2)
    assert weft.equal(weft.cat(parts), whole[:5]) and weft.equal(engine.draw(2), whole[7:])
    out = weft.empty(0)
    assert engine.reset().draw(3, out=out) is out and weft.equal(out, whole[:3])


def test_without_a_seed_the_global_generator_scrambles() -> None:
    weft.manual_seed(0)
    one, two = SobolEngine(2, scramble=True).draw(), SobolEngine(2, scramble=True).draw()
    weft.manual_seed(0)
    assert weft.equal(SobolEngine(2, scramble=True).draw(), one) and not weft.equal(one, two)


def test_errors_and_text() -> None:
    for dimension in (0, 1112):
        with pytest.raises(
            ValueError, match=rf"expected a dimension in \[1, 1111\], got {dimension}"
        ):
            SobolEngine(dimension)
    engine = SobolEngine(2, scramble=True, seed=5)
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=5)"
    engine.draw(3)
    with pytest.raises(ValueError, match="expected a power of 2 points in all, got 7"):
        engine.draw_base2(2)
    with pytest.raises(RuntimeError, match="expected at least 1 point, got 0"):
        engine.draw(0)


@pytest.mark.parity
@pytest.mark.parametrize("dimension", (1, 2, 7, 1111))
@pytest.mark.parametrize("scramble", (False, True))
def test_the_numbers_are_pytorchs(dimension: int, scramble: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    ours = SobolEngine(dimension, scramble=scramble, seed=11)
    theirs = torch.quasirandom.SobolEngine(dimension, scramble=scramble, seed=11)
    for step in (1, 5, 2):
        assert ours.draw(step).tolist() == theirs.draw(step).tolist()
        ours.fast_forward(3), theirs.fast_forward(3)
    assert ours.draw(4, dtype=weft.float64).tolist() == theirs.draw(4, dtype=torch.float64).tolist()
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
    assert ours.quasi.tolist() == theirs.quasi.tolist()
