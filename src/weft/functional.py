"""Functions over tensors that only arrange calls of the table's operators.

Each is PyTorch's function of the same name in the module `torch`; `weft` imports them at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft
from weft import Tensor, linalg
from weft._aliases import numpy_names
from weft._out import takes_out

_aten = weft._C._aten

# ---- shapes ----


def _listed(tensors: Sequence[Any]) -> list[Any]:
    """f(a, b) and f([a, b]) are the same call."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


def broadcast_shapes(*shapes: Any) -> weft.Size:
    """The shape that tensors of the given shapes (sequences or ints) broadcast to."""
    result: list[int] = []
    for shape in shapes:
        result = _broadcast(result, [shape] if isinstance(shape, int) else list(shape))
    return weft.Size(result)


def _broadcast(first: list[int], second: list[int]) -> list[int]:
    dims = max(len(first), len(second))
    a = [1] * (dims - len(first)) + first
    b = [1] * (dims - len(second)) + second
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"broadcast_shapes: expected broadcastable shapes, got {tuple(first)} "
                f"and {tuple(second)}"
            )
    return [y if x == 1 else x for x, y in zip(a, b)]


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of the tensors, all of one shape."""
    parts = _listed(tensors)
    shape: list[int] = []
    for part in parts:
        shape = _broadcast(shape, list(part.shape))
    return tuple([part.expand(shape) for part in parts])


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of the vectors' coordinates; "ij" (the default) or "xy" order of the first two."""
    parts = [t.reshape(-1) for t in _listed(tensors)]
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'meshgrid: expected indexing "ij" or "xy", got {indexing!r}')
    swap = indexing == "xy" and len(parts) > 1
    if swap:
        parts[0], parts[1] = parts[1], parts[0]
    shape = [t.numel() for t in parts]
    grids = [
        t.reshape([-1 if at == d else 1 for at in range(len(parts))]).expand(shape)
        for d, t in enumerate(parts)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of the entries of vectors, one a row."""
    parts = _listed(tensors)
    if len(parts) == 1:
        return parts[0]
    return weft.stack([grid.reshape(-1) for grid in meshgrid(parts, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r entries of a vector, one a row."""
    if r == 0:
        return input.new_empty(0)
    places = weft.arange(input.numel())
    grids = meshgrid([places] * r, indexing="ij")
    kept = weft.ones_like(grids[0], dtype=weft.bool)
    for i in range(r - 1):
        kept = kept & (grids[i] <= grids[i + 1] if with_replacement else grids[i] < grids[i + 1])
    return weft.stack([input.index_select(0, grid.masked_select(kept)) for grid in grids], 1)


def _each(function: Any, tensors: Sequence[Any]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    return tuple([function(t) for t in _listed(tensors)])


def atleast_1d(*tensors: Any) -> Any:
    """The tensors with at least one dimension."""
    return _each(lambda t: t.reshape(1) if t.dim() == 0 else t, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensors with at least two dimensions; vectors become rows."""
    return _each(lambda t: t.reshape(1, -1) if t.dim() < 2 else t, tensors)


def _at_least_3d(t: Tensor) -> Tensor:
    if t.dim() < 2:
        return t.reshape(1, -1, 1)
    return t.unsqueeze(-1) if t.dim() == 2 else t


def atleast_3d(*tensors: Any) -> Any:
    """The tensors with at least three dimensions."""
    return _each(_at_least_3d, tensors)


def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined side by side: along dimension 1, vectors along 0."""
    parts = [atleast_1d(t) for t in tensors]
    return _cat(parts, 0 if parts and parts[0].dim() == 1 else 1, out)


def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined one below the other."""
    return _cat([atleast_2d(t) for t in tensors], 0, out)


def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the third dimension."""
    return _cat([atleast_3d(t) for t in tensors], 2, out)


def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined as columns; vectors are columns themselves."""
    return _cat([t.reshape(-1, 1) if t.dim() < 2 else t for t in tensors], 1, out)


def _cat(parts: list[Tensor], dim: int, out: Tensor | None) -> Tensor:
    return weft.cat(parts, dim) if out is None else weft.cat(parts, dim, out=out)


row_stack = vstack
concat = concatenate = weft.cat


def block_diag(*tensors: Any) -> Tensor:
    """The matrices along one diagonal, zeros else: block_diag(a, b) or block_diag([a, b])."""
    return _aten.block_diag(_listed(tensors))


# ---- products ----

_DISTANCE_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _DISTANCE_MODES[0]) -> Tensor:
    """The p-norm distances between the rows of x1 (..., m, k) and those of x2 (..., n, k).

    compute_mode is one of PyTorch's names of ways to compute them; every one means the exact way.
    """
    if compute_mode not in _DISTANCE_MODES:
        raise ValueError(
            f"cdist: expected compute_mode among {', '.join(_DISTANCE_MODES)}, got {compute_mode!r}"
        )
    return _aten.cdist(x1, x2, p)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Products summed over the last `dims` dimensions of a and first of b, or over two lists."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: expected dims in [0, {min(a.dim(), b.dim())}], got {dims}"
            )
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    result = _aten.tensordot(a, b, left, right)
    return result if out is None else _aten.alias_copy(result, out=out)


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Einstein's summation: "ij,jk->ik" is the product of two matrices.

    Letters name dimensions; those missing on the right are summed; "..." stands for leading
    dimensions that are broadcast. Also einsum(a, [0, 1], b, [1, 2], [0, 2]).
    """
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    return _aten.einsum(equation, _listed(operands))


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of einsum(a, [0, 1], b, [1, 2], [0, 2]), and its operands."""

    def text(labels: Sequence[Any]) -> str:
        names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        return "".join("..." if label is Ellipsis else names[label] for label in labels)

    pairs = len(arguments) // 2
    left = ",".join(text(arguments[2 * i + 1]) for i in range(pairs))
    right = f"->{text(arguments[-1])}" if len(arguments) % 2 else ""
    return left + right, tuple(arguments[2 * i] for i in range(pairs))


# ---- places ----


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Where the elements that are not 0 are: [n, dim] indices, or a tuple with one [n] each dim."""
    if as_tuple:
        return _aten.nonzero(input.reshape(1) if input.dim() == 0 else input).unbind(1)
    return _aten.nonzero(input) if out is None else _aten.nonzero(input, out=out)


# ---- distinct values ----


def _wanted(values: Tensor, inverse: Tensor, counts: Tensor, places: bool, often: bool) -> Any:
    if places and often:
        return values, inverse, counts
    if places:
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
    went, and how often each is there."""
    if dim is None:
        found = _aten._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _wanted(found[0], found[1], found[2], return_inverse, return_counts)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """input with runs of equal elements (or slices along `dim`) made one."""
    found = _aten.unique_consecutive(input, return_inverse, return_counts, dim)
    return _wanted(found[0], found[1], found[2], return_inverse, return_counts)


# ---- statistics ----


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of order p over `dim`: a number, "fro" (2) or "nuc" (the sum of singular values)."""
    if p == "nuc":
        result = linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)
    else:
        order = 2 if p is None or p == "fro" else p
        dims = [dim] if isinstance(dim, int) else dim
        result = _aten.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype)
    return result if out is None else _aten.alias_copy(result, out=out)


def _quantile(values: Tensor, q: Any, dim: Any, keepdim: bool, how: str, skip_nan: bool) -> Tensor:
    points = q if isinstance(q, Tensor) else weft.tensor(float(q), dtype=values.dtype)
    flat = points.reshape(-1)
    if flat.numel() and not bool(((flat >= 0) & (flat <= 1)).all()):
        raise RuntimeError(f"quantile: expected q in [0, 1], got {q}")
    kept = [1] * values.dim() if dim is None else list(values.shape)
    if dim is not None and kept:
        kept[dim] = 1
    rows = values.movedim(dim, -1) if dim is not None and kept else values.reshape(-1)
    rows = rows.sort(-1)[0]
    last = rows.size(-1) - 1
    holes = rows.isnan()
    count = holes.logical_not().sum(-1, keepdim=True) - 1
    place = flat * (count.clamp_min(0).to(rows.dtype) if skip_nan else last)
    place = place.expand(*rows.shape[:-1], flat.numel())
    if not skip_nan:  # sorted, NaNs come last
        place = place.masked_fill(holes.any(-1, keepdim=True), last)
    low, high = place.floor(), place.ceil()
    if how == "nearest":
        low = high = place.round()
    elif how == "lower":
        high = low
    elif how == "higher":
        low = high
    below, above = (rows.gather(-1, at.to(weft.int64)) for at in (low, high))
    weight = 0.5 if how == "midpoint" else place - low
    result = below if how not in ("linear", "midpoint") else below + (above - below) * weight
    result = result.movedim(-1, 0)
    if keepdim:
        result = result.reshape([flat.numel(), *kept])
    return result[0] if points.dim() == 0 else result


@numpy_names
@takes_out
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The value below which the share q of the elements lies; a vector q adds a first dimension."""
    return _quantile(input, q, dim, keepdim, interpolation, False)


@numpy_names
@takes_out
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """quantile of what is not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True)


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of the rows of a matrix (a vector is one row), columns being observations."""
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(weft.get_default_dtype())
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    if weights is None:
        centred = x - x.mean(1, keepdim=True)
        total: Any = max(x.size(1) - correction, 0)
        result = centred @ centred.mH / total
    else:
        w = weights.to(weft.promote_types(weights.dtype, x.dtype))
        sum_ = w.sum()
        centred = x - (x * w).sum(1, keepdim=True) / sum_
        less = correction if aweights is None else correction * (w * aweights).sum() / sum_
        result = (centred * w) @ centred.mH / (sum_ - less)
    return result.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of the rows of a matrix."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    spread = c.diagonal().sqrt()
    result = c / spread.unsqueeze(0) / spread.unsqueeze(1)
    if result.is_complex():
        return weft.complex(weft.real(result).clamp(-1, 1), weft.real(result * -1j).clamp(-1, 1))
    return result.clamp(-1, 1)


# ---- complex numbers ----


@takes_out
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of the given parts."""
    if real.dtype != imag.dtype or not real.dtype.is_floating_point:
        raise RuntimeError(
            f"complex: expected two floating tensors of one dtype, got {real.dtype} and "
            f"{imag.dtype}"
        )
    return real + imag * 1j


@takes_out
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of the given sizes and angles."""
    return complex(abs * angle.cos(), abs * angle.sin())
