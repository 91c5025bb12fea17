"""Groups whose results are stored past the caches: native code gets the flag that asks for it, as the
kernels of operators do (kNonTemporal in csrc/ops/tile_drivers.h)."""

from __future__ import annotations

import pytest

import weft
from jit.groups import bits, run_group, threads

pytestmark = pytest.mark.threads


def cheap(x, y):
    return (x - y) * x + 0.5


def costly(x, y):
    """So much arithmetic that its native code has no such stores, and ignores the flag."""
    return weft.sigmoid(x * y + 1.0) * weft.tanh(x - y) + weft.exp(x) * weft.log(y * y + 1.0)


def several(x, y):
    z = x * 2.0 - y
    return z, z > y, z * 0.5


# 64 MB: more than a quarter of most processors' last cache. It ends in the middle of everything.
N = (1 << 24) + 1037


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("function", [cheap, costly, several], ids=lambda f: f.__name__)
def test_native_code_of_large_results(function, count):
    weft.manual_seed(0)
    x, y = weft.randn(N), weft.randn(N)
    expected = function(x, y)
    expected = expected if isinstance(expected, tuple) else (expected,)
    with threads(count):
        got = run_group(function, weft.float32, x=x, y=y)
    assert [bits(one) for one in got] == [bits(one) for one in expected]
