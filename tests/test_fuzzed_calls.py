"""Random shapes, memory layouts, dtypes and arguments at every row of the operator table.

Whatever is thrown at a row, it must answer with a value or one clear error, say the same of
contiguous memory, be right where its case has a reference (and, under `parity`, where PyTorch
answers), write only where its schema says so, and hold nothing afterwards.

`WEFT_EXAMPLES=40 python -m pytest tests/test_fuzzed_calls.py` throws that many calls at each row.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st
from op_cases import CASES, Case, calling
from op_cases.fuzzed import Call, Named, calls
from op_cases.realise import to_numpy
from op_cases.spec import S

import weft

SETTINGS = examples(5)
#: what a wrong call may raise
ERRORS = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)

RANDOM = frozenset(
    k for k, row in calling.ROWS.items() if row.kind == "random" or "random" in row.tags
)
UNINITIALISED = frozenset(("empty.memory_format", "empty_strided", "empty_like", "new_empty"))
#: the answer depends on how the argument lies in memory, as it should
OF_MEMORY = frozenset(
    ("as_strided", "as_strided_copy", "view", "view.dtype", "view_as", "view_as_complex")
    + ("view_copy.dtype",)
)
#: small changes of the argument may change the answer without bound: only faithful samples compare
ILL_POSED = frozenset(k for k in calling.ROWS if any(part in k for part in (
    "inv", "det", "solve", "cholesky", "linalg_eig", "linalg_lu", "ldl", "qr", "svd", "matrix_power",
)))  # fmt: skip


def outcome(function: Any, call: Call, plain: bool) -> tuple[Any, str]:
    """(the result and the arguments afterwards, ""), or (None, the error's kind and text)."""
    args, kwargs = call.build(weft, plain)
    weft.manual_seed(0)
    try:
        return (function(*args, **kwargs), args), ""
    except ERRORS as error:
        return None, f"{type(error).__name__}: {error}"


def same(one: Any, other: Any, rtol: float) -> None:
    one, other = to_numpy(one), to_numpy(other)
    if isinstance(other, list):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            same(a, b, rtol)
        return
    a, b = np.asarray(one), np.asarray(other)
    if b.dtype == object or b.dtype.kind in "US":
        assert one == other or one is other
        return
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    # Sums in another order differ by the size of the terms, which the largest result stands for.
    finite = np.abs(b[np.isfinite(b)]) if b.dtype.kind in "fc" else np.zeros(0)
    size = max(1.0, float(finite.max())) if finite.size else 1.0
    rtol = max(rtol, {"float16": 5e-3, "float32": 3e-4, "complex64": 3e-4}.get(b.dtype.name, rtol))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size)


def tolerance(call: Call) -> float:
    names = {o.dtype for o in call.operands()}
    names |= {v.name for v in (*call.args, *call.kwargs.values()) if isinstance(v, Named)}
    if names & {"bfloat16"}:
        return 0.05
    return 5e-3 if names & {"float16"} else 1e-9 if names <= {"float64", "complex128"} else 3e-4


def wide_arguments(call: Call) -> S:
    def widen(value: Any) -> Any:
        if isinstance(value, list):
            return [widen(v) for v in value]
        if not hasattr(value, "array"):
            return value
        array = value.values if value.dtype == "bfloat16" else value.array("contiguous")
        if value.dtype == "bfloat16" and value.layout == "broadcast" and array.ndim:
            array = np.repeat(array[:1], array.shape[0], 0)
        return array.astype("float64") if array.dtype.kind == "f" else array

    return S(*map(widen, call.args), **{k: widen(v) for k, v in call.kwargs.items()})


def check_against_reference(case: Case, call: Call, result: Any) -> None:
    """A sample of the case, laid out anew, must give what the reference says."""
    sample = wide_arguments(call)
    with np.errstate(all="ignore"):
        expected = case.ref(*sample.args, **sample.kwargs)
    rtol = max(tolerance(call), 1e-6) * case.tolerance

    def close(got: Any, wanted: Any) -> None:
        if isinstance(wanted, (tuple, list)):
            assert len(got) == len(wanted)
            for pair in zip(got, wanted):
                close(*pair)
            return
        got, wanted = np.asarray(to_numpy(got)), np.asarray(wanted)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)

    close(result, expected)


def bytes_in_use() -> int:
    return weft.memory.caching_allocator().stats()["bytes_in_use"]


def throw(case: Case, call: Call, form: str) -> None:
    """Makes the call twice, laid out as drawn and contiguous, and holds the two to each other."""
    function = calling.function_of(case.name, form)
    drawn, error = outcome(function, call, plain=False)
    plain, plain_error = outcome(function, call, plain=True)
    if error or plain_error:
        if case.name in OF_MEMORY:
            return
        written = form == "_" or calling.ROWS[case.name].writes
        overlapping = any(o.layout == "broadcast" for o in call.operands())
        if not plain_error and written and overlapping:
            return  # memory that lies twice in a tensor refuses to be written
        assert error == plain_error
        assert call.faithful is None or form == "_", f"a sample was refused: {error}"
        return
    if case.name in UNINITIALISED or case.name in OF_MEMORY:
        return
    faithful = call.faithful is not None
    if case.name in RANDOM or (case.name in ILL_POSED and not faithful):
        return
    rtol = tolerance(call) * (case.tolerance if faithful else 1)
    same(drawn[0], plain[0], rtol)
    same(
        [a for a in drawn[1] if isinstance(a, weft.Tensor)],
        [a for a in plain[1] if isinstance(a, weft.Tensor)],
        rtol,
    )
    if faithful and case.ref is not None and form == "":
        check_against_reference(case, call, drawn[0])


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_whatever_is_thrown_is_answered(case: Case) -> None:
    row = calling.ROWS[case.name]
    forms = ("", "_") if row.inplace is not None else ("",)

    @SETTINGS
    @given(calls(case), st.sampled_from(forms))
    def run(call: Call, form: str) -> None:
        before = bytes_in_use()
        throw(case, call, form)
        # Nothing is held: not the memory of results, not the arrays the arguments lay in.
        for operand in call.operands():
            while operand.held:
                held = operand.held.pop()
                assert sys.getrefcount(held) <= 2, "an argument is held"
        assert bytes_in_use() == before

    gc.collect()
    gc.disable()  # the collector would free others' memory in between
    try:
        run()
    finally:
        gc.enable()
