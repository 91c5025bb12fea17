"""Further activations: one small module per function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class _Activation(Module):
    """Calls one function with the arguments that were given at the start."""

    _function: ClassVar[Callable[..., Tensor]]
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = [*self._defaults]
        if len(args) > len(names) or not set(kwargs) <= set(names[len(args) :]):
            raise TypeError(
                f"{type(self).__name__}: expected arguments {names}, got {args} and {kwargs}"
            )
        for name, value in (self._defaults | dict(zip(names, args)) | kwargs).items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, **{name: getattr(self, name) for name in self._defaults})

    def extra_repr(self) -> str:
        shown = [f"{n}={getattr(self, n)}" for n in self._defaults if n != "inplace"]
        return ", ".join(shown + ["inplace=True"] * getattr(self, "inplace", False))


class ELU(_Activation):
    """input where positive, otherwise alpha * (exp(input) - 1).

    Shapes, dtypes and errors are those of weft.nn.functional.elu.

    >>> weft.nn.ELU()(weft.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    _function = staticmethod(F.elu)
    _defaults: ClassVar = {"alpha": 1.0, "inplace": False}


class CELU(_Activation):
    """input where positive, otherwise alpha * (exp(input / alpha) - 1).

    Shapes, dtypes and errors are those of weft.nn.functional.celu.

    >>> weft.nn.CELU(alpha=2.0)(weft.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    _function = staticmethod(F.celu)
    _defaults: ClassVar = {"alpha": 1.0, "inplace": False}


class SELU(_Activation):
    """Scaled ELU that keeps mean 0 and variance 1.

    Shapes, dtypes and errors are those of weft.nn.functional.selu.

    >>> weft.nn.SELU()(weft.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    _function = staticmethod(F.selu)
    _defaults: ClassVar = {"inplace": False}


class Hardtanh(_Activation):
    """input cut to [min_val, max_val].

    Shapes, dtypes and errors are those of weft.nn.functional.hardtanh.

    >>> weft.nn.Hardtanh(-2.0, 2.0)(weft.tensor([-3.0, 0.5]))
    tensor([-2.0000,  0.5000])
    """

    _function: ClassVar[Callable[..., Tensor]] = staticmethod(F.hardtanh)
    _defaults: ClassVar = {"min_val": -1.0, "max_val": 1.0, "inplace": False}


class ReLU6(Hardtanh):
    """input cut to [0, 6].

    Shapes, dtypes and errors are those of weft.nn.functional.relu6.

    >>> weft.nn.ReLU6()(weft.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """

    _function = staticmethod(F.relu6)
    min_val, max_val = 0.0, 6.0
    _computed_attributes = ("min_val", "max_val")
    _defaults: ClassVar = {"inplace": False}


class _Unshown(_Activation):
    """One whose repr does not tell of `inplace`."""

    _defaults: ClassVar = {"inplace": False}

    def extra_repr(self) -> str:
        return ""


class Hardsigmoid(_Unshown):
    """input / 6 + 1 / 2, cut to [0, 1].

    Shapes, dtypes and errors are those of weft.nn.functional.hardsigmoid.

    >>> weft.nn.Hardsigmoid()(weft.tensor([0.0, 1.5, 9.0]))
    tensor([0.5000, 0.7500, 1.0000])
    """

    _function = staticmethod(F.hardsigmoid)


class Hardswish(_Unshown):
    """input * hardsigmoid(input).

    Shapes, dtypes and errors are those of weft.nn.functional.hardswish.

    >>> weft.nn.Hardswish()(weft.tensor([0.0, 1.0, 9.0]))
    tensor([0.0000, 0.6667, 9.0000])
    """

    _function = staticmethod(F.hardswish)


class Mish(_Activation):
    """input * tanh(softplus(input)).

    Shapes, dtypes and errors are those of weft.nn.functional.mish.

    >>> weft.nn.Mish()(weft.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    _function = staticmethod(F.mish)
    _defaults: ClassVar = {"inplace": False}


class LogSigmoid(_Activation):
    """log(sigmoid(input)).

    Shapes, dtypes and errors are those of weft.nn.functional.logsigmoid.

    >>> weft.nn.LogSigmoid()(weft.tensor([0.0, 2.0]))
    tensor([-0.6931, -0.1269])
    """

    _function = staticmethod(F.logsigmoid)


class Softsign(_Activation):
    """input / (1 + |input|).

    Shapes, dtypes and errors are those of weft.nn.functional.softsign.

    >>> weft.nn.Softsign()(weft.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    _function = staticmethod(F.softsign)


class Tanhshrink(_Activation):
    """input - tanh(input).

    Shapes, dtypes and errors are those of weft.nn.functional.tanhshrink.

    >>> weft.nn.Tanhshrink()(weft.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """

    _function = staticmethod(F.tanhshrink)


class Softplus(_Activation):
    """log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.

    Shapes, dtypes and errors are those of weft.nn.functional.softplus.

    >>> weft.nn.Softplus()(weft.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    _function = staticmethod(F.softplus)
    _defaults: ClassVar = {"beta": 1.0, "threshold": 20.0}


class _Shrink(_Activation):
    _defaults: ClassVar = {"lambd": 0.5}

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """input where |input| > lambd, otherwise 0.

    Shapes, dtypes and errors are those of weft.nn.functional.hardshrink.

    >>> weft.nn.Hardshrink()(weft.tensor([-0.25, 2.0]))
    tensor([0., 2.])
    """

    _function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """input moved by lambd towards 0.

    Shapes, dtypes and errors are those of weft.nn.functional.softshrink.

    >>> weft.nn.Softshrink()(weft.tensor([-0.25, 2.0]))
    tensor([0.0000, 1.5000])
    """

    _function = staticmethod(F.softshrink)


class GLU(_Activation):
    """The first half along `dim` times the sigmoid of the second.

    Shapes, dtypes and errors are those of weft.nn.functional.glu.

    >>> weft.nn.GLU()(weft.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    _function = staticmethod(F.glu)
    _defaults: ClassVar = {"dim": -1}


class Softmin(_Activation):
    """softmax of -input along `dim`.

    Shapes, dtypes and errors are those of weft.nn.functional.softmin.

    >>> weft.nn.Softmin(0)(weft.tensor([1.0, 3.0]))
    tensor([0.8808, 0.1192])
    """

    _function = staticmethod(F.softmin)
    _defaults: ClassVar = {"dim": None}


class Threshold(Module):
    """input where above the threshold, otherwise value.

    Shapes, dtypes and errors are those of weft.nn.functional.threshold.

    >>> weft.nn.Threshold(1.0, -1.0)(weft.tensor([0.5, 2.0]))
    tensor([-1.,  2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{inplace}"


class PReLU(Module):
    """input where positive, otherwise a learned weight (one, or one a channel) times input.

    Shapes, dtypes and errors are those of weft.nn.functional.prelu.

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
        self.weight = Parameter(_C.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class RReLU(Module):
    """input where positive, otherwise input times a slope drawn from [lower, upper] in training.

    Shapes, dtypes and errors are those of weft.nn.functional.rrelu.

    >>> weft.nn.RReLU(0.25, 0.75).eval()(weft.tensor([-4.0, 2.0]))
    tensor([-2.,  2.])
    """

    _repr_names = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)
