"""Variables that are dtypes: PyTorch's programs declare them as int."""

from __future__ import annotations

import pytest

import weft
from weft import Tensor


def kept(x: Tensor) -> Tensor:
    kind: int = x.dtype
    return weft.zeros([2], dtype=kind)


def changed(x: Tensor, wide: bool) -> Tensor:
    kind: int = x.dtype
    if wide:
        kind = weft.float64
    return x.to(kind)


def test_a_dtype_that_is_declared_as_int():
    for x in (weft.ones(1), weft.ones(1, dtype=weft.int8)):
        assert weft.jit.script(kept)(x).dtype == x.dtype
    for wide in (True, False):
        assert (
            weft.jit.script(changed)(weft.ones(1), wide).dtype == changed(weft.ones(1), wide).dtype
        )


def test_other_values_stay_refused():
    def wrong(x: Tensor) -> int:
        kind: int = x.device
        return kind

    with pytest.raises(weft.jit.FrontendError, match="kind: expected a value of type int"):
        weft.jit.script(wrong)
