"""Further functions over tensors: splits, copies of views, integrals, differences, ladders.

Each is PyTorch's function of the same name in the module `torch`; `weft` imports them at first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import weft
from weft import Tensor
from weft._aliases import numpy_names
from weft._matrix_functions import powers
from weft._out import factory_takes_out, takes_out

# ---- splits ----


def _split_along(name: str, x: Tensor, where: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    if x.dim() < least:
        raise RuntimeError(f"{name}: expected at least {least} dims, got shape {tuple(x.shape)}")
    if isinstance(where, int) and (where <= 0 or x.size(dim) % where):
        raise RuntimeError(
            f"{name}: expected sections that divide the size {x.size(dim)}, got {where}"
        )
    return weft.tensor_split(x, where, dim)


def hsplit(input: Tensor, indices: Any = None, *, sections: Any = None) -> tuple[Tensor, ...]:
    """Views of parts side by side: along dimension 1, of a vector along 0.

    indices: a number of parts, as `sections` says it too, or where to cut.
    """
    dim = 0 if input.dim() == 1 else 1
    return _split_along("hsplit", input, sections if indices is None else indices, dim, 1)


def vsplit(input: Tensor, indices: Any = None, *, sections: Any = None) -> tuple[Tensor, ...]:
    """Views of parts one below the other."""
    return _split_along("vsplit", input, sections if indices is None else indices, 0, 2)


def dsplit(input: Tensor, indices: Any = None, *, sections: Any = None) -> tuple[Tensor, ...]:
    """Views of parts along the third dimension."""
    return _split_along("dsplit", input, sections if indices is None else indices, 2, 3)


@takes_out
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """What unbind shows, as copies."""
    return tuple(part.clone() for part in input.unbind(dim))


@takes_out
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """What split shows, as copies."""
    return tuple(part.clone() for part in input.split(split_size, dim))


@takes_out
def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """What split shows, as copies."""
    return tuple(part.clone() for part in input.split(split_sizes, dim))


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sums over the dimensions along which `size` would have been expanded to input's."""
    wanted = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
    if not wanted:
        return input.sum()
    extra = input.dim() - len(wanted)
    inner = input.shape[extra:] if extra >= 0 else ()
    if extra < 0 or any(n not in (1, m) for n, m in zip(wanted, inner)):
        raise RuntimeError(
            f"sum_to_size: expected sizes that expand to {tuple(input.shape)}, got {tuple(wanted)}"
        )
    result = input.sum(list(range(extra))) if extra else input
    dims = [d for d, (n, m) in enumerate(zip(wanted, inner)) if n == 1 != m]
    return result.sum(dims, keepdim=True) if dims else result


# ---- integrals and differences ----


def _halves(y: Tensor, x: Any, dx: Any, dim: int) -> Tensor:
    """The areas of the trapezoids between neighbours along `dim`."""
    if isinstance(x, Tensor):
        if x.dim() not in (1, y.dim()) and x.dim() > y.dim():
            raise RuntimeError(
                f"trapezoid: expected x of at most {y.dim()} dims, got shape {tuple(x.shape)}"
            )
        if x.dim() == 1 and x.size(0) != y.size(dim):
            raise RuntimeError(
                f"trapezoid: expected {y.size(dim)} places along dim {dim}, got {x.size(0)}"
            )
        steps = x.diff(dim=0 if x.dim() == 1 else dim - y.dim())
        if x.dim() == 1:
            steps = steps.reshape([-1] + [1] * (y.dim() - 1 - dim))
    else:
        steps = dx
    last = y.size(dim) - 1
    return (y.narrow(dim, 1, last) + y.narrow(dim, 0, last)) * steps / 2


