"""Functions over tensors that only arrange calls of the table's operators.

Each is PyTorch's function of the same name in the module `torch`; `weft` imports them at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft
from weft import Tensor, linalg
from weft._out import takes_out
from weft._statistics import corrcoef as corrcoef
from weft._statistics import cov as cov
from weft._statistics import nanquantile as nanquantile
from weft._statistics import quantile as quantile

_aten = weft._C._aten

# ---- shapes ----


def _listed(tensors: Sequence[Any]) -> list[Any]:
    """f(a, b) and f([a, b]) are the same call."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


def broadcast_shapes(*shapes: Any) -> weft.Size:
    """The shape that tensors of the given shapes (sequences or ints) broadcast to.

    Raises RuntimeError where there is none.

    >>> weft.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
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
    """Views of the tensors, all of one shape.

    Raises RuntimeError for shapes that do not broadcast.

    >>> weft.broadcast_tensors(weft.tensor([[1], [2]]), weft.tensor([3, 4]))[1]
    tensor([[3, 4],
            [3, 4]])
    """
    parts = _listed(tensors)
    shape: list[int] = []
    for part in parts:
        shape = _broadcast(shape, list(part.shape))
    return tuple([part.expand(shape) for part in parts])


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of the vectors' coordinates; "ij" (the default) or "xy" order of the first two.

    n vectors (or numbers) of sizes s1, ..., sn give n views [s1, ..., sn]. Raises RuntimeError for
    more dimensions, and for dtypes that differ.

    >>> rows, columns = weft.meshgrid(weft.tensor([1, 2]), weft.tensor([3, 4, 5]), indexing="ij")
    >>> columns
    tensor([[3, 4, 5],
            [3, 4, 5]])
    """
    parts = _listed(tensors)
    for part in parts:
        if part.dim() > 1 or part.dtype != parts[0].dtype:
            raise RuntimeError(
                "meshgrid: expected vectors and numbers of one dtype, got shape "
                f"{tuple(part.shape)} and {part.dtype}"
            )
    if not parts:
        raise RuntimeError("meshgrid: expected at least 1 tensor, got none")
    parts = [part.reshape(-1) for part in parts]
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


