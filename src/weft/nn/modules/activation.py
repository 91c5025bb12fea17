"""Activations: one small module per function."""

from __future__ import annotations

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class ReLU(Module):
    """max(input, 0).

    Shapes, dtypes and errors are those of weft.nn.functional.relu.

    >>> weft.nn.ReLU()(weft.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return input.relu_() if self.inplace else input.relu()

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class GELU(Module):
    """input * P(X <= input) for a normal X; approximate='tanh' uses the tanh formula.

    Shapes, dtypes and errors are those of weft.nn.functional.gelu.

    >>> weft.nn.GELU()(weft.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    _repr_names = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class SiLU(Module):
    """input * sigmoid(input).

    Shapes, dtypes and errors are those of weft.nn.functional.silu.

    >>> weft.nn.SiLU()(weft.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """input where positive, otherwise negative_slope * input.

    Shapes, dtypes and errors are those of weft.nn.functional.leaky_relu.

    >>> weft.nn.LeakyReLU(0.1)(weft.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        suffix = ", inplace=True" if self.inplace else ""
        return f"negative_slope={self.negative_slope}{suffix}"


class Tanh(Module):
    """Hyperbolic tangent.

    Shapes, dtypes and errors are those of weft.nn.functional.tanh.

    >>> weft.nn.Tanh()(weft.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class Sigmoid(Module):
    """1 / (1 + exp(-input)).

    Shapes, dtypes and errors are those of weft.nn.functional.sigmoid.

    >>> weft.nn.Sigmoid()(weft.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Softmax(Module):
    """exp(input) / sum(exp(input)) along `dim`.

    Shapes, dtypes and errors are those of weft.nn.functional.softmax.

    >>> weft.nn.Softmax(0)(weft.tensor([1.0, 3.0]))
    tensor([0.1192, 0.8808])
    """

    _repr_names = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of [n, c, h, w] or [c, h, w].

    Raises ValueError for other numbers of dimensions.

    >>> weft.nn.Softmax2d()(weft.zeros(2, 1, 2))
    tensor([[[0.5000, 0.5000]],
    <BLANKLINE>
            [[0.5000, 0.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 dims, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)


class LogSoftmax(Module):
    """log(softmax(input)) along `dim`.

    Shapes, dtypes and errors are those of weft.nn.functional.log_softmax.

    >>> weft.nn.LogSoftmax(0)(weft.tensor([1.0, 3.0]))
    tensor([-2.1269, -0.1269])
    """

    _repr_names = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)
