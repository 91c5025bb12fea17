"""Products of int8, which some processors multiply by fours: exact."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(6)


def _int8(*sizes: int) -> weft.Tensor:
    return weft.from_numpy(RNG.integers(-128, 128, sizes, dtype=np.int8))


def _exact(a: weft.Tensor, b: weft.Tensor) -> list[list[int]]:
    product = a.numpy().astype(np.int64) @ b.numpy().astype(np.int64)
    return product.tolist()  # type: ignore[no-any-return]


LAYOUTS: dict[str, Callable[[weft.Tensor], weft.Tensor]] = {
    "rows": lambda x: x,
    "columns": lambda x: x.t().contiguous().t(),
    "gaps": lambda x: weft.stack([x, x], -1)[..., 0],
    "other rows": lambda x: weft.cat([x, x[:, :1]], 1)[:, : x.shape[1]],
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_layouts(left: str, right: str) -> None:
    for m, k, n in ((40, 65, 70), (1, 4, 1), (13, 130, 35), (25, 2000, 33)):
        a, b = LAYOUTS[left](_int8(m, k)), LAYOUTS[right](_int8(k, n))
        got = weft._int_mm(a, b)
        assert got.dtype == weft.int32 and got.tolist() == _exact(a, b)


def test_extremes() -> None:
    low, high = (
        weft.full((3, 700), -128, dtype=weft.int8),
        weft.full((700, 40), 127, dtype=weft.int8),
    )
    for a, b in ((low, high), (low, low.t()), (high.t(), high), (high.t(), low.t())):
        assert weft._int_mm(a, b).tolist() == _exact(a, b)


def test_sums_wrap_around() -> None:
    high = weft.full((1, 140_000), 127, dtype=weft.int8)
    assert weft._int_mm(high, high.t()).item() == 140_000 * 127**2 - 2**32
    assert weft._int_mm(high, -high.t()).item() == -140_000 * 127**2 + 2**32


@pytest.mark.threads
def test_threads() -> None:
    a, b = _int8(300, 257), _int8(257, 190)
    assert weft._int_mm(a, b).tolist() == _exact(a, b)


@pytest.mark.parametrize("isa", ["v2", "v3"])
def test_other_registers(isa: str) -> None:
    """Without an instruction for four products: of the even and the odd bytes."""
    code = (
        "import numpy as np, weft; r = np.random.default_rng(1)\n"
        "a, b = (r.integers(-128, 128, s, dtype=np.int8) for s in ((13, 130), (130, 35)))\n"
        "got = weft._int_mm(weft.from_numpy(a), weft.from_numpy(b)).numpy()\n"
        "assert (got == a.astype(np.int64) @ b.astype(np.int64)).all()\n"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "WEFT_ISA": isa}, check=True)


def test_empty() -> None:
    assert weft._int_mm(_int8(3, 0), _int8(0, 2)).tolist() == [[0, 0]] * 3
    assert weft._int_mm(_int8(0, 3), _int8(3, 2)).shape == (0, 2)


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (weft._int_mm, (weft.ones(2, 3), _int8(3, 2))),
    (weft._int_mm, (_int8(2, 3), _int8(2, 3))),
    (weft._int_mm, (_int8(3), _int8(3, 2))),
    (weft._weight_int8pack_mm, (weft.ones(2, 3), _int8(4, 2), weft.ones(4))),
    (weft._weight_int8pack_mm, (weft.ones(2, 3), weft.ones(4, 3), weft.ones(4))),
    (weft._weight_int8pack_mm, (weft.ones(2, 3), _int8(4, 3), weft.ones(3))),
]


@pytest.mark.parametrize("function, arguments", REFUSED)
def test_refused(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(RuntimeError, match="expected"):
        function(*arguments)


@pytest.mark.parametrize("dtype", [weft.float32, weft.bfloat16, weft.float16])
def test_weights_with_scales(dtype: weft.dtype) -> None:
    rows = weft.from_numpy(RNG.normal(size=(5, 60)).astype(np.float32)).to(dtype)
    weight, scales = _int8(9, 60), weft.from_numpy(RNG.random(9).astype(np.float32)).to(dtype)
    got = weft._weight_int8pack_mm(rows, weight, scales)
    exact = rows.double() @ weight.double().t() * scales.double()
    terms = rows.double().abs() @ weight.double().abs().t() * scales.double()
    bound = exact.abs() * weft.finfo(dtype).eps + terms * 62 * 2.0**-24
    assert got.dtype == dtype and bool(((got.double() - exact).abs() <= bound).all())
