"""Fractional max pooling: windows at drawn places (Graham, 2015). `weft.nn.functional` shows it."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft.nn._pooling_functions import _times


def _output_size(
    function: str, input: Tensor, output_size: Any, output_ratio: Any, spatial: int
) -> list[int]:
    if (output_size is None) == (output_ratio is None):
        raise ValueError(
            f"{function}: expected one of output_size and output_ratio, got {output_size} and "
            f"{output_ratio}"
        )
    if output_ratio is None:
        return _times(function, "output_size", output_size, spatial)
    ratios = [output_ratio] * spatial if isinstance(output_ratio, float) else list(output_ratio)
    return [int(n * ratio) for n, ratio in zip(input.shape[-spatial:], ratios)]


def _starts(samples: Tensor, size: int, kernel: int, out: int) -> Tensor:
    """Where the windows begin along a dimension: [n, c, out] for samples [n, c] from [0, 1)."""
    last = samples.new_full([*samples.shape, 1], size - kernel).to(_C.int64)
    if out < 2:
        return last[..., :out]
    step = samples.new_tensor((size - kernel) / (out - 1))
    numbers = _C.arange(out - 1, dtype=samples.dtype, device=samples.device)
    indices = numbers + samples.unsqueeze(-1)
    first = (samples * step).to(_C.int64).unsqueeze(-1)
    return _C.cat([(indices * step).to(_C.int64) - first, last], -1)


def _pooled(
    spatial: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    function = f"fractional_max_pool{spatial}d"
    kernel = _times(function, "kernel_size", kernel_size, spatial)
    if isinstance(kernel_size, list | tuple) and len(kernel_size) != spatial:
        raise RuntimeError(f"{function}: expected kernel_size as {spatial} ints, got {kernel_size}")
    out = _output_size(function, input, output_size, output_ratio, spatial)
    if input.dim() not in (spatial + 1, spatial + 2) or 0 in input.shape[1:]:
        raise RuntimeError(
            f"{function}: expected an input of {spatial + 1} or {spatial + 2} dims with entries, "
            f"got shape {tuple(input.shape)}"
        )
    x = input if input.dim() == spatial + 2 else input.unsqueeze(0)
    sizes = list(x.shape[2:])
    if any(k < 1 or n < 0 or k + n - 1 > size for k, n, size in zip(kernel, out, sizes)):
        raise RuntimeError(
            f"{function}: expected a window and an output that fit sizes {sizes}, got {kernel} and "
            f"{out}"
        )
    if samples is None:
        samples = _C.rand([*x.shape[:2], spatial], dtype=x.dtype, device=x.device)
    if tuple(samples.shape[1:]) != (x.size(1), spatial) or samples.size(0) < x.size(0):
        raise RuntimeError(
            f"{function}: expected samples of shape {(*x.shape[:2], spatial)}, got "
            f"{tuple(samples.shape)}"
        )
    if samples.dtype != x.dtype:
        raise RuntimeError(f"{function}: expected samples of {x.dtype}, got {samples.dtype}")
    index = _windows(samples[: x.size(0)], sizes, kernel, out)
    found = x.flatten(2).gather(2, index.flatten(2)).reshape(index.shape)
    values, where = found.max(-1)
    indices = index.gather(-1, where.unsqueeze(-1)).squeeze(-1)
    shape = [*x.shape[:2], *out] if input.dim() == spatial + 2 else [x.size(1), *out]
    return values.reshape(shape), indices.reshape(shape)


def _windows(samples: Tensor, sizes: list[int], kernel: list[int], out: list[int]) -> Tensor:
    """The entries of each window, counted in the flattened dimensions: [n, c, windows, entries].

    In two dimensions the first sample is that of the last dimension, as in PyTorch."""
    spatial = len(sizes)
    index = samples.new_zeros([*samples.shape[:2], 1, 1]).to(_C.int64)
    for d, (size, k, n) in enumerate(zip(sizes, kernel, out)):
        sample = samples.select(-1, 1 - d if spatial == 2 else d)
        within = _C.arange(k, device=samples.device)
        indices = _starts(sample, size, k, n).unsqueeze(-1) + within  # [n, c, out, k]
        index = index[:, :, :, None, :, None] * size + indices[:, :, None, :, None, :]
        index = index.flatten(4).flatten(2, 3)
    return index


@_full_precision
@data_dependent
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool2d, and where the maxima lie, int64, i * w + j.

    Arguments, dtypes and errors are those of fractional_max_pool2d.

    >>> x = weft.arange(16.0).reshape(1, 4, 4)
    >>> weft.nn.functional.fractional_max_pool2d_with_indices(x, 2, 1)
    (tensor([[[15.]]]), tensor([[[15]]]))
    """
    return _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maxima of input [n, c, h, w] over windows of kernel_size that begin at drawn places.

    - output_size: the number of windows along each dimension, or
    - output_ratio: the part of the input's sizes that it is, below 1.
    - return_indices: also where the maxima lie.
    - _random_samples: numbers from [0, 1), [n, c, 2], in place of drawn ones.

    [c, h, w] gives three dimensions. Raises ValueError for both or neither of size and ratio,
    RuntimeError for windows that do not fit. Floating dtypes.

    >>> weft.nn.functional.fractional_max_pool2d(weft.arange(16.0).reshape(1, 4, 4), 2, 1)
    tensor([[[15.]]])
    """
    both = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return both if return_indices else both[0]


@_full_precision
@data_dependent
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool3d, and where the maxima lie, int64, (i * h + j) * w + k.

    Arguments, dtypes and errors are those of fractional_max_pool3d.

    >>> x = weft.arange(8.0).reshape(1, 2, 2, 2)
    >>> weft.nn.functional.fractional_max_pool3d_with_indices(x, 2, 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """fractional_max_pool2d of input [n, c, d, h, w]; samples are [n, c, 3].

    Arguments and errors are those of fractional_max_pool2d. Floating dtypes.

    >>> weft.nn.functional.fractional_max_pool3d(weft.arange(8.0).reshape(1, 2, 2, 2), 2, 1)
    tensor([[[[7.]]]])
    """
    both = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return both if return_indices else both[0]


_declare(globals())
_list_own(vars())
