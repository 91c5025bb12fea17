"""Pooling to sizes that are given: each entry of the result is of a part of the input. All by the
two-dimensional operators. `weft.nn.functional` shows it."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._dtype_checks import check_floating
from weft.nn._pooling_functions import _check_dims, max_pool1d_with_indices, max_pool3d_with_indices

_nn = _C._nn
_max_pool2d = _nn.max_pool2d_with_indices


def _wanted(function: str, x: Tensor, size: Any, spatial: int) -> list[int]:
    """The sizes asked for; None keeps one."""
    values = list(size) if isinstance(size, (tuple, list)) else [size]
    if spatial > 1 and len(values) == spatial and x.dim() <= spatial:
        raise ValueError(
            f"{function}: expected at least {spatial + 1} dims, got shape {tuple(x.shape)}"
        )
    _check_dims(function, x, spatial)
    values = values * spatial if len(values) == 1 else values
    if len(values) != spatial:
        raise RuntimeError(f"{function}: expected {spatial} sizes, got {size}")
    return [
        x.size(i - spatial) if v is None else v if isinstance(v, int) else int(v)
        for i, v in enumerate(values)
    ]


def adaptive_avg_pool1d(input: Tensor, output_size: _Ints) -> Tensor:
    """Means over windows of [n, c, l] so that the result is [n, c, output_size].

    [c, l] gives two dimensions. Raises RuntimeError for other numbers of them. The dtype, floating,
    is that of the input.

    >>> weft.nn.functional.adaptive_avg_pool1d(weft.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    (size,) = _wanted("adaptive_avg_pool1d", input, output_size, 1)
    return _nn.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


@_full_precision
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows of [n, c, d, h, w] so that the result is [n, c, *output_size].

    output_size is a number or three of them; None keeps a size. [c, d, h, w] gives four dimensions.
    Raises RuntimeError for other numbers of dimensions or sizes. The dtype, floating, is that of
    the input.

    >>> weft.nn.functional.adaptive_avg_pool3d(weft.arange(8.0).reshape(1, 2, 2, 2), (2, 1, 1))
    tensor([[[[1.5000]],
    <BLANKLINE>
             [[5.5000]]]])
    """
    size = _wanted("adaptive_avg_pool3d", input, output_size, 3)
    lead = list(input.shape[:-3])
    depth, height, width = input.size(-3), input.size(-2), input.size(-1)
    x = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    planes = _nn.adaptive_avg_pool2d(x.reshape(-1, height, width), size[1:])
    columns = planes.reshape(-1, depth, size[1] * size[2])
    means = _nn.adaptive_avg_pool2d(columns, (size[0], columns.size(-1)))
    return means.reshape([*lead, *size]).to(input.dtype)


def _adaptive_max(
    function: str, input: Tensor, output_size: Any, spatial: int
) -> tuple[Tensor, Tensor]:
    """Windows of several sizes are first made equal: the shorter repeat their last entry, which
    changes no maximum."""
    sizes = _wanted(function, input, output_size, spatial)
    check_floating(function, input)
    if min(sizes) < 0:
        raise RuntimeError(f"{function}: expected sizes of at least 0, got {sizes}")
    if 0 in input.shape[1:]:
        raise RuntimeError(f"{function}: expected a non-empty input, got {tuple(input.shape)}")
    inner = input.shape[input.dim() - spatial :]
    if 0 in sizes:
        shape = [*input.shape[: input.dim() - spatial], *sizes]
        return input.new_empty(shape), input.new_empty(shape, dtype=_C.int64)
    longest = [(n // size + 2 if n % size else n // size) for n, size in zip(inner, sizes)]
    if all(n % size == 0 for n, size in zip(inner, sizes)):
        return _max_of_tiles(input, longest)
    places = _C.arange(math.prod(inner), device=input.device).reshape(inner)
    for i, (size, tile) in enumerate(zip(sizes, longest)):
        if inner[i] % size:
            taken = _entries(inner[i], size, tile).to(input.device)
            input = input.index_select(i - spatial, taken)
            places = places.index_select(i, taken)
    values, at = _max_of_tiles(input, longest)
    return values, places.reshape(-1)[at]


def _entries(size: int, count: int, longest: int) -> Tensor:
    """The entries of each of `count` windows over `size`, all as many as the longest has."""
    window = _C.arange(count).unsqueeze(1)
    first = (window * size).floor_divide(count)
    last = (window * size + size - 1).floor_divide(count)
    return _C.minimum(first + _C.arange(longest), last).reshape(-1)


def _max_of_tiles(input: Tensor, tiles: list[int]) -> tuple[Tensor, Tensor]:
    """Maxima of windows of equal sizes that lie side by side."""
    if len(tiles) == 1:
        return max_pool1d_with_indices(input, tiles)
    return _max_pool2d(input, tiles) if len(tiles) == 2 else max_pool3d_with_indices(input, tiles)


@data_dependent
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows of [n, c, l] so that the result is [n, c, output_size].

    With return_indices also where they lie, int64. [c, l] gives two dimensions. Raises RuntimeError
    for other numbers of them, and for an input without entries. The dtype, floating, is
    that of the input.

    >>> weft.nn.functional.adaptive_max_pool1d(weft.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    both = _adaptive_max("adaptive_max_pool1d", input, output_size, 1)
    return both if return_indices else both[0]


@data_dependent
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows of [n, c, h, w] so that the result is [n, c, *output_size].

    output_size is a number or two of them; None keeps a size. Indices and errors are those of
    adaptive_max_pool1d. The dtype, floating, is that of the input.

    >>> weft.nn.functional.adaptive_max_pool2d(weft.arange(8.0).reshape(1, 2, 4), (None, 1))
    tensor([[[3.],
             [7.]]])
    """
    both = _adaptive_max("adaptive_max_pool2d", input, output_size, 2)
    return both if return_indices else both[0]


@_full_precision
@data_dependent
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows of [n, c, d, h, w] so that the result is [n, c, *output_size].

    output_size is a number or three of them; None keeps a size. Indices and errors are those of
    adaptive_max_pool1d. The dtype, floating, is that of the input.

    >>> weft.nn.functional.adaptive_max_pool3d(weft.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    both = _adaptive_max("adaptive_max_pool3d", input, output_size, 3)
    return both if return_indices else both[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool1d with its dtypes and errors, and where the maxima lie.

    >>> weft.nn.functional.adaptive_max_pool1d_with_indices(weft.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d with its dtypes and errors, and where the maxima lie.

    >>> weft.nn.functional.adaptive_max_pool2d_with_indices(weft.arange(4.0).reshape(1, 2, 2), 1)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool3d, and where the maxima lie.

    Arguments, dtypes and errors are those of adaptive_max_pool3d.

    >>> weft.nn.functional.adaptive_max_pool3d_with_indices(weft.ones(1, 1, 1, 2), 1)
    (tensor([[[[1.]]]]), tensor([[[[0]]]]))
    """
    return adaptive_max_pool3d(input, output_size, True)


_declare(globals(), ("adaptive_avg_pool1d",))
_list_own(vars())
