"""Medians and k-th values: the entries of sorted rows, without sorting them."""

from __future__ import annotations

import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft

DTYPES = ("uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64")

# Rows from 2,048 entries on are divided by the first digits of their keys.
SHAPES = st.sampled_from(
    [(1,), (6,), (5, 7), (3, 1, 4), (2_047,), (2_048,), (3, 5_000), (2_500, 2)]
)


@st.composite
def tensors(draw: st.DrawFn) -> weft.Tensor:
    """Few different numbers or many, with NaNs here and there."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    shape, dtype = draw(SHAPES), draw(st.sampled_from(DTYPES))
    values = random.integers(0, draw(st.sampled_from([2, 9, 250])), shape).astype(float)
    if "int" not in dtype:
        values -= 4
        values[random.random(shape) < draw(st.sampled_from([0, 0.01, 0.6]))] = np.nan
    return weft.tensor(values).to(getattr(weft, dtype))


@examples(60)
@given(tensors(), st.data())
def test_kthvalue_is_an_entry_of_the_sorted_row(x: weft.Tensor, data: st.DataObject) -> None:
    dim, keepdim = data.draw(st.integers(-x.dim(), x.dim() - 1)), data.draw(st.booleans())
    k = data.draw(st.integers(1, x.size(dim)))
    values, indices = x.kthvalue(k, dim, keepdim)
    places = x.sort(dim=dim, stable=True).indices.narrow(dim, k - 1, 1)
    wanted = places if keepdim else places.squeeze(dim)
    assert indices.equal(wanted)
    picked = x.gather(dim, places)
    assert weft.equal(
        values.nan_to_num(-9), (picked if keepdim else picked.squeeze(dim)).nan_to_num(-9)
    )


@examples(60)
@given(tensors(), st.data())
def test_medians(x: weft.Tensor, data: st.DataObject) -> None:
    dim, keepdim = data.draw(st.integers(-x.dim(), x.dim() - 1)), data.draw(st.booleans())
    rows = np.moveaxis(x.double().numpy(), dim, -1)
    numbers = (~np.isnan(rows)).sum(-1)
    ordered = np.sort(rows, -1)  # NaNs last
    half = np.maximum(numbers - 1, 0) // 2
    for median, place in (
        (weft.nanmedian, half),
        (weft.median, np.where(numbers == rows.shape[-1], half, numbers)),
    ):
        wanted = np.take_along_axis(ordered, place[..., None], -1)
        wanted = np.moveaxis(wanted, -1, dim) if keepdim else wanted[..., 0]
        values, indices = median(x, dim, keepdim)
        np.testing.assert_array_equal(values.double().numpy(), wanted)
        places = indices if keepdim else indices.unsqueeze(dim)
        np.testing.assert_array_equal(
            x.gather(dim, places).double().numpy(),
            wanted if keepdim else np.expand_dims(wanted, dim),
        )
        flat = median(x.reshape(-1), 0).values
        np.testing.assert_array_equal(median(x).double().numpy(), flat.double().numpy())


@pytest.mark.parametrize("rows", [(0, 3), (3, 0, 2)], ids=str)
def test_no_rows(rows: tuple[int, ...]) -> None:
    x = weft.ones(rows)
    for result in (x.median(-1), x.nanmedian(-1), x.kthvalue(1, -1)):
        assert result.values.shape == result.indices.shape == rows[:-1]
    with pytest.raises(RuntimeError, match=r"kthvalue: expected k in \[1, "):
        x.kthvalue(4, -1)
