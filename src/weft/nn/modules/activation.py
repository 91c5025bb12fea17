"""Activations: one small module for each function."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.nn import functional as F
from weft.nn.modules._layer import _Layer, _UnaryLayer
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class _Activation(_UnaryLayer):
    """An activation with its arguments in the repr, `inplace` where it is set."""

    def extra_repr(self) -> str:
        shown = [f"{n}={getattr(self, n)}" for n in self._arguments if n != "inplace"]
        return ", ".join(shown + ["inplace=True"] * getattr(self, "inplace", False))


class ReLU(_Activation, of="relu"):
    """max(input, 0).

    >>> weft.nn.ReLU()(weft.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return input.relu_() if self.inplace else input.relu()


class GELU(_Layer, of="gelu"):
    """input * P(X <= input) for a normal X; approximate='tanh' uses the tanh formula.

    >>> weft.nn.GELU()(weft.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    _repr_names = ("approximate",)

    approximate: str = "none"

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class SiLU(_Activation, of="silu"):
    """input * sigmoid(input).

    >>> weft.nn.SiLU()(weft.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class LeakyReLU(_Activation, of="leaky_relu"):
    """input where positive, otherwise negative_slope * input.

    >>> weft.nn.LeakyReLU(0.1)(weft.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 1e-2
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class Tanh(_Layer, of="tanh"):
    """Hyperbolic tangent.

    >>> weft.nn.Tanh()(weft.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class Sigmoid(_Layer, of="sigmoid"):
    """1 / (1 + exp(-input)).

    >>> weft.nn.Sigmoid()(weft.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Softmax(_Layer, of="softmax"):
    """exp(input) / sum(exp(input)) along `dim`.

    >>> weft.nn.Softmax(0)(weft.tensor([1.0, 3.0]))
    tensor([0.1192, 0.8808])
    """

    _repr_names = ("dim",)

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of [n, c, h, w] or [c, h, w].

    Raises ValueError for other numbers of dimensions. Floating dtypes.

    >>> weft.nn.Softmax2d()(weft.zeros(2, 1, 2))
    tensor([[[0.5000, 0.5000]],
    <BLANKLINE>
            [[0.5000, 0.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 dims, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)


class LogSoftmax(_Layer, of="log_softmax"):
    """log(softmax(input)) along `dim`.

    >>> weft.nn.LogSoftmax(0)(weft.tensor([1.0, 3.0]))
    tensor([-2.1269, -0.1269])
    """

    _repr_names = ("dim",)

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class ELU(_Activation, of="elu"):
    """input where positive, otherwise alpha * (exp(input) - 1).

    >>> weft.nn.ELU()(weft.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


class CELU(_Activation, of="celu"):
    """input where positive, otherwise alpha * (exp(input / alpha) - 1).

    >>> weft.nn.CELU(alpha=2.0)(weft.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


class SELU(_Activation, of="selu"):
    """Scaled ELU that keeps mean 0 and variance 1.

    >>> weft.nn.SELU()(weft.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    inplace: bool = False


class Hardtanh(_Activation, of="hardtanh"):
    """input cut to [min_val, max_val].

    >>> weft.nn.Hardtanh(-2.0, 2.0)(weft.tensor([-3.0, 0.5]))
    tensor([-2.0000,  0.5000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False


class ReLU6(Hardtanh, of="relu6"):
    """input cut to [0, 6].

    >>> weft.nn.ReLU6()(weft.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """

    min_val, max_val = 0.0, 6.0
    _computed_attributes = ("min_val", "max_val")
    inplace: bool = False


class _Unshown(_Activation):
    """One whose repr does not tell of `inplace`."""

    inplace: bool = False

    def extra_repr(self) -> str:
        return ""


class Hardsigmoid(_Unshown, of="hardsigmoid"):
    """input / 6 + 1 / 2, cut to [0, 1].

    >>> weft.nn.Hardsigmoid()(weft.tensor([0.0, 1.5, 9.0]))
    tensor([0.5000, 0.7500, 1.0000])
    """


class Hardswish(_Unshown, of="hardswish"):
    """input * hardsigmoid(input).

    >>> weft.nn.Hardswish()(weft.tensor([0.0, 1.0, 9.0]))
    tensor([0.0000, 0.6667, 9.0000])
    """


class Mish(_Activation, of="mish"):
    """input * tanh(softplus(input)).

    >>> weft.nn.Mish()(weft.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    inplace: bool = False


class LogSigmoid(_Activation, of="logsigmoid"):
    """log(sigmoid(input)).

    >>> weft.nn.LogSigmoid()(weft.tensor([0.0, 2.0]))
    tensor([-0.6931, -0.1269])
    """


class Softsign(_Activation, of="softsign"):
    """input / (1 + |input|).

    >>> weft.nn.Softsign()(weft.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class Tanhshrink(_Activation, of="tanhshrink"):
    """input - tanh(input).

    >>> weft.nn.Tanhshrink()(weft.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """


class Softplus(_Activation, of="softplus"):
    """log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.

    >>> weft.nn.Softplus()(weft.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    beta: float = 1.0
    threshold: float = 20.0


class _Shrink(_Activation):
    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink, of="hardshrink"):
    """input where |input| > lambd, otherwise 0.

    >>> weft.nn.Hardshrink()(weft.tensor([-0.25, 2.0]))
    tensor([0., 2.])
    """


class Softshrink(_Shrink, of="softshrink"):
    """input moved by lambd towards 0.

    >>> weft.nn.Softshrink()(weft.tensor([-0.25, 2.0]))
    tensor([0.0000, 1.5000])
    """


class GLU(_Activation, of="glu"):
    """The first half along `dim` times the sigmoid of the second.

    >>> weft.nn.GLU()(weft.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int = -1


class Softmin(_Activation, of="softmin"):
    """softmax of -input along `dim`.

    >>> weft.nn.Softmin(0)(weft.tensor([1.0, 3.0]))
    tensor([0.8808, 0.1192])
    """

    dim: int | None = None


class Threshold(_Activation, of="threshold"):
    """input where above the threshold, otherwise value.

    >>> weft.nn.Threshold(1.0, -1.0)(weft.tensor([0.5, 2.0]))
    tensor([-1.,  2.])
    """

    threshold: float
    value: float
    inplace: bool = False


class PReLU(_Layer, of="prelu"):
    """input where positive, otherwise a learned weight (one, or one a channel) times input.

    >>> weft.nn.PReLU()(weft.tensor([-4.0, 2.0])).detach()
    tensor([-1.,  2.])
    """

    weight: Parameter
    _repr_names = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(_C.empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fills the slopes with `init`."""
        with no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class RReLU(_Layer, of="rrelu"):
    """input where positive, otherwise input times a slope drawn from [lower, upper] in training.

    >>> weft.nn.RReLU(0.25, 0.75).eval()(weft.tensor([-4.0, 2.0]))
    tensor([-2.,  2.])
    """

    _repr_names = ("lower", "upper")

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)
