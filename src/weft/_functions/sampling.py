"""poisson: numbers of events, from the same draws as PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare
from weft.autograd import Function

_BLOCK = 256  # draws made at once; those that are left over are given back


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Numbers of events, drawn from Poisson distributions whose means are the elements of input.

    The gradient is zero. RuntimeError where a mean is negative or not finite. Python draws them one
    by one: a million takes seconds.

    >>> weft.poisson(weft.zeros(2))
    tensor([0., 0.])
    """
    return _Poisson.apply(input, generator)


class _Poisson(Function):
    """Its `apply` is a call of Python in programs and traces, which draw anew."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, generator: Any) -> Tensor:
        if not input.is_floating_point():
            raise RuntimeError(f"poisson: expected a floating dtype, got {input.dtype}")
        means = input.reshape([-1]).tolist()
        wrong = next((mean for mean in means if not 0 <= mean < math.inf), None)
        if wrong is not None:
            raise RuntimeError(f"poisson: expected finite means of at least 0, got {wrong}")
        draws = _Draws(_C.default_generator if generator is None else generator)
        counts = _C.tensor([_events(mean, draws) for mean in means], dtype=_C.float64)
        draws.give_back()
        return counts.reshape(input.shape).to(input.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _C.zeros_like(grad), None


class _Draws:
    """Calling it draws a float64 from [0, 1)."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._state = generator.get_state()
        self._count = 0
        self._values: Iterator[float] = iter(())

    def __call__(self) -> float:
        self._count += 1
        value = next(self._values, None)
        if value is None:
            self._values = iter(self._some(_BLOCK).tolist())
            value = next(self._values)
        return value

    def _some(self, count: int) -> Tensor:
        return _C.rand([count], dtype=_C.float64, generator=self._generator)

    def give_back(self) -> None:
        """Leaves the generator as if only the draws that were used had been made."""
        self._generator.set_state(self._state)
        self._some(self._count)


def _events(mean: float, draw: Callable[[], float]) -> int:
    if mean == 0:
        return 0
    return _by_product(mean, draw) if mean < 10 else _by_rejection(mean, draw)


def _by_product(mean: float, draw: Callable[[], float]) -> int:
    """How many draws can be multiplied until the product is at most exp(-mean) (Knuth)."""
    count, product, least = 0, draw(), math.exp(-mean)
    while product > least:
        count += 1
        product *= draw()
    return count


def _by_rejection(mean: float, draw: Callable[[], float]) -> int:
    """The transformed rejection with a squeeze of Hoermann, 1993, algorithm PTRS."""
    root = math.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    scale = math.log(1.1239 + 1.1328 / (b - 3.4))
    bound = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = draw() - 0.5
        v = draw()
        edge = 0.5 - abs(u)
        if edge == 0:
            continue
        count = math.floor((2 * a / edge + b) * u + mean + 0.43)
        if edge >= 0.07 and v <= bound:
            return count
        if count < 0 or (edge < 0.013 and v > edge):
            continue
        chance = count * math.log(mean) - mean - math.lgamma(count + 1)
        if v == 0 or math.log(v) + scale - math.log(a / (edge * edge) + b) <= chance:
            return count


_declare(globals())
