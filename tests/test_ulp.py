"""Every elementary function against mpmath, at every instruction-set level this machine has.

`python tests/test_ulp.py 4000` measures on 4000 random arguments a range and prints the table of
docs/kernels.md.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_support import supported_isas
from ulp.functions import EXEMPT, FUNCTIONS, Function
from ulp.measure import Job, answers, exact_values, halves, ulp_errors
from ulp.points import arguments

from weft import _ops

COUNT = 300  # random arguments a range
DTYPES = {"float32": np.float32, "float64": np.float64}
KERNELS_PAGE = Path(__file__).parents[1] / "docs" / "kernels.md"


@functools.cache
def jobs(count: int = COUNT) -> dict[str, Job]:
    """By "name dtype": the function and its arguments."""
    return {
        f"{name} {dtype}": (function, arguments(name, function, kind, count))
        for name, function in FUNCTIONS.items()
        for dtype, kind in DTYPES.items()
    }


@functools.cache
def exact(job: str, count: int = COUNT) -> list[object]:
    return exact_values(*jobs(count)[job])


@functools.cache
def computed(isa: str, count: int = COUNT) -> dict[str, np.ndarray]:
    return answers(isa, jobs(count))


def bound(function: Function, dtype: str) -> float:
    return function.bounds[list(DTYPES).index(dtype)]


def errors(job: str, isa: str, count: int = COUNT) -> np.ndarray:
    function, args = jobs(count)[job]
    return ulp_errors(function, computed(isa, count)[job], exact(job, count), args)


@pytest.mark.parametrize("isa", supported_isas())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_in_units_of_the_last_place(name: str, dtype: str, isa: str) -> None:
    job = f"{name} {dtype}"
    found = errors(job, isa)
    at = int(found.argmax())
    where = [a[at] for a in jobs()[job][1]]
    message = f"{job} at {isa}: {found[at]} ULP of {where}, got {computed(isa)[job][at]!r}"
    assert found[at] <= bound(FUNCTIONS[name], dtype), message


@pytest.mark.parametrize("isa", supported_isas())
def test_lgamma_keeps_its_digits_beside_its_zeros(isa: str) -> None:
    """Of the result's own last place, not of 1: small results are not sums of large ones."""
    near = [
        np.float32(zero + k * 2.0**-23 * 2**j)
        for zero in (1, 2)
        for j in range(20)
        for k in (-1, 1)
    ]
    x = np.array(near, np.float32)
    function = Function("lgamma", FUNCTIONS["lgamma"].exact, (1.0, 1.0), ())
    found = answers(isa, {"lgamma": (function, (x,))})["lgamma"]
    assert ulp_errors(function, found, exact_values(function, (x,)), (x,)).max() <= 1


# ---- values that are no numbers in the ordinary sense ----


@functools.cache
def limits(isa: str) -> dict[str, np.ndarray]:
    """The functions at 0, -0, inf, -inf, NaN and outside, behind one another, four times over.

    So every one stands in a vector lane and in the rest of a loop.
    """
    special = {
        f"{name} {dtype}": (
            function,
            (np.tile(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, *function.outside], kind), 4),),
        )
        for name, function in FUNCTIONS.items()
        for dtype, kind in DTYPES.items()
        if function.limits
    }
    return answers(isa, special)


@pytest.mark.parametrize("isa", supported_isas())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.limits])
def test_limits(name: str, dtype: str, isa: str) -> None:
    function = FUNCTIONS[name]
    wanted = [*function.limits, *[np.nan] * (1 + len(function.outside))]
    wanted = np.tile(np.array(wanted, DTYPES[dtype]), 4)
    got = limits(isa)[f"{name} {dtype}"]
    np.testing.assert_array_equal(got, wanted)
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(wanted[real]))


# ---- 16 bits ----

#: several operators, each of which rounds
COMPOSITIONS = {"special_ndtr", "mish"}


@pytest.mark.parametrize("isa", supported_isas())
def test_every_number_of_16_bits_gives_the_rounded_wide_result(isa: str) -> None:
    wrong = {job: text for job, text in halves(isa).items() if text}
    assert {j: t for j, t in wrong.items() if j.split()[0] not in COMPOSITIONS} == {}


# ---- the table ----


def test_every_elementary_row_is_measured_or_exempt() -> None:
    rows = {
        row.key
        for row in _ops.load()
        if (row.kind == "pointwise" or row.family == "special")
        and row.result[0] in ("compute", "real")
        and (not row.dtypes or "float32" in row.dtypes)
        and "backward" not in row.tags
        and not row.writes
    }
    names = {name for name in FUNCTIONS if name in {row.key for row in _ops.load()}}
    private = {"_gelu_erf", "_gelu_tanh", "_logit"}  # the arithmetic of gelu and logit
    composed = {"square", "special_ndtr"}  # of operators that are measured or exact
    assert rows - set(EXEMPT) | composed == names - private
    assert set(EXEMPT) <= rows
    assert set(FUNCTIONS) - names == {"mish"}


def stated() -> dict[str, tuple[str, ...]]:
    """The rows of the page's table: the function's name and its cells."""
    lines = KERNELS_PAGE.read_text().splitlines()
    table = [[c.strip() for c in line.strip("|").split("|")] for line in lines if "|" in line]
    return {cells[0]: tuple(cells[1:]) for cells in table if cells[0] in FUNCTIONS}


def test_the_page_states_the_bounds() -> None:
    assert list(stated()) == list(FUNCTIONS)
    for name, function in FUNCTIONS.items():
        measured32, bound32, measured64, bound64, unit = stated()[name]
        assert (bound32, bound64) == tuple(f"{b:g}" for b in function.bounds), name
        assert float(measured32) <= float(bound32), name
        assert float(measured64) <= float(bound64), name
        assert unit == function.unit, name


def print_table(count: int) -> None:
    """Greatest errors over the instruction sets, and the bounds: the table of docs/kernels.md."""
    print("| function | float32: measured | bound | float64: measured | bound | ULP of |")
    print("|---|---|---|---|---|---|")
    for name, function in FUNCTIONS.items():
        cells = []
        for dtype in DTYPES:
            worst = max(errors(f"{name} {dtype}", isa, count).max() for isa in supported_isas())
            cells += [f"{worst:.2f}", f"{bound(function, dtype):g}"]
        print(f"| {name} | {' | '.join(cells)} | {function.unit} |")


if __name__ == "__main__":
    print_table(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
