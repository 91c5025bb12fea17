"""Reductions over segments of a dimension, and hashes of elements."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._functions.shapes import checked_dims
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.torch_function import declare as _declare

# by the name of a reduction: what an empty segment gives, and the name that scatter_reduce knows
_FOLDS: dict[str, tuple[float, str]] = {
    "sum": (0.0, "sum"),
    "mean": (float("nan"), "sum"),
    "prod": (1.0, "prod"),
    "max": (float("-inf"), "amax"),
    "amax": (float("-inf"), "amax"),
    "min": (float("inf"), "amin"),
    "amin": (float("inf"), "amin"),
}


@takes_out
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """The sum, mean, product, maximum or minimum of each segment of a dimension.

    - data: floating, of any shape.
    - reduce: "sum", "mean", "prod", "max" (or "amax"), "min" (or "amin").
    - lengths: the sizes of the segments, [segments] or with the dimensions of data before `axis`,
      its own last. Or offsets: where segments begin and, last, where the last one ends.
    - initial: what each segment begins with; an empty one gives it.
    - unsafe: entries behind the last segment are left out.

    The result has as many entries along `axis` as there are segments. Raises RuntimeError for
    lengths that do not fit, and for indices, NotImplementedError for integers.

    >>> segment_reduce(weft.tensor([1.0, 2.0, 3.0]), "sum", lengths=weft.tensor([1, 2]))
    tensor([1., 5.])
    """
    if reduce not in _FOLDS:
        raise RuntimeError(f"segment_reduce: expected reduce among {[*_FOLDS]}, got {reduce!r}")
    if indices is not None:
        raise RuntimeError("segment_reduce: expected lengths or offsets, got indices")
    if not data.is_floating_point():
        raise NotImplementedError(f"segment_reduce: expected a floating dtype, got {data.dtype}")
    (axis,) = checked_dims("segment_reduce", [axis], data.dim())
    counts = _counts(data, lengths, offsets, axis, unsafe)
    return _reduced(data, counts, axis, reduce, initial)


def _counts(
    data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool
) -> Tensor:
    """The lengths of the segments, for each place of the dimensions before `axis`."""
    counts = offsets.diff() if lengths is None and offsets is not None else lengths
    if counts is None:
        raise RuntimeError("segment_reduce: expected lengths or offsets, got neither")
    if counts.dtype not in (_C.int32, _C.int64):
        raise NotImplementedError(
            f"segment_reduce: expected lengths of int32 or int64, got {counts.dtype}"
        )
    if counts.dim() != axis + 1 or counts.shape[:axis] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce: expected axis {axis} as the last dimension of lengths, got lengths "
            f"of shape {tuple(counts.shape)} for data of shape {tuple(data.shape)}"
        )
    total, size = counts.sum(-1), data.size(axis)
    fits = bool((counts >= 0).all()) and bool((total <= size).all())
    if not fits or not (unsafe or lengths is None or bool((total == size).all())):
        raise RuntimeError(
            f"segment_reduce: expected lengths of at least 0 that add up to {size}, got {counts}"
        )
    return counts.to(_C.int64)


def _reduced(data: Tensor, counts: Tensor, axis: int, reduce: str, initial: Any) -> Tensor:
    empty, fold = _FOLDS[reduce]
    start = (0.0 if reduce == "mean" else empty) if initial is None else float(initial)
    segments = counts.size(-1)
    shape = [*data.shape[:axis], segments, *data.shape[axis + 1 :]]
    positions = _C.arange(data.size(axis))
    ends = counts.cumsum(-1)
    segment = (positions >= ends.unsqueeze(-1)).sum(-2)  # `segments` behind the last one
    rest = [1] * (data.dim() - axis - 1)
    index = segment.reshape([*segment.shape, *rest]).expand(data.shape)
    shape[axis] += 1  # for what is behind the last segment
    begun = _C.full(shape, start, dtype=data.dtype)
    if fold in ("amax", "amin"):
        folded = _extreme(begun, axis, index, data, fold)
    else:
        folded = begun.scatter_reduce(axis, index, data, fold)
    result = folded.narrow(axis, 0, segments).contiguous()
    if reduce != "mean":
        return result
    sizes = counts.reshape([*counts.shape, *rest]).to(data.dtype)
    if initial is not None:
        sizes = sizes.masked_fill(sizes == 0, 1)
    return result / sizes


def _extreme(begun: Tensor, axis: int, index: Tensor, data: Tensor, fold: str) -> Tensor:
    """The gradient goes, in equal shares, to the elements that the result equals, NaN among them;
    what segments begin with has none."""
    extreme = begun.scatter_reduce(axis, index, data.detach(), fold)
    if not data.requires_grad:
        return extreme
    chosen = (data == extreme.gather(axis, index)) | data.isnan()
    counts = _C.zeros_like(extreme).scatter_add(axis, index, chosen.to(data.dtype)).clamp(min=1)
    shares = data.masked_fill(~chosen, 0) / counts.gather(axis, index)
    whole = _C.zeros_like(extreme).scatter_add(axis, index, shares)
    return extreme + _C.where(whole.isfinite(), whole - whole.detach(), whole)


@takes_out
def hash_tensor(
    input: Tensor, dim: _OptionalInts = (), *, keepdim: bool = False, mode: int = 0
) -> Tensor:
    """Exclusive or over the bits of the elements along `dim` (none: all), as uint64.

    Floating elements count as float64, others as int64. Raises RuntimeError for another mode than
    0 and for complex dtypes.

    >>> hash_tensor(weft.tensor([3, 5]))
    tensor(6, dtype=torch.uint64)
    """
    if mode != 0 or input.is_complex():
        raise RuntimeError(
            f"hash_tensor: expected mode 0 and a real dtype, got {mode} and {input.dtype}"
        )
    floating = input.is_floating_point()
    bits = input.double().view(_C.int64) if floating else input.to(_C.int64)
    given = [dim] if isinstance(dim, int) else list(dim or ())
    dims = sorted(checked_dims("hash_tensor", given, bits.dim()), reverse=True)
    dims = dims or list(reversed(range(bits.dim())))
    for d in dims if bits.dim() else ():
        bits = _exclusive_or(bits, d)
    if not keepdim:
        for d in dims if bits.dim() else ():
            bits = bits.squeeze(d)
    return bits.view(_C.uint64)  # type: ignore[call-overload]


def _exclusive_or(bits: Tensor, dim: int) -> Tensor:
    """All entries of a dimension folded into one, by halves."""
    if bits.size(dim) == 0:
        shape = list(bits.shape)
        shape[dim] = 1
        return _C.zeros(shape, dtype=_C.int64)
    while bits.size(dim) > 1:
        half = bits.size(dim) // 2
        folded = bits.narrow(dim, 0, half) ^ bits.narrow(dim, half, half)
        rest = bits.narrow(dim, 2 * half, bits.size(dim) - 2 * half)
        bits = _C.cat([folded, rest], dim)
    return bits


_declare(globals())


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each of `size` rows begins among sorted row indices [n], and where the last ends:
    [size + 1].

    >>> weft._convert_indices_from_coo_to_csr(weft.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    counts = _C.bincount(input, minlength=size).cumsum(0)
    return _indices(_C.cat([counts.new_zeros(1), counts]), out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The rows and columns, or columns and rows, of one matrix in compressed form: [2, n].

    >>> weft._convert_indices_from_csr_to_coo(weft.tensor([0, 2, 2, 3]), weft.tensor([4, 5, 6]))
    tensor([[0, 0, 2],
            [4, 5, 6]])
    """
    if crow_indices.dim() != 1:
        raise NotImplementedError(
            "_convert_indices_from_csr_to_coo: expected the indices of one matrix, got "
            f"{crow_indices.dim()} dimensions"
        )
    rows = _C.arange(crow_indices.numel() - 1).repeat_interleave(crow_indices.diff())
    pair = [rows, col_indices.to(rows.dtype)]
    return _indices(_C.stack(pair[::-1] if transpose else pair), out_int32)


def _indices(values: Tensor, is_int32: bool) -> Tensor:
    return values.to(_C.int32 if is_int32 else _C.int64)
