"""Random layouts, indices and dtypes against NumPy: weft's views must reach the same elements."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from drawing import examples
from hypothesis import given

import weft

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)
SETTINGS = examples(100)


def source(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@st.composite
def view_steps(draw: Any, ndim: int) -> list[tuple[str, Any]]:
    """A chain of view operations that fit an array of `ndim` dimensions."""
    steps: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["permute", "slice", "unsqueeze", "select"]))
        if kind == "permute":
            steps.append((kind, draw(st.permutations(range(ndim)))))
        elif kind == "unsqueeze":
            steps.append((kind, draw(st.integers(0, ndim))))
            ndim += 1
        elif ndim and kind == "slice":
            bounds = st.one_of(st.none(), st.integers(-5, 5))
            step = draw(st.sampled_from([-2, -1, 1, 2, 3]))
            steps.append(
                (kind, (draw(st.integers(0, ndim - 1)), slice(draw(bounds), draw(bounds), step)))
            )
        elif ndim and kind == "select":
            steps.append((kind, draw(st.integers(0, ndim - 1))))
            ndim -= 1
    return steps


def apply(value: Any, steps: list[tuple[str, Any]]) -> Any:
    numpy = isinstance(value, np.ndarray)
    for kind, argument in steps:
        if kind == "permute":
            value = value.transpose(argument) if numpy else value.permute(argument)
        elif kind == "unsqueeze":
            value = np.expand_dims(value, argument) if numpy else value.unsqueeze(argument)
        elif kind == "slice":
            axis, piece = argument
            value = value[(slice(None),) * axis + (piece,)]
        elif value.shape[argument] > 0:
            value = value[(slice(None),) * argument + (value.shape[argument] - 1, ...)]
        else:
            value = value.sum(argument)
    return value


@SETTINGS
@given(st.data())
def test_chains_of_views_reach_the_elements_numpy_reaches(data: Any) -> None:
    array = source(data.draw(SHAPES))
    steps = data.draw(view_steps(array.ndim))
    ours, theirs = apply(weft.from_numpy(array), steps), apply(array, steps)
    assert tuple(ours.shape) == theirs.shape
    np.testing.assert_array_equal(ours.numpy(), theirs)
    if theirs.size and np.shares_memory(theirs, array):
        assert ours.data_ptr() == address(theirs)
        moving = [i for i, n in enumerate(theirs.shape) if n > 1]
        assert [ours.stride(i) * 4 for i in moving] == [theirs.strides[i] for i in moving]


@st.composite
def index_for(draw: Any, shape: tuple[int, ...]) -> Any:
    """An index expression: ints, slices, None, one Ellipsis, masks and integer arrays.

    Ints and arrays never together: NumPy broadcasts the int with the arrays, PyTorch selects first.
    """
    items: list[Any] = []
    kinds = draw(st.sampled_from([("int", "slice", "none"), ("slice", "none", "list", "mask")]))
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(kinds))
        if kind == "int" and size:
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "list" and size and not any(isinstance(i, np.ndarray) for i in items):
            items.append(
                np.array(draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=3)))
            )
        elif kind == "mask" and not any(isinstance(i, np.ndarray) for i in items):
            items.append(
                np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)
            )
        else:
            items.append(
                slice(
                    draw(st.one_of(st.none(), st.integers(-4, 4))),
                    None,
                    draw(st.sampled_from([1, 2])),
                )
            )
            if kind == "none":
                items.append(None)
    if draw(st.booleans()):
        items.append(Ellipsis)
    return tuple(items)


def ours_of(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(weft.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)


@SETTINGS
@given(st.data())
def test_indexing_reads_and_writes_what_numpy_does(data: Any) -> None:
    array = source(data.draw(SHAPES))
    index = data.draw(index_for(array.shape))
    tensor = weft.from_numpy(array.copy())
    expected = array[index]
    np.testing.assert_array_equal(tensor[ours_of(index)].numpy(), expected)
    array[index] = -1.0
    tensor[ours_of(index)] = -1.0
    np.testing.assert_array_equal(tensor.numpy(), array)


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.filterwarnings("ignore:to. expected a complex dtype")
@SETTINGS
@given(SHAPES, st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_conversion_equals_numpy_where_it_is_defined(
    shape: tuple[int, ...], a: str, b: str
) -> None:
    values = np.asarray(source(shape) % 100, dtype=a)
    result = weft.from_numpy(values).to(getattr(weft, b))
    if not (a.startswith("complex") and not b.startswith("complex")):
        np.testing.assert_array_equal(result.numpy(), values.astype(b))


@SETTINGS
@given(st.data())
def test_broadcast_arithmetic_equals_numpy(data: Any) -> None:
    shape = data.draw(SHAPES)
    other = tuple(data.draw(st.sampled_from([n, 1])) for n in shape)[
        data.draw(st.integers(0, len(shape))) :
    ]
    a, b = source(shape), np.asarray(source(other) + 1)
    np.testing.assert_array_equal((weft.from_numpy(a) + weft.from_numpy(b)).numpy(), a + b)
    np.testing.assert_array_equal((weft.from_numpy(a) * weft.from_numpy(b)).numpy(), a * b)


@SETTINGS
@given(SHAPES, st.data())
def test_sums_over_any_dims_equal_numpy(shape: tuple[int, ...], data: Any) -> None:
    array = source(shape)
    dims = (
        data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
        if shape
        else [0]
    )
    keep = data.draw(st.booleans())
    expected = array.sum(tuple(dims), keepdims=keep) if shape else array
    np.testing.assert_allclose(weft.from_numpy(array).sum(dims, keepdim=keep).numpy(), expected)
