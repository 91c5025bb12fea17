"""In-place forms of functions whose results are tensors of their own: they are copied back.

Gradients read a copy of what is overwritten.
"""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.elements import mvlgamma
from weft._functions.incomplete_gamma import igamma, igammac
from weft._runtime.torch_function import declare as _declare


def _written_back(name: str, self: Tensor, result: Tensor) -> Tensor:
    """Writes the result of an in-place function to the tensor that it is of."""
    if result.dtype != self.dtype or result.shape != self.shape:
        raise RuntimeError(
            f"{name}: expected a result of shape {tuple(self.shape)} and dtype {self.dtype}, got "
            f"{tuple(result.shape)} and {result.dtype}"
        )
    return self.copy_(result)


def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """mvlgamma in place.

    >>> mvlgamma_(weft.tensor([2.0]), 2)
    tensor([0.4516])
    """
    return _written_back("mvlgamma_", self, mvlgamma(self.clone(), p))


def igamma_(self: Tensor, other: Tensor) -> Tensor:
    """igamma in place.

    >>> igamma_(weft.tensor([1.0]), weft.tensor([2.0]))
    tensor([0.8647])
    """
    return _written_back("igamma_", self, igamma(self.clone(), other))


def igammac_(self: Tensor, other: Tensor) -> Tensor:
    """igammac in place.

    >>> igammac_(weft.tensor([1.0]), weft.tensor([2.0]))
    tensor([0.1353])
    """
    return _written_back("igammac_", self, igammac(self.clone(), other))


def i0_(self: Tensor) -> Tensor:
    """i0 in place, of a floating tensor.

    >>> i0_(weft.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return _written_back("i0_", self, self.clone().i0())


def digamma_(self: Tensor) -> Tensor:
    """digamma in place, of a floating tensor.

    >>> digamma_(weft.tensor([1.0]))
    tensor([-0.5772])
    """
    return _written_back("digamma_", self, self.clone().digamma())


def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma of order n in place, of a floating tensor.

    >>> polygamma_(weft.tensor([1.0]), 1)
    tensor([1.6449])
    """
    return _written_back("polygamma_", self, _C.polygamma(n, self.clone()))


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """float_power in place, of a float64 or complex128 tensor.

    >>> float_power_(weft.tensor([3.0], dtype=weft.float64), 2)
    tensor([9.], dtype=torch.float64)
    """
    return _written_back("float_power_", self, _C.float_power(self.clone(), exponent))


def cumsum_(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """cumsum in place; `dtype` may be that of self.

    >>> cumsum_(weft.tensor([1, 2]), 0)
    tensor([1, 3])
    """
    kind = self.dtype if dtype is None else dtype
    return _written_back("cumsum_", self, self.cumsum(dim, dtype=kind))


def cumprod_(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """cumprod in place; `dtype` may be that of self.

    >>> cumprod_(weft.tensor([3, 2]), 0)
    tensor([3, 6])
    """
    kind = self.dtype if dtype is None else dtype
    return _written_back("cumprod_", self, self.clone().cumprod(dim, dtype=kind))


def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """swapaxes in place.

    >>> swapaxes_(weft.tensor([[1, 2]]), 0, 1)
    tensor([[1],
            [2]])
    """
    return self.transpose_(axis0, axis1)


_declare(globals())
