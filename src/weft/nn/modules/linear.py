"""Linear and Identity."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter

_linear = F.linear


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    >>> weft.nn.Identity()(weft.tensor([1, 2]))
    tensor([1, 2])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """input @ weight.T + bias: [*, in_features] to [*, out_features].

    weight and bias start uniformly within 1 / sqrt(in_features). Raises RuntimeError for another
    last size. The dtype is that of the parameters.

    >>> weft.nn.Linear(3, 4)(weft.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(_C.empty(out_features, in_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-1/sqrt(in_features), 1/sqrt(in_features))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """Linear, under the name that MultiheadAttention's projection has in PyTorch."""
