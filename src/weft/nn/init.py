"""Initialisers: fill a tensor in place, without recording gradients, and return it.

All random ones draw from the given generator, or from the default one.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare
from weft.autograd.grad_mode import no_grad as _no_grad

_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through a nonlinearity ('leaky_relu' takes its slope).

    Raises ValueError for a nonlinearity that it does not know, and for a slope that is no number.

    >>> weft.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"calculate_gain: expected a number as slope, got {param!r}")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        known = ", ".join([*_GAINS, "leaky_relu"])
        raise ValueError(f"calculate_gain: expected one of {known}, got {nonlinearity!r}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs one output sees, and how many outputs one input reaches."""
    if tensor.dim() < 2:
        raise ValueError(f"init: expected at least 2 dimensions, got shape {tuple(tensor.shape)}")
    outputs, inputs, *window = tensor.shape
    field = math.prod(window)
    return inputs * field, outputs * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"init: expected mode 'fan_in' or 'fan_out', got {mode!r}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from U(a, b).

    Any shape; floating dtypes.

    >>> bool((weft.nn.init.uniform_(weft.empty(100), 2.0, 3.0) >= 2.0).all())
    True
    """
    with _no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from N(mean, std^2).

    Any shape; floating dtypes. Raises RuntimeError for a negative std.

    >>> weft.nn.init.normal_(weft.empty(2), mean=1.0, std=0.0)
    tensor([1., 1.])
    """
    with _no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Draws from N(mean, std^2) cut to [a, b].

    Any shape; floating dtypes. Warns where the mean lies far outside [a, b].

    >>> bool(weft.nn.init.trunc_normal_(weft.empty(100)).abs().amax() <= 2.0)
    True
    """

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: expected a mean within 2 std of [{a}, {b}], got {mean}: "
            "most draws are rejected",
            stacklevel=2,
        )
    with _no_grad():
        if below(b) - below(a) > 0.3:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _accept_by_density(tensor, mean, std, a, b, generator)


def _redraw_outside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Normal draws; those outside [a, b] are replaced by new ones until none is left."""
    low, high = (tensor.new_tensor(bound).item() for bound in (a, b))  # as the dtype holds them
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < low).logical_or(tensor > high)
        if not outside.any():
            return tensor
        fresh = _C.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(_C.where(outside, fresh, tensor))


def _accept_by_density(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Uniform draws, each kept with the density there relative to the highest one in [a, b]."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    pending = None
    while pending is None or pending.any():
        fresh = _C.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(fresh if pending is None else _C.where(pending, fresh, tensor))
        log_density = fresh.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        chance = _C.empty_like(tensor).uniform_(generator=generator).log_()
        rejected = chance > log_density
        pending = rejected if pending is None else pending.logical_and(rejected)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with val.

    Any shape and dtype.

    >>> weft.nn.init.constant_(weft.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with _no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1.

    Any shape and dtype.

    >>> weft.nn.init.ones_(weft.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0.

    Any shape and dtype.

    >>> weft.nn.init.zeros_(weft.empty(2))
    tensor([0., 0.])
    """
    with _no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity (1 on the diagonal, 0 elsewhere).

    Raises ValueError for other numbers of dimensions.

    >>> weft.nn.init.eye_(weft.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError(f"eye_: expected 2 dimensions, got shape {tuple(tensor.shape)}")
    with _no_grad():
        return tensor.copy_(_C.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a convolution weight [o, c, ...] pass as many channels through as it can.

    Raises ValueError for other than 3 to 5 dimensions, and for groups that do not divide o.

    >>> weft.nn.init.dirac_(weft.empty(2, 2, 1)).flatten(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(f"dirac_: expected 3 to 5 dimensions, got shape {tuple(tensor.shape)}")
    outputs, inputs, *window = tensor.shape
    if outputs % groups:
        raise ValueError(f"dirac_: expected groups that divide {outputs} outputs, got {groups}")
    per_group = outputs // groups
    centre = tuple(size // 2 for size in window)
    with _no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, inputs)):
                place = (group * per_group + channel, channel, *centre)
                tensor[place] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)).

    fan_in counts the inputs of an output, fan_out the outputs of an input. Raises ValueError for
    fewer than two dimensions.

    >>> bool(weft.nn.init.xavier_uniform_(weft.empty(3, 3)).abs().amax() <= 1.0)
    True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from N(0, std^2), std = gain * sqrt(2 / (fan_in + fan_out)).

    Fans and errors are those of xavier_uniform_.

    >>> weft.nn.init.xavier_normal_(weft.empty(2, 3), gain=0.0)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws from U(-bound, bound), bound = gain * sqrt(3 / fan).

    gain is calculate_gain(nonlinearity, a), fan that of `mode`, "fan_in" or "fan_out". Raises
    ValueError for another mode or nonlinearity and for fewer than two dimensions.

    >>> bool(weft.nn.init.kaiming_uniform_(weft.empty(2, 6)).abs().amax() <= 1.0)
    True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws from N(0, std^2), std = gain / sqrt(fan).

    Arguments and errors are those of kaiming_uniform_.

    >>> weft.nn.init.kaiming_normal_(weft.empty(2, 3), nonlinearity="relu").shape
    torch.Size([2, 3])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Makes the rows (or columns) of the tensor, seen as a matrix, orthonormal times gain.

    Raises ValueError for fewer than two dimensions.

    >>> q = weft.nn.init.orthogonal_(weft.empty(2, 3))
    >>> (q @ q.T).round(decimals=3).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"orthogonal_: expected at least 2 dimensions, got shape {tuple(tensor.shape)}"
        )
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
    flat = _C.empty(rows, columns, dtype=tensor.dtype, device=tensor.device)
    flat.normal_(0, 1, generator=generator)
    tall = flat.t() if rows < columns else flat
    q = _orthonormal(tall)
    with _no_grad():
        tensor.view(rows, columns).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def _orthonormal(matrix: Tensor) -> Tensor:
    """Q of the QR decomposition whose R has a positive diagonal."""
    q, r = _C._aten.linalg_qr(matrix.double())
    return q * r.diagonal().sign()


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draws from N(0, std^2) and zeroes the share `sparsity` of each column.

    Raises ValueError for other than two dimensions.

    >>> int((weft.nn.init.sparse_(weft.empty(4, 2), 0.5) == 0).sum())
    4
    """
    if tensor.dim() != 2:
        raise ValueError(f"sparse_: expected 2 dimensions, got shape {tuple(tensor.shape)}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with _no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            # Which rows are zeroed comes from the default generator, as in PyTorch.
            tensor[_C.randperm(rows)[:zeros], column] = 0
    return tensor


# Old names --------------------------------------------------------------------------------------


_OLD_DOC = """{name}_, under its old name: a FutureWarning.

>>> import warnings
>>> with warnings.catch_warnings():
...     warnings.simplefilter("error")
...     weft.nn.init.{name}(weft.ones(1))
Traceback (most recent call last):
FutureWarning: nn.init.{name} is now deprecated in favor of nn.init.{name}_.
"""


def _deprecated(name: str) -> Any:
    current = globals()[name + "_"]

    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{name} is now deprecated in favor of nn.init.{name}_.",
            FutureWarning,
            stacklevel=2,
        )
        return current(*args, **kwargs)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = _OLD_DOC.format(name=name)
    return old


# PyTorch shows these to __torch_function__: modes that make modules without drawing numbers.
_declare(globals(), names=("uniform_", "normal_", "constant_", "kaiming_uniform_"))

_OLD = (
    "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal "
    "orthogonal sparse"
)
for _name in _OLD.split():
    globals()[_name] = _deprecated(_name)
