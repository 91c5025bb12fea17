"""Arguments: random ones over the ranges of a function, and the special ones of every function."""

from __future__ import annotations

import zlib

import numpy as np

from .functions import Function, Range, Span


def draw(piece: Range, dtype: type, count: int, rng: np.random.Generator) -> np.ndarray:
    info = np.finfo(dtype)
    if isinstance(piece, Span):
        return rng.uniform(piece.low, piece.high, count).astype(dtype)
    low = max(piece.low, float(info.smallest_subnormal))
    high = min(piece.high, float(info.max))
    exponents = rng.uniform(np.log2(low), np.log2(high), count)
    # In two factors, and clipped: the power alone may round beyond the ends.
    sizes = np.clip(np.exp2(exponents / 2) ** 2, low, high)
    return (sizes * (rng.choice([-1.0, 1.0], count) if piece.signed else 1)).astype(dtype)


def inside(x: np.ndarray, pieces: tuple[Range, ...], dtype: type) -> np.ndarray:
    """Which of the numbers lie in one of the pieces."""
    x, greatest = x.astype(np.float64), float(np.finfo(dtype).max)
    result = np.zeros(x.shape, bool)
    for piece in pieces:
        if isinstance(piece, Span):
            result |= (x >= piece.low) & (x <= piece.high)
        else:
            size = np.abs(x) if piece.signed else x
            result |= (size > 0) & (size >= piece.low) & (size <= min(piece.high, greatest))
    return result


def borders(dtype: type) -> np.ndarray:
    """Numbers at the borders of the format, and round ones with their neighbours."""
    info = np.finfo(dtype)
    least, tiny, eps = info.smallest_subnormal, info.tiny, info.eps
    sizes = [least, 2 * least, 3 * least, tiny - least, tiny, tiny + least, eps / 4, eps / 2, eps]
    round_ones = np.array([0.25, 0.5, 1, 1.5, 2, 3, 4, 8, 10, 16, 100, 1024, 2**20], dtype)
    sizes += [*around(round_ones), info.max / 2, np.nextafter(info.max, dtype(0)), info.max]
    array = np.array(sizes, dtype)
    return np.concatenate([array, -array])


def around(x: np.ndarray) -> np.ndarray:
    """The numbers with their neighbours: two below, one above."""
    below, above = np.nextafter(x, x.dtype.type(-np.inf)), np.nextafter(x, x.dtype.type(np.inf))
    return np.concatenate([np.nextafter(below, x.dtype.type(-np.inf)), below, x, above])


def arguments(name: str, function: Function, dtype: type, count: int) -> tuple[np.ndarray, ...]:
    """`count` random arguments of each range, then the special ones; one array per parameter."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), count])
    if function.binary:
        pairs = [tuple(draw(p, dtype, count, rng) for p in pair) for pair in function.ranges]
        special = borders(dtype)
        for pair in function.ranges:
            first, second = (special[inside(special, (p,), dtype)] for p in pair)
            size = max(first.size, second.size) * 3
            pairs.append((np.resize(first, size), rng.choice(second, size)))
        return tuple(np.concatenate(column) for column in zip(*pairs))
    parts = [draw(piece, dtype, count, rng) for piece in function.ranges]
    special = borders(dtype)
    if function.near:
        points = np.array(function.near, dtype)
        special = np.concatenate([special, around(points), -around(points)])
    parts.append(special)
    x = np.concatenate(parts)
    return (x[inside(x, function.ranges, dtype)],)
