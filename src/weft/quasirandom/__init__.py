"""Numbers that fill the unit cube more evenly than random ones: Sobol sequences."""

from __future__ import annotations

import functools
import pkgutil
from typing import Any

from weft import _C
from weft._C import Generator, Tensor
from weft.autograd.grad_mode import no_grad

__all__ = ["SobolEngine"]


@functools.cache
def _directions() -> list[list[int]]:
    """Of each dimension from the second on: its polynomial, and its first direction numbers."""
    data = pkgutil.get_data("weft.quasirandom", "directions.txt")
    lines = (data or b"").decode().splitlines()
    return [[int(word) for word in line.split()] for line in lines if line[:1] != "#"]


class SobolEngine:
    """Draws points of the Sobol sequence in [0, 1) to the power of `dimension`.

    - dimension: at most MAXDIM.
    - scramble: shuffles the digits (Owen), with random numbers of `seed`, or of the global
      generator without one.

    ValueError for other dimensions.

    >>> weft.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: expected a dimension in [1, {self.MAXDIM}], got {dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = self._state()
        self.shift = _C.zeros(dimension, dtype=_C.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0
        self.reset()

    @property
    def _first_point(self) -> Tensor:
        return (self.shift / 2**self.MAXBIT).reshape(1, -1)

    def _state(self) -> Tensor:
        """A row of direction numbers for each dimension, as binary fractions of MAXBIT digits."""
        rows = [[1] * self.MAXBIT]
        for polynomial, *first in _directions()[: self.dimension - 1]:
            row, degree = list(first), len(first)
            for j in range(degree, self.MAXBIT):
                number = row[j - degree]
                for k in range(1, degree + 1):
                    if polynomial >> (degree - k) & 1:
                        number ^= row[j - k] << k
                row.append(number)
            rows.append(row)
        return _C.tensor(rows) * 2 ** _C.arange(self.MAXBIT - 1, -1, -1)

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        bits, positions = self.MAXBIT, _C.arange(self.MAXBIT)
        digits = _C.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (digits * 2**positions).sum(1)
        mixed = _C.randint(2, (self.dimension, bits, bits), generator=generator).tril(-1)
        mixed = mixed + _C.eye(bits, dtype=_C.int64)
        from_first = positions.flip(0)  # the digit of 1/2 is the highest bit
        digits = (self.sobolstate.unsqueeze(-1) >> from_first) & 1
        changed = (digits.unsqueeze(-2) * mixed.unsqueeze(1)).sum(-1) % 2
        self.sobolstate = (changed << from_first).sum(-1)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, [n, dimension]; in the default dtype, or written to `out`."""
        if n < 1:
            raise RuntimeError(f"SobolEngine.draw: expected at least 1 point, got {n}")
        with no_grad():
            points = self._points(self.num_generated, n)
            self.num_generated += n
            self.quasi = points[-1]
            result = (points.double() / 2**self.MAXBIT).to(dtype or _C.get_default_dtype())
            if out is None:
                return result
            return out.resize_(result.shape).copy_(result)

    def _points(self, start: int, count: int) -> Tensor:
        """Points as integers: those of the Gray code, one digit of it after the other."""
        index = _C.arange(start, start + count)
        code = index ^ (index >> 1)
        points = self.shift.expand(count, -1)
        for place in range((start + count - 1).bit_length()):
            chosen = (code >> place & 1).unsqueeze(1)
            points = points ^ (chosen * self.sobolstate[:, place])
        return points

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points. ValueError where all points then are no power of 2 in number."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"SobolEngine.draw_base2: expected a power of 2 points in all, got {total}; "
                "draw() takes any number"
            )
        return self.draw(2**m, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begins the sequence again."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Passes over n points."""
        self.num_generated += n
        if self.num_generated > 0:
            self.quasi = self._points(self.num_generated - 1, 1)[0]
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] if self.scramble else []
        parts += [f"seed={self.seed}"] if self.seed is not None else []
        return f"SobolEngine({', '.join(parts)})"
