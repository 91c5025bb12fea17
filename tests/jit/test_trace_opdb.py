"""PyTorch's operator samples, traced by weft and replayed on other values: what a trace does not
record would show the values of the trace. Functions of weft that are written in Python are among
them, and so are their methods."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import weft
from weft import jit

pytestmark = pytest.mark.parity
pytest.importorskip("torch", reason="PyTorch has the samples")
pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")

SAMPLES = 3
# Results nobody wrote, or that say where their memory is.
SKIPPED = frozenset((
    "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
    "bfloat16", "resize_", "resize_as_",
    "sparse.mm.reduce", "sparse.sampled_addmm",  # their samples are sparse
))  # fmt: skip
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError,
          AssertionError)  # fmt: skip


def map_tensors(value: Any, function: Any) -> Any:
    if isinstance(value, weft.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, weft.Size):
        return type(value)(map_tensors(item, function) for item in value)
    return value


def flat(value: Any) -> list[Any]:
    found: list[Any] = []
    map_tensors(list(value) if isinstance(value, (list, tuple)) else [value], found.append)
    return found


def other_values(tensor: Any) -> Any:
    """The same numbers at other places: they stay what the operator can take."""
    return tensor.flatten().flip(0).reshape(tensor.shape) if tensor.numel() else tensor.clone()


def same(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = a.detach(), b.detach()
    if a.dtype == weft.bfloat16:
        a, b = a.float(), b.float()
    if a.dtype == weft.complex32:  # NumPy has none
        a, b = a.cfloat(), b.cfloat()
    return np.array_equal(a.numpy(), b.numpy(), equal_nan=a.is_floating_point() or a.is_complex())


def replay(function: Any, args: Any, kwargs: Any) -> str:
    """What became of a call: "same", "warned", "refused" or "other"."""
    tensors = flat((args, list(kwargs.values())))

    def call(*given: Any) -> Any:
        rest = iter(given)
        made = map_tensors((args, kwargs), lambda _: next(rest))
        return tuple(flat(function(*made[0], **made[1])))

    warnings.filterwarnings("ignore", "dropout2d: expected shape")
    try:
        weft.manual_seed(2)
        if not call(*[t.clone() for t in tensors]):
            return "refused"  # no tensor as result
        others = [other_values(t) for t in tensors]
        weft.manual_seed(3)
        expected = call(*[t.clone() for t in others])
    except ERRORS:
        return "refused"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            traced = jit.trace(call, tuple(t.clone() for t in tensors), check_trace=False)
        except RuntimeError as error:
            assert str(error).startswith("trace: expected"), error
            return "refused"
    if any(w.category is jit.TracerWarning for w in caught):
        return "warned"
    weft.manual_seed(3)
    got = traced(*[t.clone() for t in others])
    equal = len(got) == len(expected) and all(map(same, got, expected))
    return "same" if equal else "other"


def test_no_sample_is_replayed_with_the_values_of_the_trace() -> None:
    import torch
    from parity.convert import to_weft
    from parity.operators import op_infos, samples_of, weft_function

    outcomes: dict[str, list[str]] = {}
    for name, info in op_infos().items():
        function = weft_function(info)
        if function is None or name in SKIPPED or torch.float32 not in info.supported_dtypes("cpu"):
            continue
        for sample in samples_of(info, torch.float32, False)[:SAMPLES]:
            try:
                args = [to_weft(sample.input), *map(to_weft, sample.args)]
                kwargs = {key: to_weft(value) for key, value in sample.kwargs.items()}
            except ERRORS:
                continue
            try:
                outcome = replay(function, args, kwargs)
            except Exception as error:
                outcome = f"{type(error).__name__}: {error}"
            outcomes.setdefault(outcome, []).append(name)
    wrong = {
        key: names for key, names in outcomes.items() if key not in ("same", "warned", "refused")
    }
    assert not wrong, wrong
    assert len(set(outcomes["same"])) > 400
    assert len(set(outcomes["warned"])) < 40, outcomes["warned"]
