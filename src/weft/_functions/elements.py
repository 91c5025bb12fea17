"""Functions that find, count or fold elements, and complex numbers from their parts."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._functions.shapes import broadcast_tensors, checked_dims
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Where the elements that are not 0 are: [n, dim] indices, or a tuple with one [n] each dim.

    Any shape and dtype; the indices are int64.

    >>> weft.nonzero(weft.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero: expected no out with as_tuple=True, got one")
        return _aten.nonzero(input.reshape(1) if input.dim() == 0 else input).unbind(1)
    return _aten.nonzero(input) if out is None else _aten.nonzero(input, out=out)


@takes_out
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """nonzero with a given number of rows: those beyond are left out, missing ones are filled.

    >>> nonzero_static(weft.tensor([0, 5, 6]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: expected a size of at least 0, got {size}")
    found = input.nonzero()[:size]
    return _C.cat([found, found.new_full([size - found.size(0), found.size(1)], fill_value)])


def _wanted(values: Tensor, inverse: Tensor, counts: Tensor, positions: bool, often: bool) -> Any:
    if positions and often:
        return values, inverse, counts
    if positions:
        return values, inverse
    return (values, counts) if often else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or slices along `dim`) in order; optionally also where each element
    went, and how often each is there.

    The inverse has the shape of `input` (with `dim`: its size), int64 as the counts. sorted=False
    sorts too. Any real dtype. Raises IndexError for a dimension out of range.

    >>> weft.unique(weft.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        found = _aten._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _wanted(found[0], found[1], found[2], return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """input with runs of equal elements (or slices along `dim`) made one.

    Optionally also where each element went and how long each run is, int64. Any real dtype. Raises
    IndexError for a dimension out of range.

    >>> weft.unique_consecutive(weft.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    found = _aten.unique_consecutive(input, return_inverse, return_counts, dim)
    return _wanted(found[0], found[1], found[2], return_inverse, return_counts)


_FOLDS = ("prod", "mean", "amax", "amin")


@takes_out
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """input with the slices of source folded in at the places that index names along `dim`.

    reduce: "prod", "mean", "amax" or "amin". include_self=False: elements of input that get
    something are replaced.

    >>> index_reduce(weft.ones(2), 0, weft.tensor([0, 0]), weft.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    if reduce not in _FOLDS:
        raise RuntimeError(f"index_reduce: expected reduce among {_FOLDS}, got {reduce!r}")
    if input.dtype == _C.bool or input.is_complex():
        raise NotImplementedError(f"index_reduce: expected real numbers, got {input.dtype}")
    (dim,) = checked_dims("index_reduce", [dim], input.dim())
    if [n for d, n in enumerate(input.shape) if d != dim] != [
        n for d, n in enumerate(source.shape) if d != dim
    ] or source.dim() != input.dim():
        raise RuntimeError(
            f"index_reduce: expected a source of shape {tuple(input.shape)} but for dim {dim}, "
            f"got {tuple(source.shape)}"
        )
    if index.dim() > 1 or (source.dim() and index.numel() != source.size(dim)):
        raise RuntimeError(
            f"index_reduce: expected a vector of {source.size(dim) if source.dim() else 1} "
            f"indices, got shape {tuple(index.shape)}"
        )
    if input.dim() == 0:
        flat = index_reduce(input.reshape(1), 0, index, source.reshape(-1), reduce,
                            include_self=include_self)  # fmt: skip
        return flat.reshape(())
    if index.dtype not in (_C.int64, _C.int32):
        raise RuntimeError(f"index_reduce: expected an int64 or int32 index, got {index.dtype}")
    sizes = [1] * source.dim()
    sizes[dim] = -1
    positions = index.to(_C.int64).reshape(sizes).expand(source.shape)
    return input.scatter_reduce(dim, positions, source, reduce, include_self=include_self)


def index_reduce_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """index_reduce in place; returns self.

    >>> x = weft.ones(3)
    >>> index_reduce_(x, 0, weft.tensor([1]), weft.tensor([5.0]), "prod")
    tensor([1., 5., 1.])
    """
    return self.copy_(index_reduce(self.clone(), *args, **kwargs))  # which backward may need


def _check_parts(function: str, first: Tensor, second: Tensor) -> None:
    if first.dtype != second.dtype or not first.dtype.is_floating_point:
        raise RuntimeError(
            f"{function}: expected two floating tensors of one dtype, got {first.dtype} and "
            f"{second.dtype}"
        )


@takes_out
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of the given parts.

    Parts of float16, float32 or float64 that broadcast give complex32, complex64 or complex128.
    Raises RuntimeError for other dtypes.

    >>> weft.complex(weft.tensor([1.0]), weft.tensor([2.0]))
    tensor([1.+2.j])
    """
    _check_parts("complex", real, imag)
    # Beside each other in memory: arithmetic would make NaN of an infinite part, 0 of -0.
    return _C.view_as_complex(_C.stack(broadcast_tensors(real, imag), -1))


@takes_out
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of the given sizes and angles.

    dtypes, shapes and errors are those of complex.

    >>> weft.polar(weft.tensor([2.0]), weft.tensor([0.0]))
    tensor([2.+0.j])
    """
    _check_parts("polar", abs, angle)
    return complex(abs * angle.cos(), abs * angle.sin())


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conj() is never put off here.

    >>> x = weft.tensor([1j])
    >>> weft.resolve_conj(x) is x
    True
    """
    return input


def is_conj(input: Tensor) -> bool:
    """False: conj() is never put off here.

    >>> weft.is_conj(weft.tensor([1j]).conj())
    False
    """
    return False


def is_neg(input: Tensor) -> bool:
    """False: negation is never put off here.

    >>> weft.is_neg(weft.tensor([1j]).conj().imag)
    False
    """
    return False


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never put off here.

    >>> x = weft.ones(2)
    >>> weft.resolve_neg(x) is x
    True
    """
    return input


_declare(globals(), ("unique", "unique_consecutive"))
