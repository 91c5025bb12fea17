"""Fractional max pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class _FractionalMaxPoolNd(Module):
    """What both have in common."""

    _spatial: int
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{type(self).__name__}: expected one of output_size and output_ratio, got "
                f"{output_size} and {output_ratio}"
            )
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(
                f"{type(self).__name__}: expected output_ratio between 0 and 1, got {output_ratio}"
            )

    def _each(self, value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._spatial

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of [n, c, h, w] over windows at drawn places (Graham, 2015).

    Arguments and errors are those of weft.nn.functional.fractional_max_pool2d; a ratio is between 0
    and 1.

    >>> weft.nn.FractionalMaxPool2d(2, output_size=1)(weft.arange(16.0).reshape(1, 4, 4))
    tensor([[[15.]]])
    """

    _spatial, _function = 2, staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of [n, c, d, h, w] over windows at drawn places.

    Arguments and errors are those of weft.nn.functional.fractional_max_pool3d; a ratio is between 0
    and 1.

    >>> weft.nn.FractionalMaxPool3d(2, output_size=1)(weft.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _spatial, _function = 3, staticmethod(F.fractional_max_pool3d)
