"""Results that are stored past the caches: the kernels, and the operators that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from kernel_support import Compiled, pointwise, supported_isas

import weft
from weft._kernels import target
from weft._kernels.lower import Function
from weft._kernels.types import F32, F64, I32

pytestmark = pytest.mark.threads

FLAG = -(1 << 63)  # kNonTemporal in csrc/ops/tile_drivers.h


def aligned(n: int, number: type) -> np.ndarray:
    """Zeros at an address that is a multiple of 64."""
    size = n * np.dtype(number).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(number)


@pytest.mark.parametrize("isa", supported_isas())
@pytest.mark.parametrize("d, number", [(F32, np.float32), (F64, np.float64), (I32, np.int32)])
def test_kernels(isa: str, d: Any, number: type) -> None:
    """They write what others write, and no more; one without such stores ignores the flag."""
    kernels = {
        "sum": pointwise(lambda a, b: a * 3 + b, [d, d]),
        "less": pointwise(lambda a, b: a < b, [d, d]),
    }
    level = target.targets([isa])[0]
    for kernel in kernels.values():
        kernel.streams = True
    texts = {name: Function(kernel, level).text for name, kernel in kernels.items()}
    assert ("!nontemporal" in texts["sum"]) == level.streams
    assert "!nontemporal" not in texts["less"]
    compiled = Compiled(kernels, isa)
    x, y = np.arange(200, dtype=number), np.arange(200, dtype=number)[::-1].copy()
    wanted = {"sum": x * 3 + y, "less": x < y}
    for n in [*range(70), 128, 199]:
        for name, all_of_it in wanted.items():
            out = aligned(200, all_of_it.dtype.type)
            compiled.run(name, [out, x, y], n | FLAG if level.streams else n)
            np.testing.assert_array_equal(out[:n], all_of_it[:n])
            assert not out[n:].any()


# 64 MB: more than a quarter of most processors' last cache. It ends in the middle of everything.
N = (1 << 24) + 1037
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "two tensors": lambda x, y, m: x + y,
    "a number": lambda x, y, m: x * 2.5,
    "a mask": lambda x, y, m: (weft if isinstance(x, weft.Tensor) else np).where(m, x, y),
    "a row": lambda x, y, m: x[:-13].reshape(-1, 1024) + y[:1024],
    "a row of odd length": lambda x, y, m: x[: 1001 * 16760].reshape(-1, 1001) * y[:1001],
    "not aligned": lambda x, y, m: x[1:] - y[1:],
    "a comparison": lambda x, y, m: x < y,
}


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    x, y = draw.random(N, np.float32), draw.random(N, np.float32)
    return x, y, x > 0.5


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = weft.get_num_threads()
    weft.set_num_threads(request.param)
    yield
    weft.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", CASES)
def test_operators(name: str, arrays: tuple[np.ndarray, ...]) -> None:
    wanted = CASES[name](*arrays)
    np.testing.assert_array_equal(CASES[name](*map(weft.from_numpy, arrays)).numpy(), wanted)


@pytest.mark.usefixtures("threads")
def test_results_that_are_given(arrays: tuple[np.ndarray, ...]) -> None:
    x, y, _ = map(weft.from_numpy, arrays)
    out = weft.empty(N + 1)
    weft.add(x, y, out=out[1:])
    np.testing.assert_array_equal(out[1:].numpy(), arrays[0] + arrays[1])
    out = x.clone()
    out.mul_(y)
    np.testing.assert_array_equal(out.numpy(), arrays[0] * arrays[1])
