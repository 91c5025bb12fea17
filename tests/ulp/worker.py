"""Calls weft's functions in a process of its own, for which WEFT_ISA says the level.

`python -m ulp.worker values IN OUT`: on the arrays of a file; `python -m ulp.worker halves`: on
every number of 16 bits.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft import _ops

from .functions import FUNCTIONS

#: computed in double whatever the dtype
IN_DOUBLE = frozenset(row.key for row in _ops.load() if row.kind == "native")

WIDE_ONLY = frozenset(("special_erfcx", "special_log_ndtr", "special_ndtri"))  # as in PyTorch


def function_of(name: str) -> Callable[..., Any]:
    """`weft.nn.functional.silu` of "nn.functional.silu"; polygamma of the first order."""
    if name == "polygamma":
        return functools.partial(weft.polygamma, 1)
    return functools.reduce(getattr, name.split("."), weft)


def values(source: str, result: str) -> None:
    with np.load(source) as archive:
        arrays = dict(archive)
    answers = {}
    for key, (name, options, count) in json.loads(str(arrays["calls"])).items():
        arguments = [weft.from_numpy(arrays[f"{key}/{i}"]) for i in range(count)]
        answers[key] = function_of(name)(*arguments, **options).numpy()
    np.savez(result, **answers)


def to_bits(wide: np.ndarray, dtype: str) -> np.ndarray:
    """Rounded to 16 bits without weft: NumPy has float16, and bfloat16 is the half of float32.

    A float64 becomes a float32 on the way, as in weft.
    """
    wide = wide.astype(np.float32)
    if dtype == "float16":
        return wide.astype(np.float16).view(np.uint16)
    bits = wide.view(np.uint32)
    return ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def halves() -> None:
    numbers = weft.from_numpy(np.arange(-(2**15), 2**15, dtype=np.int16))
    found = {}
    for key, function in FUNCTIONS.items():
        if function.binary or key in WIDE_ONLY:
            continue
        call = functools.partial(function_of(function.call), **dict(function.options))
        for dtype in ("float16", "bfloat16"):
            x = numbers.view(getattr(weft, dtype))
            got = call(x).view(weft.int16).numpy().view(np.uint16)
            wide = call(x.double() if key in IN_DOUBLE else x.float()).numpy()
            with np.errstate(all="ignore"):
                wanted = to_bits(wide, dtype)
            nan = np.isnan(call(x).float().numpy()) & np.isnan(wide)
            wrong = np.flatnonzero((got != wanted) & ~nan)
            found[f"{key} {dtype}"] = (
                f"{wrong.size} wrong, at {x[int(wrong[0])].item()}" if wrong.size else ""
            )
    print(json.dumps(found))


if __name__ == "__main__":
    {"values": values, "halves": halves}[sys.argv[1]](*sys.argv[2:])
