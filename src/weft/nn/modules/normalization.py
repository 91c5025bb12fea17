"""Layer normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class _Affine(Module):
    """A normalisation that may learn a scale and a shift: weight and bias, or None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_affine(self, shape: Any, weight: bool, bias: bool, **options: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            value = Parameter(_C.empty(shape, **options)) if wanted else None
            self.register_parameter(name, value)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalises over the last dimensions, whose sizes are normalized_shape.

    Shapes, dtypes and errors are those of weft.nn.functional.layer_norm.

    >>> weft.nn.LayerNorm(2)(weft.tensor([1.0, 3.0])).detach()
    tensor([-1.0000,  1.0000])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = (elementwise_affine, elementwise_affine and bias)
        self._make_affine(self.normalized_shape, *affine, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
