"""Every row of the operator table against its case: values, dtypes, layouts, forms, error texts."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case, calling
from op_cases.realise import LAYOUTS, map_arrays, realise, to_library, to_numpy
from op_cases.spec import A, S

import weft
from weft._functions import factorizations, lu
from weft.nn import _loss_functions

#: relative tolerance of one operator on values computed in float64
RTOL = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-12}


def with_reference() -> list[Any]:
    return [
        pytest.param(case, dtype, id=f"{case.name}-{dtype}")
        for case in CASES.values()
        if case.ref is not None
        for dtype in case.dtypes
    ]


def widen(array: np.ndarray) -> np.ndarray:
    return array.astype("float64") if array.dtype.kind == "f" else array


def rounded(sample: S, dtype: str) -> S:
    """The values the tensor really holds: bfloat16 rounds its float32 carrier."""
    if dtype != "bfloat16":
        return sample
    return map_arrays(
        sample,
        lambda a: to_numpy(weft.from_numpy(a).to(weft.bfloat16)) if a.dtype == "float32" else a,
    )


def assert_matches(result: Any, expected: Any, dtype: str, factor: float) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected):
            assert_matches(one, other, dtype, factor)
        return
    expected = np.asarray(expected)
    if isinstance(result, weft.Tensor):
        if expected.dtype.kind == "f":
            floating = dtype if dtype in RTOL else "float32"
            assert str(result.dtype) == f"torch.{floating}"
        if expected.dtype.kind == "b":
            assert result.dtype == weft.bool
        assert tuple(result.shape) == expected.shape
    rtol = RTOL.get(dtype, 3e-6) * factor
    np.testing.assert_allclose(to_numpy(result), expected, rtol=rtol, atol=rtol)


def reference(case: Case, sample: S, dtype: str) -> Any:
    wide = map_arrays(rounded(sample, dtype), widen)
    with np.errstate(all="ignore"):
        return case.ref(*wide.args, **wide.kwargs)


def helpers() -> set[str]:
    """Rows that exist for gradient formulas alone: no place in Python, so no case of their own."""
    return {key for key, row in calling.ROWS.items() if "backward" in row.tags}


def test_every_row_has_a_case_and_every_case_a_row() -> None:
    assert sorted(set(calling.ROWS) - helpers()) == sorted(CASES)


def test_every_case_tests_something() -> None:
    empty = [c.name for c in CASES.values() if not (c.ref or c.check)]
    assert empty == []


def test_every_helper_row_is_reached_by_a_formula_or_a_body() -> None:
    """The gradient tests of the rows that use a helper are its tests."""
    written = " ".join(
        text
        for row in calling.ROWS.values()
        for text in (
            *row.grad.values(),
            inspect.getsource(row.body) if callable(row.body) else row.body,
        )
    )
    written += "".join(map(inspect.getsource, (weft.linalg, factorizations, lu, _loss_functions)))
    names = {calling.ROWS[key].name for key in helpers()}
    unnamed = {name for name in names if f"{name}(" not in written}
    assert unnamed == set(CALLED_FROM_CPP)


#: helpers that only C++ calls, and what Python sees of them: the node of a result
CALLED_FROM_CPP = {
    "_batch_norm_train": lambda x: weft.nn.functional.batch_norm(x, None, None, training=True),
    "_view_dtype": lambda x: x.view(weft.float32 if x.dtype == weft.int32 else weft.int32),
}


def test_helpers_of_cpp_are_reached() -> None:
    x = weft.randn(4, 3, requires_grad=True)
    node = CALLED_FROM_CPP["_batch_norm_train"](x).grad_fn
    assert node is not None and node.name() == "BatchNormTrainBackward0"
    bits = CALLED_FROM_CPP["_view_dtype"](x.detach())
    assert bits.dtype == weft.int32 and bits.data_ptr() == x.data_ptr()
    assert weft.equal(CALLED_FROM_CPP["_view_dtype"](bits), x.detach())


@pytest.mark.parametrize(("case", "dtype"), with_reference())
def test_forward_matches_the_reference(case: Case, dtype: str) -> None:
    for index, sample in enumerate(case.samples):
        for layout in LAYOUTS if case.layouts else LAYOUTS[:1]:
            arrays = realise(sample, case, dtype, index, layout)
            result = calling.call(case.name, to_library(arrays, weft, dtype))
            assert_matches(result, reference(case, arrays, dtype), dtype, case.tolerance)


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.check], ids=lambda c: c.name)
def test_properties_hold(case: Case) -> None:
    case.check(calling.function_of(case.name))


def forms(which: str) -> list[Any]:
    """Cases whose row has a derived form: "inplace" or "out"."""
    return [
        pytest.param(case, id=case.name)
        for case in CASES.values()
        if case.forms and case.ref and getattr(calling.ROWS[case.name], which) is not None
    ]


@pytest.mark.parametrize("case", forms("inplace"))
def test_in_place_form_writes_what_the_plain_form_returns(case: Case) -> None:
    for index, sample in enumerate(case.samples):
        arrays = to_library(realise(sample, case, case.dtypes[0], index), weft, case.dtypes[0])
        plain = calling.call(case.name, arrays)
        if plain.shape != arrays.args[0].shape or plain.dtype != arrays.args[0].dtype:
            continue
        target = arrays.args[0].clone()
        returned = calling.call(case.name, S(target, *arrays.args[1:], **arrays.kwargs), "_")
        assert returned is target
        np.testing.assert_array_equal(to_numpy(target), to_numpy(plain))


def each(result: Any, function: Any) -> Any:
    """The function of a tensor, or of each in a tuple."""
    return tuple(map(function, result)) if isinstance(result, tuple) else function(result)


@pytest.mark.parametrize("case", forms("out"))
def test_out_form_writes_into_the_given_tensors(case: Case) -> None:
    """Those that fit, and those without elements, which are resized."""
    for index, sample in enumerate(case.samples):
        arrays = to_library(realise(sample, case, case.dtypes[0], index), weft, case.dtypes[0])
        plain = calling.call(case.name, arrays)
        # row sums may be split otherwise on the way to a given tensor
        rtol = RTOL.get(case.dtypes[0], 0.0)
        for out in (
            each(plain, weft.empty_like),
            each(plain, lambda t: weft.empty(0, dtype=t.dtype)),
        ):
            returned = calling.call(case.name, arrays, out=out)
            pairs = (
                zip(returned, out, plain) if isinstance(out, tuple) else [(returned, out, plain)]
            )
            for got, given, wanted in pairs:
                assert got is given and given.shape == wanted.shape
                np.testing.assert_allclose(to_numpy(given), to_numpy(wanted), rtol=rtol)


def failures() -> list[Any]:
    return [
        pytest.param(case, failing, id=f"{case.name}-{i}")
        for case in CASES.values()
        for i, failing in enumerate(case.fails)
    ]


@pytest.mark.parametrize(("case", "failing"), failures())
def test_error_text_word_for_word(case: Case, failing: Any) -> None:
    arrays = to_library(realise(failing.sample, case, case.dtypes[0]), weft, case.dtypes[0])
    with pytest.raises(failing.error) as caught:
        calling.call(case.name, arrays)
    assert type(caught.value) is failing.error
    assert str(caught.value) == failing.text


def test_a_read_only_tensor_refuses_every_in_place_form() -> None:
    for case in (c.values[0] for c in forms("inplace")):
        arrays = realise(case.samples[0], case, case.dtypes[0])
        if not isinstance(case.samples[0].args[0], A):
            continue
        arrays.args[0].flags.writeable = False
        tensors = to_library(arrays, weft, case.dtypes[0])
        with pytest.raises(RuntimeError, match="expected a writable tensor, got a read-only one"):
            calling.call(case.name, tensors, "_")


#: operators that an index tensor says the places of
INDEXED: dict[str, Any] = {
    "gather": lambda x, i, y: x.gather(0, i),
    "index_select": lambda x, i, y: x.index_select(0, i),
    "take_along_dim": lambda x, i, y: x.take_along_dim(i, 0),
    "scatter.src": lambda x, i, y: x.scatter(0, i, y),
    "scatter.value": lambda x, i, y: x.scatter(0, i, 7.0),
    "scatter.reduce": lambda x, i, y: x.scatter(0, i, y, reduce="multiply"),
    "scatter_add": lambda x, i, y: x.scatter_add(0, i, y),
    "scatter_reduce": lambda x, i, y: x.scatter_reduce(0, i, y, "amax"),
    "index_add": lambda x, i, y: x.index_add(0, i, y),
    "index_copy": lambda x, i, y: x.index_copy(0, i, y),
    "index_fill": lambda x, i, y: x.index_fill(0, i, 7.0),
}


@pytest.mark.parametrize("name", INDEXED)
def test_numbers_are_indexed_as_vectors_of_one(name: str) -> None:
    numbers = weft.tensor(2.0), weft.tensor(0), weft.tensor(5.0)
    result = INDEXED[name](*numbers)
    assert result.shape == () and result == INDEXED[name](*(x.reshape(1) for x in numbers))


@pytest.mark.parametrize("name", ["sum", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 2, 0), (2, 3, 0)])
def test_empty_parts_of_a_tensor_are_not_touched(name: str, shape: tuple[int, ...]) -> None:
    whole = weft.full((4,) * len(shape), 3.0)
    part = whole[tuple(slice(1, 1 + n) for n in shape)]
    for x in (part, part.movedim(0, -1), part.movedim(-1, 0)):
        for count in range(1, x.dim() + 1):
            for dims in itertools.combinations(range(x.dim()), count):
                wanted = getattr(np, name)(x.numpy(), axis=dims)
                np.testing.assert_array_equal(getattr(weft, name)(x, dims).numpy(), wanted)
        x.mul_(weft.full(x.shape, 2))
        weft.mul(x, weft.full(x.shape, 2), out=x)
    assert (whole == 3).all()
