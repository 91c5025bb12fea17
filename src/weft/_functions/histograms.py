"""Counts by intervals: histogram and histogramdd."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._runtime.named_results import shown_as
from weft._runtime.torch_function import declare as _declare


@shown_as("histogram")
class Histogram(NamedTuple):
    """The counts (or densities), and where the intervals begin and end."""

    hist: Tensor
    bin_edges: Tensor


@shown_as("histogramdd")
class HistogramDD(NamedTuple):
    """As Histogram, with a tuple of edges."""

    hist: Tensor
    bin_edges: Any


@takes_out
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """How many elements lie in each interval; the last one holds its upper end too.

    bins: how many intervals of one length between the ends of `range` (by default the least and
    the greatest element), or the edges in rising order. weight: counts each element that often.
    density: divides by the sum and the lengths. Elements outside count nowhere. No gradient.

    >>> histogram(weft.tensor([0.0, 1.0, 2.0, 2.0]), 2)
    torch.return_types.histogram(
    hist=tensor([1., 3.]),
    bin_edges=tensor([0., 1., 2.]))
    """
    points = input.detach().reshape(-1, 1)
    limits = None if range is None else list(range)
    weights = None if weight is None else weight.reshape(-1)
    edges = [bins] if isinstance(bins, Tensor) else [int(bins)]
    hist, sides = _count("histogram", points, edges, limits, weights, density)
    return Histogram(hist, sides[0])


def histogramdd(
    input: Tensor,
    bins: int | Sequence[Any],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """How many points lie in each box of a grid; input [..., d] holds points of d coordinates.

    bins: the number of intervals of every coordinate, or for each of them its number or edges.
    range: least and greatest of each coordinate in turn. See histogram.

    >>> histogramdd(weft.tensor([[0.0, 1.0], [2.0, 2.0]]), [2, 2]).hist
    tensor([[1., 0.],
            [0., 1.]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"histogramdd: expected at least 2 dimensions, got shape {tuple(input.shape)}"
        )
    points = input.detach().reshape(-1, input.size(-1))
    count = points.size(1)
    edges = [bins] * count if isinstance(bins, int) else list(bins)
    if len(edges) != count:
        raise RuntimeError(f"histogramdd: expected {count} entries of bins, got {len(edges)}")
    weights = None if weight is None else weight.reshape(-1)
    limits = None if range is None else list(range)
    hist, sides = _count("histogramdd", points, edges, limits, weights, density)
    return HistogramDD(hist, tuple(sides))


def _count(
    name: str,
    points: Tensor,
    bins: list[Any],
    limits: list[float] | None,
    weights: Tensor | None,
    density: bool,
) -> tuple[Tensor, list[Tensor]]:
    if points.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"{name}: expected float32 or float64, got {points.dtype}")
    if limits is not None and len(limits) != 2 * points.size(1):
        raise RuntimeError(
            f"{name}: expected {2 * points.size(1)} entries of range, got {len(limits)}"
        )
    if weights is not None and weights.dtype != points.dtype:
        raise RuntimeError(f"{name}: expected weights of {points.dtype}, got {weights.dtype}")
    if weights is not None and weights.numel() != points.size(0):
        raise RuntimeError(f"{name}: expected {points.size(0)} weights, got {weights.numel()}")
    sides = [
        _edges(name, points[:, d], entry, None if limits is None else limits[2 * d : 2 * d + 2])
        for d, entry in enumerate(bins)
    ]
    shape = [side.numel() - 1 for side in sides]
    place = _C.zeros(points.size(0), dtype=_C.int64)
    inside = _C.ones(points.size(0), dtype=_C.bool)
    for d, side in enumerate(sides):
        values = points[:, d].contiguous()
        at = _C.searchsorted(side, values, right=True) - 1
        at = _C.where(values == side[-1], shape[d] - 1, at)
        inside = inside & (values >= side[0]) & (values <= side[-1]) & (at >= 0) & (at < shape[d])
        place = place * shape[d] + at
    heights = _C.ones_like(points[:, 0]) if weights is None else weights.to(points.dtype)
    place, heights = (each.masked_fill(inside.logical_not(), 0) for each in (place, heights))
    hist = heights.new_zeros(math.prod(shape)).scatter_add(0, place, heights).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, side in enumerate(sides):
            lengths = side.diff()
            hist = hist / lengths.reshape([-1 if i == d else 1 for i in builtins.range(len(shape))])
    return hist, sides


def _edges(name: str, values: Tensor, bins: Any, limits: list[float] | None) -> Tensor:
    if isinstance(bins, Tensor):
        if bins.dim() != 1 or bins.numel() < 1 or bins.dtype != values.dtype:
            raise RuntimeError(
                f"{name}: expected a vector of edges of {values.dtype}, got shape "
                f"{tuple(bins.shape)} of {bins.dtype}"
            )
        return bins.clone()
    if bins < 1:
        raise RuntimeError(f"{name}: expected at least one bin, got {bins}")
    if limits is not None:
        low, high = limits
    elif values.numel() == 0:
        low, high = 0.0, 1.0
    else:
        low, high = values.min().item(), values.max().item()
    if not (low <= high and high - low < float("inf")):
        raise RuntimeError(f"{name}: expected a finite range in rising order, got {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _C.linspace(low, high, bins + 1, dtype=values.dtype)


_declare(globals())
