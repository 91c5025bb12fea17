"""Integrals and differences of sampled functions, and their ladders: logspace, vander."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.matrices import powers
from weft._functions.out import factory_takes_out
from weft._functions.shapes import checked_dims
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.torch_function import declare as _declare
from weft._tensor.aliases import numpy_names


def _doubled(y: Tensor, x: Any, dx: Any, dim: int) -> Tensor:
    """Twice the areas of the trapezoids between neighbours along `dim`."""
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
    if last < 0:
        return y
    return steps * (y.narrow(dim, 1, last) + y.narrow(dim, 0, last))


def _refuse_masks(y: Tensor, x: Any) -> None:
    if y.dtype == _C.bool or (x is not None and x.dtype == _C.bool):
        raise RuntimeError("trapezoid: expected numeric dtypes, got bool")


@numpy_names
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral of y along `dim` by the trapezoidal rule; at the places x, or dx apart.

    y [..., n, ...] and x [n] or as y; the result lacks `dim`. RuntimeError where x does not fit.

    >>> weft.trapezoid(weft.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    _refuse_masks(y, x)
    dim = checked_dims("trapezoid", [dim], y.dim())[0]
    if y.size(dim) == 0:
        return y.sum(dim)
    if x is not None:
        return _doubled(y, x, dx, dim).sum(dim) / 2
    return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx


def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """trapezoid, under its old name.

    >>> weft.trapz(weft.tensor([1.0, 5.0, 10.0]), dx=0.5)
    tensor(5.2500)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@numpy_names
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1
) -> Tensor:
    """The integrals from the first place to every other one.

    One entry less along `dim` than y has.

    >>> weft.cumulative_trapezoid(weft.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    _refuse_masks(y, x)
    dim = checked_dims("cumulative_trapezoid", [dim], y.dim())[0]
    if x is None:
        return _doubled(y, x, dx / 2, dim).cumsum(dim)
    return _doubled(y, x, dx, dim).cumsum(dim) / 2


@numpy_names
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: _OptionalInts = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Central differences along each dimension of `dim` (None: all), one-sided at the ends.

    spacing is a number, one for each dimension, or the places along each as vectors.

    RuntimeError for another edge_order than 1 or 2 and for a dimension that is named twice,
    IndexError for one that is not there.

    >>> weft.gradient(weft.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: expected edge_order 1 or 2, got {edge_order}")
    spacing = 1 if spacing is None else spacing
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = checked_dims("gradient", dims, input.dim())
    listed = isinstance(spacing, (list, tuple))
    spacings = list(spacing) if listed else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(f"gradient: expected {len(dims)} spacings, got {len(spacings)}")
    kind = input.dtype
    if kind == _C.uint8 or kind == _C.bool:
        raise RuntimeError(f"gradient: expected a dtype with negative numbers, got {kind}")
    x = input.float() if kind in (_C.float16, _C.bfloat16) else input
    slopes = [_slope(x, d, s, edge_order) for d, s in zip(dims, spacings)]
    return tuple(slope if slope.is_complex() or x is input else slope.to(kind) for slope in slopes)


def _slope(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    size = x.size(dim)
    if size < edge_order + 1:
        raise RuntimeError(
            f"gradient: expected at least {edge_order + 1} entries along dim {dim}, got {size}"
        )

    def part(start: int, count: int = 1) -> Tensor:
        return x.narrow(dim, start, count)

    if not isinstance(spacing, Tensor) or not spacing.dim():
        middle = (part(2, size - 2) - part(0, size - 2)) / (2 * spacing)
        first, last = part(1) - part(0), part(size - 1) - part(size - 2)
        if edge_order == 2:
            first = 2 * part(1) - 1.5 * part(0) - 0.5 * part(2)
            last = 1.5 * part(size - 1) - 2 * part(size - 2) + 0.5 * part(size - 3)
        return _C.cat([first / spacing, middle, last / spacing], dim)
    gaps = spacing.diff().reshape([-1] + [1] * (x.dim() - 1 - dim))

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
        return _C.cat([first, last], dim)
    before, after = gap(0, size - 2), gap(1, size - 2)
    left, right = steps.narrow(dim, 0, size - 2), steps.narrow(dim, 1, size - 2)
    middle = (left * after + right * before) / (before + after)
    return _C.cat([first, middle, last], dim)


def _end(near: Tensor, far: Tensor, gap: Tensor, next_gap: Tensor) -> Tensor:
    """The slope at an end, by the parabola through three entries."""
    return near + (near - far) * gap / (gap + next_gap)


@factory_takes_out
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """base ** linspace(start, end, steps).

    A vector of `steps` entries. Of several steps in a dtype of integers, `start` and `end` lose
    their fractions.

    >>> weft.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    kind = _C.linspace(first, last, 0).dtype if dtype is None else dtype
    if steps > 1 and not (kind.is_floating_point or kind.is_complex):
        first, last = (_C.full((), int(each), dtype=kind).item() for each in (first, last))
    if kind == _C.bool and steps > 1:
        raise NotImplementedError("logspace: expected a numeric dtype, got bool")
    wide = _C.complex128 if kind.is_complex else _C.float64
    exponents = _C.linspace(first, last, steps, dtype=wide, device=device)
    result = _C.pow(base, exponents).to(kind)
    return result.requires_grad_() if requires_grad else result


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


_declare(globals())
