"""A line search for the strong Wolfe conditions (Nocedal, Wright: Numerical Optimization, 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from weft._C import Tensor, empty

ENOUGH_DESCENT = 1e-4  # the loss must fall by this share of what the slope promises
ENOUGH_FLATTENING = 0.9  # and the slope to this share of its first value


class Point(NamedTuple):
    """A place on the line: how far along, the loss, the gradient, and its part along the line."""

    at: float
    loss: float
    grad: Tensor
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    first: float,
    *,
    smallest: float,
    max_trials: int,
) -> Point:
    """A point that falls enough and is flat enough, or the best one found.

    evaluate: the Point at a distance. start: the point at 0, of negative slope. first: the distance
    to try first. smallest: the width below which a bracket is not searched further. max_trials: how
    many points may be evaluated beside the first.
    """
    ends, trials, found = _bracket(evaluate, start, first, max_trials)
    if found:
        return ends[0]
    low, high = sorted(ends, key=lambda point: point.loss)  # sorted keeps the order of equals
    between = list(ends)
    stuck = False
    while trials < max_trials:
        left, right = sorted(point.at for point in between)
        if (right - left) < smallest:
            break
        at = _cubic_minimum(between[0], between[1])
        margin = 0.1 * (right - left)
        if min(right - at, at - left) < margin:
            if stuck or at >= right or at <= left:
                at = right - margin if abs(at - right) < abs(at - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(at)
        trials += 1
        if _too_high(new, start) or new.loss >= low.loss:
            between = [new if end is high else end for end in between]
        else:
            if _flat(new, start):
                return new
            other = low if new.slope * (high.at - low.at) >= 0 else high
            between = [new if end is low else other for end in between]
        low, high = sorted(between, key=lambda point: point.loss)
    return low


def _strong_wolfe(
    obj_func: Callable[[Tensor, float, Tensor], tuple[float, Tensor]],
    x: Tensor,
    t: float,
    d: Tensor,
    f: float,
    g: Tensor,
    gtd: float,
    *,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """The search under PyTorch's private name, which libraries of optimizers call: the loss, the
    gradient and the distance of the point that was found from x along d, and the evaluations."""
    count = 0

    def evaluate(at: float) -> Point:
        nonlocal count
        count += 1
        loss, grad = obj_func(x, at, d)
        return Point(at, float(loss), grad, float(grad.dot(d)))

    smallest = tolerance_change / float(d.abs().max())
    start = Point(0.0, float(f), g, float(gtd))
    found = strong_wolfe(evaluate, start, float(t), smallest=smallest, max_trials=max_ls)
    return found.loss, found.grad, found.at, count


def _bracket(
    evaluate: Callable[[float], Point], start: Point, first: float, max_trials: int
) -> tuple[list[Point], int, bool]:
    """Two points with a good one between them, or (True) one that is good itself."""
    before, new = start, evaluate(first)
    for trials in range(max_trials):
        if _too_high(new, start) or (trials > 1 and new.loss >= before.loss):
            return [before, new], trials, False
        if _flat(new, start):
            return [new], trials, True
        if new.slope >= 0:
            return [before, new], trials, False
        bounds = (new.at + 0.01 * (new.at - before.at), new.at * 10)
        before, new = new, evaluate(_cubic_minimum(before, new, bounds))
    return [start, new], max_trials, False


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + ENOUGH_DESCENT * point.at * start.slope


def _flat(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -ENOUGH_FLATTENING * start.slope


def _cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through both points with their slopes is least, within the bounds."""
    low, high = bounds if bounds is not None else sorted((a.at, b.at))
    mixed = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = mixed**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    left, right = (a, b) if a.at <= b.at else (b, a)
    root = math.sqrt(square)
    share = (right.slope + root - mixed) / (right.slope - left.slope + 2 * root)
    return min(max(right.at - (right.at - left.at) * share, low), high)


def _cubic_interpolate(
    x1: float, f1: float, g1: float, x2: float, f2: float, g2: float,
    bounds: tuple[float, float] | None = None,
) -> float:  # fmt: skip
    """The minimum of the cubic through two points, by PyTorch's private name."""
    none = empty(0)
    return _cubic_minimum(Point(x1, f1, none, g1), Point(x2, f2, none, g2), bounds)
