"""Dropout of elements and of whole channels, and dropout that keeps mean and variance;
`weft.nn.functional` shows them."""

from __future__ import annotations

import warnings

from weft import _C
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft._runtime.torch_function import declare as _declare

# What SELU tends to for small inputs: alpha dropout sets elements to it.
_FLOOR = -1.7580993408473766


def _check(function: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{function}: expected p between 0 and 1, got {p}")


def _noise(input: Tensor, channels: bool, p: float) -> Tensor:
    """1 for an element that stays, or for a channel, else 0."""
    shape = list(input.shape[:2]) + [1] * (input.dim() - 2) if channels else input.shape
    return _C._aten.bernoulli(input.new_empty(shape), 1 - p)  # of the batch, under vmap


def _zero(input: Tensor) -> Tensor:
    return _C.zeros((), dtype=input.dtype, device=input.device)


def _channels(function: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    _check(function, p)
    if input.dim() < 2:
        raise RuntimeError(f"{function}: expected at least 2 dims, got shape {tuple(input.shape)}")
    if not training or p == 0 or input.numel() == 0:
        return input
    noise = _zero(input) if p == 1 else _noise(input, True, p).div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability p and scales the rest by 1 / (1 - p) in training.

    Any shape; floating or complex dtypes. Otherwise, with p = 0 and outside of training, the result
    is `input`. Raises ValueError for p outside [0, 1], RuntimeError for integers.

    >>> weft.nn.functional.dropout(weft.ones(2), 0.9, training=False)
    tensor([1., 1.])
    """
    _check("dropout", p)
    if inplace and (p == 0 or not training):
        return input
    result = _C.dropout(input, p, training)
    return input.copy_(result) if inplace else result


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes each channel of [n, c, l] (or [c, l]) with probability p, scales the rest.

    Raises ValueError for p outside [0, 1], RuntimeError for other numbers of dimensions. Floating
    and complex dtypes, which the result keeps.

    >>> weft.nn.functional.dropout1d(weft.ones(1, 2, 3), 0.0)
    tensor([[[1., 1., 1.],
             [1., 1., 1.]]])
    """
    return _of_samples("dropout1d", input, 3, p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes each channel of [n, c, h, w] with probability p, scales the rest.

    Raises ValueError for p outside [0, 1], RuntimeError for fewer than two dimensions. Floating and
    complex dtypes, which the result keeps.

    >>> weft.nn.functional.dropout2d(weft.ones(1, 2, 1, 1), 1.0).flatten()
    tensor([0., 0.])
    """
    if input.dim() not in (3, 4):
        _warn_of_dims("dropout2d", input, "3 or 4")
    elif input.dim() == 3:
        warnings.warn(
            "dropout2d: expected shape (n, c, h, w), got 3 dims, which are taken for (n, c, l), as "
            "dropout1d takes them",
            stacklevel=3,
        )
    return _channels("dropout2d", input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes each channel of [n, c, d, h, w] (or [c, d, h, w]) with probability p.

    Raises ValueError for p outside [0, 1], RuntimeError for other numbers of dimensions. Floating
    and complex dtypes, which the result keeps.

    >>> weft.nn.functional.dropout3d(weft.ones(2, 1, 1, 1), 1.0).flatten()
    tensor([0., 0.])
    """
    if input.dim() not in (4, 5):
        _warn_of_dims("dropout3d", input, "4 or 5")
        return _channels("dropout3d", input, p, training, inplace)
    return _of_samples("dropout3d", input, 5, p, training, inplace)


def _warn_of_dims(function: str, input: Tensor, dims: str) -> None:
    warnings.warn(
        f"{function}: expected {dims} dims, got shape {tuple(input.shape)}, of which the second "
        "dim is taken for channels",
        stacklevel=4,
    )


def _of_samples(
    function: str, input: Tensor, dims: int, p: float, training: bool, inplace: bool
) -> Tensor:
    """The channels of one sample where the batch is missing."""
    if input.dim() not in (dims - 1, dims):
        raise RuntimeError(
            f"{function}: expected {dims - 1} or {dims} dims, got shape {tuple(input.shape)}"
        )
    if input.dim() == dims:
        return _channels(function, input, p, training, inplace)
    return _channels(function, input.unsqueeze(0), p, training, inplace).squeeze(0)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Sets elements to SELU's floor with probability p, then restores mean and variance.

    Any shape; the result is `input` where not in training. Raises ValueError for p outside [0, 1].
    Floating and complex dtypes, which the result keeps.

    >>> weft.nn.functional.alpha_dropout(weft.ones(2), 0.5, training=False)
    tensor([1., 1.])
    """
    return _alpha("alpha_dropout", input, p, training, inplace, False)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels (dimension 1).

    Raises ValueError for p outside [0, 1], RuntimeError for fewer than two dimensions in training.
    Floating and complex dtypes, which the result keeps.

    >>> weft.nn.functional.feature_alpha_dropout(weft.ones(1, 2), 1.0, training=True)
    tensor([[0., 0.]])
    """
    return _alpha("feature_alpha_dropout", input, p, training, inplace, True)


def _alpha(
    function: str, input: Tensor, p: float, training: bool, inplace: bool, channels: bool
) -> Tensor:
    _check(function, p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        result = input * _zero(input)
    else:
        if channels and input.dim() < 2:
            raise RuntimeError(
                f"{function}: expected at least 2 dims, got shape {tuple(input.shape)}"
            )
        if not (input.is_floating_point() or input.is_complex()):
            raise NotImplementedError(
                f"{function}: expected a floating or complex dtype, got {input.dtype}"
            )
        noise = _noise(input, channels, p)
        scale = ((_FLOOR**2 * p + 1) * (1 - p)) ** -0.5
        result = input * (noise * scale) + ((noise - 1) * -_FLOOR + -_FLOOR * p) * scale
    return input.copy_(result) if inplace else result


_declare(globals())
_list_own(vars())
