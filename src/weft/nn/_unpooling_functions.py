"""Maxima back in their places; `weft.nn.functional` shows them."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.data_dependent import data_dependent
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._dtype_checks import check_floating
from weft.nn._pooling_functions import _check_dims, _stride, _times


def _unpool(
    function: str, x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
    output_size: Any, spatial: int,
) -> Tensor:  # fmt: skip
    """Zeros with the maxima where they came from."""
    _check_dims(function, x, spatial)
    check_floating(function, x)
    if indices.shape != x.shape or indices.dtype != _C.int64:
        raise RuntimeError(
            f"{function}: expected int64 indices of shape {tuple(x.shape)}, got {indices.dtype} of "
            f"shape {tuple(indices.shape)}"
        )
    kernel = _times(function, "kernel_size", kernel_size, spatial)
    step = _stride(function, stride, kernel)
    pads = _times(function, "padding", padding, spatial)
    if spatial == 3 and min(step) < 1:  # as PyTorch, which checks volumes only
        raise RuntimeError(f"{function}: expected a stride of 1 or more, got {step}")
    sizes = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-spatial:], step, pads, kernel)]
    if output_size is not None:
        sizes = _output_sizes(function, tuple(output_size), sizes, step)
    lead = list(x.shape[:-spatial])
    count = math.prod(sizes)
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < count:
        raise RuntimeError(
            f"{function}: expected indices in [0, {count - 1}], got {int(indices.min())} to "
            f"{int(indices.max())}"
        )
    flat = x.new_zeros([*lead, count])
    inner = x.reshape(*lead, math.prod(x.shape[-spatial:]))
    return flat.scatter(-1, indices.reshape(inner.shape), inner).reshape(*lead, *sizes)


def _output_sizes(
    function: str, given: tuple[int, ...], sizes: list[int], step: list[int]
) -> list[int]:
    """The last of the given sizes, each closer than a step to the one that the windows give."""
    spatial = len(sizes)
    chosen = [int(n) for n in given[-spatial:]]
    if len(given) not in (spatial, spatial + 2) or any(
        abs(n - size) >= s for n, size, s in zip(chosen, sizes, step)
    ):
        raise ValueError(
            f"{function}: expected {spatial} sizes closer than {step} to {sizes} as output_size, "
            f"got {given}"
        )
    return chosen


@_full_precision
@data_dependent
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """What max_pool1d took [n, c, l] from, with zeros elsewhere.

    indices are those that max_pool1d gave; output_size: the sizes that it took, where others give
    the same windows. Raises RuntimeError for indices of another shape, other than int64, or outside
    the result. Floating dtypes, which the result keeps.

    >>> maxima = weft.nn.functional.max_pool1d(weft.tensor([[1.0, 3.0, 2.0, 0.0]]), 2,
    ...                                             return_indices=True)
    >>> weft.nn.functional.max_unpool1d(*maxima, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


@_full_precision
@data_dependent
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """What max_pool2d took [n, c, h, w] from, with zeros elsewhere.

    Arguments and errors are those of max_unpool1d. The dtype is that of the input.

    >>> weft.nn.functional.max_unpool2d(weft.tensor([[[7.0]]]), weft.tensor([[[3]]]), 2)
    tensor([[[0., 0.],
             [0., 7.]]])
    """
    return _unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


@_full_precision
@data_dependent
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """What max_pool3d took [n, c, d, h, w] from, with zeros elsewhere.

    Arguments and errors are those of max_unpool1d. The dtype is that of the input.

    >>> weft.nn.functional.max_unpool3d(weft.ones(1, 1, 1, 1), weft.tensor([[[[3]]]]), (1, 2, 2))
    tensor([[[[0., 0.],
              [0., 1.]]]])
    """
    return _unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)


__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]

_declare(globals())
