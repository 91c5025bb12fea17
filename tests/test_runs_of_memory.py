"""Copies that move runs of bytes: padding, picked places that follow each other, rows out of order.

Sizes lie at and around those where another way is taken.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft

DTYPES = ("bool", "uint8", "float16", "float32", "float64", "complex128")


def _numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    numbers = np.arange(1, 1 + int(np.prod(shape, dtype=int))).reshape(shape)
    return (numbers % 251).astype(dtype)


def _same(got: weft.Tensor, wanted: np.ndarray) -> None:
    assert got.dtype == weft.tensor(wanted).dtype
    np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape, widths",
    [
        ((7,), ((2, 3),)),
        ((4, 5), ((0, 0), (1, 0))),
        ((4, 5), ((0, 2), (0, 0))),
        ((4, 5), ((1, 0), (0, 3))),
        ((2, 3, 4, 5), ((0, 0), (1, 2), (0, 0), (3, 0))),  # one that grows not between two that do
        ((2, 3, 4, 5), ((1, 1), (0, 0), (0, 0), (0, 0))),
        ((1, 1, 1), ((0, 1), (1, 1), (2, 0))),
        ((300, 257), ((1, 1), (0, 0))),  # few large entries: threads share these
        ((300, 257), ((0, 0), (3, 2))),  # many lines
        ((70_001,), ((4, 3),)),  # one long line
        ((9_000, 1), ((0, 0), (1, 1))),  # lines that are shorter than what is beside them
        ((40, 30, 33), ((0, 0), (1, 1), (1, 2))),
        ((3, 200, 300), ((0, 0), (0, 1), (2, 0))),  # lines on either side of what counts as short
        ((3, 5), ((-1, 2), (0, 1))),
    ],
)
def test_constants_stand_around_what_is_padded(dtype: str, shape: tuple, widths: tuple) -> None:
    x = _numbers(shape, dtype)
    pad = [number for pair in reversed(widths) for number in pair]
    value = True if dtype == "bool" else 7
    kept = x[tuple(slice(max(0, -low), n + min(0, high)) for n, (low, high) in zip(shape, widths))]
    wanted = np.pad(kept, np.maximum(widths, 0), constant_values=value)
    _same(weft.nn.functional.pad(weft.tensor(x), pad, value=value), wanted)
    turned = weft.tensor(np.ascontiguousarray(x.T)).permute(*reversed(range(x.ndim)))
    _same(weft.nn.functional.pad(turned, pad, value=value), wanted)


@pytest.mark.parametrize("widths", [(1, 2, 0, 1), (0, 0, 2, 0), (0, 1, 0, 0), (1, 0, 0, 0, 2, 1)])
def test_rows_of_channels_are_padded_as_planes_are(widths: tuple) -> None:
    x = weft.tensor(_numbers((2, 3, 4, 5), "float32"))
    by_channels = weft.nn.functional.pad(x.to(memory_format=weft.channels_last), widths, value=2.5)
    _same(by_channels, weft.nn.functional.pad(x, widths, value=2.5).numpy())
    assert by_channels.is_contiguous(memory_format=weft.channels_last)


@pytest.mark.parametrize("size", [4, 11, 12, 13, 40])
@pytest.mark.parametrize(
    "mode, of", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_borders_repeat_what_is_inside(mode: str, of: str, size: int) -> None:
    x = _numbers((2, 3, size, size + 1), "float64")
    wanted = np.pad(x, ((0, 0), (0, 0), (3, 1), (0, 2)), of)
    _same(weft.nn.functional.pad(weft.tensor(x), (0, 2, 3, 1), mode=mode), wanted)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "index",
    [
        list(range(20)),
        [0, *range(20), 19, 18],
        [*range(5, 20), *range(15)],
        [*range(4), 9, 8, 7, *range(10, 14)],  # too many pieces
        [3] * 20,
        [7],
        [],
    ],
)
def test_places_that_follow_each_other_are_picked(index: list[int], dim: int) -> None:
    x = _numbers((20, 20, 20), "float32")
    places = weft.tensor(index, dtype=weft.int64)
    _same(weft.tensor(x).index_select(dim, places), np.take(x, index, dim))
    turned = weft.tensor(x).transpose(0, 2)
    _same(turned.index_select(dim, places), np.take(x.transpose(2, 1, 0), index, dim))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
@pytest.mark.parametrize(
    "row", [1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 255, 256, 257, 1023, 1024, 1025]
)
def test_rows_are_copied_in_another_order(dtype: str, row: int) -> None:
    for outer, middle in ((1, 2), (3, 9), (9, 17)):
        x = _numbers((2, outer, middle, row), dtype)
        _same(weft.tensor(x).transpose(1, 2).contiguous(), x.transpose(0, 2, 1, 3).copy())
        wide = weft.zeros(2, middle, outer, row + 3, dtype=weft.tensor(x).dtype)
        wide[..., 1 : row + 1] = weft.tensor(x).transpose(1, 2)
        _same(wide[..., 1 : row + 1], x.transpose(0, 2, 1, 3))
        assert not wide[..., 0].any() and not wide[..., row + 1 :].any()


@pytest.mark.threads
def test_bad_indices_are_named_wherever_they_stand() -> None:
    weft.set_num_threads(2)
    x = weft.arange(10.0)
    for at in (0, 32767, 32768, 99999):
        index = weft.zeros(100000, dtype=weft.int64)
        for bad in (10, -11, 2**63 - 1, -(2**63)):
            index[at] = bad
            with pytest.raises(IndexError, match=rf"got {bad}$"):
                x.take(index)
            with pytest.raises(RuntimeError, match=rf"got {bad}$"):
                x.gather(0, index)
        index[at] = -10
        assert x.take(index)[at] == 0


@pytest.mark.threads
@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 65535, 65537, 200000])
def test_one_element_makes_tensors_unequal(size: int) -> None:
    weft.set_num_threads(2)
    x = weft.ones(size)
    assert weft.equal(x, x.clone())
    for at in {0, size // 2, size - 1}:
        y = x.clone()
        y[at] = 2
        assert not weft.equal(x, y)
        y[at] = float("nan")
        assert not weft.equal(y, y)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_counts_are_those_of_numpy(dtype: str) -> None:
    numbers = (np.arange(10001) ** 2 % 101).astype(dtype)
    for given in (numbers, numbers[::3], numbers[:0], numbers[:1]):
        wanted = np.bincount(given, minlength=7)
        _same(weft.tensor(given).bincount(minlength=7), wanted)
    if dtype != "uint8":
        with pytest.raises(RuntimeError, match=r"expected entries >= 0, got -5$"):
            weft.tensor(np.array([3, -5, 0], dtype)).bincount()


@pytest.mark.parametrize("dtype", ("uint8", "float32", "complex128"))
@pytest.mark.parametrize("width", (64, 512, 600, 2_100, 4_096))
@pytest.mark.parametrize("shift", (1, 15, 17, -1))
def test_lines_that_lie_a_little_beside_their_place(dtype: str, width: int, shift: int) -> None:
    """Copies of long lines to places near theirs in a page go from the end on."""
    x = _numbers((5, width), dtype)
    _same(weft.tensor(x).roll(shift, -1), np.roll(x, shift, -1))
