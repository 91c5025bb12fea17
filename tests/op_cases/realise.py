"""Turns samples into NumPy arrays and those into tensors of weft or PyTorch."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .spec import INTEGRAL, A, B, Case, F, I, K, S, normal, positive

#: dtypes NumPy lacks are carried in float32 and rounded by the library under test
CARRIER = {"bfloat16": "float32"}
LAYOUTS = ("contiguous", "transposed", "strided", "reversed")


class Constant(np.ndarray):
    """Marks an array that takes no gradient."""


def rng_for(case: Case, index: int) -> np.random.Generator:
    """A generator that depends on the case and the sample alone."""
    return np.random.default_rng([zlib.crc32(case.name.encode()), index])


def lay_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in another memory order."""
    if layout == "transposed" and array.ndim:
        return np.ascontiguousarray(array.T).T
    if layout == "strided" and array.ndim:
        wide = np.zeros(array.shape[:-1] + (array.shape[-1] * 2,), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return array


def realise_array(spec: A, case: Case, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Values from the domain, in the dtype (or what carries it)."""
    values = (spec.domain or case.domain)(rng, spec.shape)
    if dtype == "bool":
        return np.asarray(values > np.median(values) if values.size else values, dtype=bool)
    if dtype in INTEGRAL:
        values = np.round(values * 3)
        if dtype.startswith("u"):
            values = np.abs(values)
    return np.asarray(values, dtype=CARRIER.get(dtype, dtype))


def realise(sample: S, case: Case, dtype: str, index: int = 0, layout: str = "contiguous") -> S:
    """The sample with arrays in the place of specs."""
    rng = rng_for(case, index)

    def build(value: Any) -> Any:
        if isinstance(value, A):
            return lay_out(realise_array(value, case, dtype, rng), layout)
        if isinstance(value, I):
            return lay_out(rng.integers(value.low, value.high, value.shape), layout)
        if isinstance(value, B):
            return lay_out(np.asarray(rng.random(value.shape) < 0.5), layout)
        if isinstance(value, K):
            values = positive(rng, value.shape).astype(CARRIER.get(dtype, dtype))
            return lay_out(values, layout).view(Constant)
        if isinstance(value, F):
            return lay_out(np.asarray(normal(rng, value.shape), CARRIER.get(dtype, dtype)), layout)
        if isinstance(value, (list, tuple)) and any(isinstance(v, (A, B, F, I, K)) for v in value):
            return [build(v) for v in value]
        return value

    return S(*map(build, sample.args), **{k: build(v) for k, v in sample.kwargs.items()})


def map_arrays(sample: S, convert: Callable[[np.ndarray], Any]) -> S:
    """The sample with every array converted."""

    def apply(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return convert(value)
        if isinstance(value, list) and any(isinstance(v, np.ndarray) for v in value):
            return [apply(v) for v in value]
        return value

    return S(*map(apply, sample.args), **{k: apply(v) for k, v in sample.kwargs.items()})


def to_library(sample: S, library: Any, dtype: str) -> S:
    """The sample with tensors of `library` (weft or torch) sharing the arrays' memory."""

    def convert(array: np.ndarray) -> Any:
        if library.__name__ == "torch":  # has no negative strides, and warns of read-only arrays
            array = np.array(array, copy=True) if any(s < 0 for s in array.strides) else array
        tensor = library.from_numpy(array)
        if dtype in CARRIER and array.dtype == CARRIER[dtype]:
            tensor = tensor.to(getattr(library, dtype))
        return tensor

    return map_arrays(sample, convert)


def to_numpy(value: Any) -> Any:
    """Tensors (also inside tuples and lists) as arrays; bfloat16 widened to float32."""
    if isinstance(value, (tuple, list)):
        return [to_numpy(v) for v in value]
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.dtype).endswith("bfloat16"):
            value = value.float()
        return value.numpy()
    return value