def _check_vector(function: str, x: Tensor) -> None:
    if x.dim() != 1:
        raise RuntimeError(f"{function}: expected a vector, got shape {tuple(x.shape)}")


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of the entries of vectors, one a row.

    n vectors give [product of their sizes, n]; one vector gives itself. Raises RuntimeError for
    other numbers of dimensions.

    >>> weft.cartesian_prod(weft.tensor([1, 2]), weft.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    parts = _listed(tensors)
    for part in parts:
        _check_vector("cartesian_prod", part)
    if len(parts) == 1:
        return parts[0]
    return weft.stack([grid.reshape(-1) for grid in meshgrid(parts, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r entries of a vector, one a row.

    Raises RuntimeError for other numbers of dimensions, and for a negative r.

    >>> weft.combinations(weft.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector("combinations", input)
    if r < 0:
        raise RuntimeError(f"combinations: expected r >= 0, got {r}")
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
    """The tensors with at least one dimension.

    One tensor gives one, several (or a list) a tuple. Views where they can be.

    >>> weft.atleast_1d(weft.tensor(1))
    tensor([1])
    """
    return _each(lambda t: t.reshape(1) if t.dim() == 0 else t, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensors with at least two dimensions; vectors become rows.

    One tensor gives one, several (or a list) a tuple.

    >>> weft.atleast_2d(weft.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _each(lambda t: t.reshape(1, -1) if t.dim() < 2 else t, tensors)


def _at_least_3d(t: Tensor) -> Tensor:
    if t.dim() < 2:
        return t.reshape(1, -1, 1)
    return t.unsqueeze(-1) if t.dim() == 2 else t


def atleast_3d(*tensors: Any) -> Any:
    """The tensors with at least three dimensions.

    One tensor gives one, several (or a list) a tuple; [n] becomes [1, n, 1], [n, m] becomes [n, m,
    1].

    >>> weft.atleast_3d(weft.tensor([1, 2])).shape
    torch.Size([1, 2, 1])
    """
    return _each(_at_least_3d, tensors)


def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined side by side: along dimension 1, vectors along 0.

    dtypes are promoted. Raises RuntimeError for sizes that differ elsewhere.

    >>> weft.hstack([weft.tensor([1, 2]), weft.tensor([3])])
    tensor([1, 2, 3])
    """
    parts = [atleast_1d(t) for t in tensors]
    return _cat(parts, 0 if parts and parts[0].dim() == 1 else 1, out)


def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined one below the other.

    Vectors are rows; dtypes are promoted. Raises RuntimeError for sizes that differ elsewhere.

    >>> weft.vstack([weft.tensor([1, 2]), weft.tensor([[3, 4]])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _cat([atleast_2d(t) for t in tensors], 0, out)


def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the third dimension.

    Each has at least three dimensions first, as by atleast_3d. Raises RuntimeError for sizes that
    differ elsewhere.

    >>> weft.dstack([weft.tensor([1, 2]), weft.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _cat([atleast_3d(t) for t in tensors], 2, out)


def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined as columns; vectors are columns themselves.

    dtypes are promoted. Raises RuntimeError for numbers of rows that differ.

    >>> weft.column_stack([weft.tensor([1, 2]), weft.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    return _cat([t.reshape(-1, 1) if t.dim() < 2 else t for t in tensors], 1, out)


def _cat(parts: list[Tensor], dim: int, out: Tensor | None) -> Tensor:
    return weft.cat(parts, dim) if out is None else weft.cat(parts, dim, out=out)


row_stack = vstack
concat = concatenate = weft.cat


def block_diag(*tensors: Any) -> Tensor:
    """The matrices along one diagonal, zeros else: block_diag(a, b) or block_diag([a, b]).

    Vectors are rows, numbers 1 x 1; dtypes are promoted. Raises RuntimeError for more than two
    dimensions.

    >>> weft.block_diag(weft.tensor([[1, 2]]), weft.tensor([[3], [4]]))
    tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
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

    Leading dimensions broadcast; the result is (..., m, n). Floating dtypes. Raises RuntimeError
    for shapes that do not fit.

    >>> weft.cdist(weft.tensor([[0.0, 0.0]]), weft.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _DISTANCE_MODES:
        raise ValueError(
            f"cdist: expected compute_mode among {', '.join(_DISTANCE_MODES)}, got {compute_mode!r}"
        )
    return _aten.cdist(x1, x2, p)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Products summed over the last `dims` dimensions of a and first of b, or over two lists.

    The result has the dimensions of a that are left, then those of b. Raises RuntimeError for sizes
    that differ.

    >>> weft.tensordot(weft.ones(2, 3, 4), weft.ones(3, 4, 5)).shape
    torch.Size([2, 5])
    """
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

    Raises RuntimeError for an equation that does not fit the operands.

    >>> weft.einsum("ij,j->i", weft.tensor([[1.0, 2.0], [3.0, 4.0]]), weft.tensor([1.0, -1.0]))
    tensor([-1., -1.])
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
    """Where the elements that are not 0 are: [n, dim] indices, or a tuple with one [n] each dim.

    Any shape and dtype; the indices are int64.

    >>> weft.nonzero(weft.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
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
    went, and how often each is there.

    The inverse has the shape of `input` (with `dim`: its size), int64 as the counts. sorted=False
    sorts too.

    >>> weft.unique(weft.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
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
    """input with runs of equal elements (or slices along `dim`) made one.

    Optionally also where each element went and how long each run is, int64.

    >>> weft.unique_consecutive(weft.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    found = _aten.unique_consecutive(input, return_inverse, return_counts, dim)
    return _wanted(found[0], found[1], found[2], return_inverse, return_counts)


# ---- norms ----


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of order p over `dim`: a number, "fro" (2) or "nuc" (the sum of singular values).

    Floating and complex dtypes; the result is real. weft.linalg.norm says more by its names.

    >>> weft.norm(weft.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if p == "nuc":
        result = linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)
    else:
        order = 2 if p is None or p == "fro" else p
        dims = [dim] if isinstance(dim, int) else dim
        result = _aten.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype)
    return result if out is None else _aten.alias_copy(result, out=out)


# ---- complex numbers ----


def _check_parts(function: str, first: Tensor, second: Tensor) -> None:
    if first.dtype != second.dtype or not first.dtype.is_floating_point:
        raise RuntimeError(
            f"{function}: expected two floating tensors of one dtype, got {first.dtype} and "
            f"{second.dtype}"
        )


@takes_out
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of the given parts.

    float32 or float64 parts that broadcast give complex64 or complex128. Raises RuntimeError for
    other dtypes.

    >>> weft.complex(weft.tensor([1.0]), weft.tensor([2.0]))
    tensor([1.+2.j])
    """
    _check_parts("complex", real, imag)
    return real + imag * 1j


@takes_out
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of the given sizes and angles.

    dtypes, shapes and errors are those of complex.

    >>> weft.polar(weft.tensor([2.0]), weft.tensor([0.0]))
    tensor([2.+0.j])
    """
    _check_parts("polar", abs, angle)
    return complex(abs * angle.cos(), abs * angle.sin())
