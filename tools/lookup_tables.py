"""Computes the tables of src/weft/_kernels/lookup_tables.py (needs mpmath; run by hand).

    python tools/lookup_tables.py > src/weft/_kernels/lookup_tables.py

Tables of 16 float32 entries. Where a value stands beside a free choice (the centre of a piece), the
choice is one whose value is nearly a float32, so that rounding the table adds next to no error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise

from minimax import remez, written
from mpmath import mp, mpf

Function = Callable[[mpf], mpf]
TANH_DEGREE = 6


def rounded(x: mpf) -> float:
    """x as float32."""
    return float(struct.unpack("f", struct.pack("f", float(x)))[0])


def best_choice(f: Function, middle: mpf, step: mpf) -> float:
    """The float32 near `middle` whose f is nearest to a float32, in units of that one's size."""
    choices = (rounded(middle + k * step) for k in range(-1500, 1500))
    return min(choices, key=lambda c: abs(f(mpf(c)) / mpf(rounded(f(mpf(c)))) - 1))


def exp_tables() -> dict[str, list[float]]:
    exact = [mpf(2) ** (mpf(j) / 16) for j in range(16)]
    bound = mp.log(2) / 32 * mpf("1.002")
    tail, _ = remez(
        lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > mpf("1e-12") else mpf(1) / 2 + r / 6,
        lambda r: r * r + mpf("1e-18"),
        -bound,
        bound,
        1,
    )
    return {
        "EXP_POWERS": [rounded(t) for t in exact],
        "EXP_LOST": [float(t / mpf(rounded(t)) - 1) for t in exact],
        "EXP_TAIL": [float(c) for c in tail],
    }


def log_tables() -> dict[str, list[float]]:
    """For m in [3/4, 3/2), by the four upper bits of its significand: from 8 on, m is below 1."""
    inverses, logs = [], []
    for j in range(16):
        middle = (1 + (mpf(j) + mpf(1) / 2) / 16) / (1 if j < 8 else 2)
        # Both sides of 1 without any table, so that the relative error there stays small.
        if j in (0, 15):
            inverse = 1.0
        else:
            inverse = best_choice(lambda c: -mp.log(c), 1 / middle, mpf(2) ** -22)
        inverses.append(inverse)
        logs.append(rounded(-mp.log(mpf(inverse))))
    tail, _ = remez(
        lambda r: (mp.log1p(r) - r) / r**2 if abs(r) > mpf("1e-10") else -mpf(1) / 2 + r / 3,
        lambda r: abs(r) + mpf("1e-9"),
        -mpf(1) / 32 * mpf("1.001"),
        mpf(1) / 16 * mpf("1.001"),
        3,
    )
    return {"LOG_INVERSES": inverses, "LOG_VALUES": logs, "LOG_TAIL": [float(c) for c in tail]}


def tanh_piece(low: mpf, high: mpf) -> list[float]:
    """Centre, value there, and the coefficients of tanh(centre + r)."""
    middle = (low + high) / 2
    if low > 11:
        return [float(low), 1.0, *[0.0] * TANH_DEGREE]
    c = mpf(best_choice(mp.tanh, middle, (high - low) / 2**14)) if low < 7 else middle
    value = mp.tanh(c)
    rest, _ = remez(
        lambda r: (mp.tanh(c + r) - value) / r if abs(r) > mpf("1e-12") else mp.sech(c) ** 2,
        lambda r: (abs(r) + mpf("1e-9")) / value,
        low - c,
        high - c,
        TANH_DEGREE - 1,
    )
    return [float(c), rounded(value), *map(float, rest)]


def tanh_tables() -> dict[str, list[float]]:
    """Pieces from 2^-4 to 2^4, by the exponent's lower bits and the significand's upper one."""
    ends = [mpf(2) ** e * s for e in range(-4, 4) for s in (mpf(1), mpf(3) / 2)] + [mpf(16)]
    near, _ = remez(
        lambda a: (mp.tanh(a) - a) / a**2 if a > mpf("1e-8") else mpf(0),
        lambda a: a + mpf("1e-9"),
        mpf(0),
        ends[1],
        TANH_DEGREE - 2,
    )
    pieces = [[0.0, 0.0, 1.0, *map(float, near)]]
    pieces += [tanh_piece(low, high) for low, high in pairwise(ends[1:])]
    first = (127 - 4) * 2 % 16  # the index of the first piece
    turned = [pieces[(i - first) % 16] for i in range(16)]
    columns = [list(column) for column in zip(*turned)]
    return {"TANH_CENTRES": columns[0]} | {f"TANH_{k}": c for k, c in enumerate(columns[1:])}


def main() -> None:
    print('"""Tables of 16 entries and what goes with them, for lookup.py.\n')
    print('Made by tools/lookup_tables.py; coefficients constant term first.\n"""')
    for name, values in (exp_tables() | log_tables() | tanh_tables()).items():
        print(f"\n{written(name, values)}")


if __name__ == "__main__":
    main()