@numpy_names
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral of y along `dim` by the trapezoidal rule; at the places x, or dx apart."""
    dim = dim % max(y.dim(), 1)
    if y.size(dim) == 0:
        return y.sum(dim)
    return _halves(y, x, dx, dim).sum(dim)


def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """trapezoid, under its old name."""
    return trapezoid(y, x, dx=dx, dim=dim)


@numpy_names
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1
) -> Tensor:
    """The integrals from the first place to every other one."""
    dim = dim % max(y.dim(), 1)
    return _halves(y, x, dx, dim).cumsum(dim)


# ---- ladders and tables ----


@factory_takes_out
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """base ** linspace(start, end, steps)."""
    kind = weft.get_default_dtype() if dtype is None else dtype
    if kind.is_complex:
        raise RuntimeError(f"logspace: expected a real dtype, got {str(kind).partition('.')[2]}")
    first, last = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    places = weft.linspace(first, last, steps, dtype=weft.float64, device=device)
    result = weft.pow(base, places).to(kind)
    return result.requires_grad_() if requires_grad else result


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of `shape`, of indices into it flattened."""
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == weft.bool:
        raise TypeError(f"unravel_index: expected an integer tensor, got {indices.dtype}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"unravel_index: expected sizes >= 0, got {tuple(sizes)}")
    count = math.prod(sizes)
    if (indices.numel() and int(indices.max()) >= count) or (
        indices.numel() and int(indices.min()) < 0
    ):
        raise ValueError(f"unravel_index: expected indices in [0, {count - 1}], got others")
    result = []
    indices = indices.to(weft.int64)
    for size in reversed(sizes):
        result.append(indices % max(size, 1))
        indices = weft.div(indices, max(size, 1), rounding_mode="floor")
    return tuple(reversed(result))


@takes_out
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError(f"mvlgamma: expected p >= 1, got {p}")
    x = input if input.is_floating_point() else input.to(weft.get_default_dtype())
    steps = weft.arange(p, dtype=x.dtype) * 0.5
    return (x.unsqueeze(-1) - steps).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1 (default x.size(0) - 1) to 0 of each element of a vector, as a row each.

    >>> vander(weft.tensor([2, 3]), N=3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    count = x.size(0) if N is None and x.dim() == 1 else N
    if x.dim() != 1 or count is None or count < 0:
        raise RuntimeError(
            f"vander: expected a vector and N of at least 0, got shape {tuple(x.shape)} and N={N}"
        )
    rows = powers(x, count)
    return rows if increasing else rows.flip(1)


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
    return weft.cat([found, found.new_full([size - found.size(0), found.size(1)], fill_value)])


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of matrices."""
    return weft.linalg.pinv(input, rtol=rcond)


@takes_out
def chain_matmul(*matrices: Any) -> Tensor:
    """linalg.multi_dot, under its old name."""
    return weft.linalg.multi_dot(matrices)


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conj() is never put off here."""
    return input


def is_conj(input: Tensor) -> bool:
    """False: conj() is never put off here."""
    return False


def is_neg(input: Tensor) -> bool:
    """False: negation is never put off here."""
    return False


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never put off here."""
    return input


@numpy_names
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Central differences along each dimension of `dim` (None: all), one-sided at the ends.

    spacing is a number, one for each dimension, or the places along each as vectors.
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: expected edge_order 1 or 2, got {edge_order}")
    spacing = 1 if spacing is None else spacing
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    listed = isinstance(spacing, (list, tuple))
    spacings = list(spacing) if listed else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(f"gradient: expected {len(dims)} spacings, got {len(spacings)}")
    kind = input.dtype
    x = input.float() if kind in (weft.float16, weft.bfloat16) else input
    slopes = [_slope(x, d % x.dim(), s, edge_order) for d, s in zip(dims, spacings)]
    return tuple(slope if x is input else slope.to(kind) for slope in slopes)


def _slope(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    size = x.size(dim)
    if size < edge_order + 1:
        raise RuntimeError(
            f"gradient: expected at least {edge_order + 1} entries along dim {dim}, got {size}"
        )
    if isinstance(spacing, Tensor) and spacing.dim():
        gaps = spacing.diff().reshape([-1] + [1] * (x.dim() - 1 - dim))
    else:
        gaps = weft.ones([size - 1] + [1] * (x.dim() - 1 - dim)) * spacing
        gaps = gaps.to(x.dtype) if x.is_floating_point() or x.is_complex() else gaps

    def part(start: int, count: int) -> Tensor:
        return x.narrow(dim, start, count)

    def gap(start: int, count: int) -> Tensor:
        return gaps.narrow(0, start, count)

    steps = (part(1, size - 1) - part(0, size - 1)) / gaps
    if edge_order == 1:
        first, last = steps.narrow(dim, 0, 1), steps.narrow(dim, size - 2, 1)
    else:
        ends = [steps.narrow(dim, i, 1) for i in (0, 1, size - 2, size - 3)]
        first = _end(ends[0], ends[1], gap(0, 1), gap(1, 1))
        last = _end(ends[2], ends[3], gap(size - 2, 1), gap(size - 3, 1))
    if size == 2:
        return weft.cat([first, last], dim)
    before, after = gap(0, size - 2), gap(1, size - 2)
    left, right = steps.narrow(dim, 0, size - 2), steps.narrow(dim, 1, size - 2)
    middle = (left * after + right * before) / (before + after)
    return weft.cat([first, middle, last], dim)


def _end(near: Tensor, far: Tensor, gap: Tensor, next_gap: Tensor) -> Tensor:
    """The slope at an end, by the parabola through three entries."""
    return near + (near - far) * gap / (gap + next_gap)


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """A copy of input in which src stands where as_strided(size, stride, storage_offset) looks.

    >>> as_strided_scatter(weft.zeros(4), weft.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    result = input.clone()
    result.as_strided(size, stride, storage_offset).copy_(src)
    return result


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
    if index.dim() > 1 or (source.dim() and index.numel() != source.size(dim)):
        raise RuntimeError(
            f"index_reduce: expected a vector of {source.size(dim) if source.dim() else 1} "
            f"indices, got shape {tuple(index.shape)}"
        )
    if input.dim() == 0:
        flat = index_reduce(input.reshape(1), 0, index, source.reshape(-1), reduce,
                            include_self=include_self)  # fmt: skip
        return flat.reshape(())
    sizes = [1] * source.dim()
    sizes[dim] = -1
    places = index.to(weft.int64).reshape(sizes).expand(source.shape)
    return input.scatter_reduce(dim, places, source, reduce, include_self=include_self)


def _index_reduce_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """index_reduce in place; returns self."""
    return self.copy_(index_reduce(self, *args, **kwargs))
