"""Padding layers, one for each way and number of dimensions."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules._layer import _tell
from weft.nn.modules.module import Module


class _Pad(Module):
    """Holds the widths: one number for all sides, or two for each dimension, the last first."""

    _mode = ""
    _dims = 0
    value: float | None = None

    def __init_subclass__(cls, mode: str = "", dims: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if mode:
            cls._mode = mode
        if dims:
            cls._dims = dims
        if cls.__module__ != __name__ or not cls._dims or cls._mode == "circular":
            return
        told = f"`padding`, dtypes and errors are those of CircularPad{cls._dims}d."
        if cls._mode == "constant":
            least = ("any number of", "at least two", "at least three")[cls._dims - 1]
            told = f"As CircularPad{cls._dims}d, for {least} dimensions; so are dtypes and errors."
        _tell(cls, told)

    def __init__(self, padding: Any) -> None:
        super().__init__()
        widths = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)
        if len(widths) != 2 * self._dims:
            raise ValueError(
                f"{type(self).__name__}: expected 1 or {2 * self._dims} numbers, got {padding}"
            )
        self.padding = widths

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad, mode="constant"):
    """Pads with a number."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd, dims=1):
    """[n, c, l] with entries of a number around it.

    >>> weft.nn.ConstantPad1d(1, 9)(weft.tensor([[1, 2, 3]]))
    tensor([[9, 1, 2, 3, 9]])
    """


class ConstantPad2d(_ConstantPadNd, dims=2):
    """[n, c, h, w] with entries of a number around it.

    >>> weft.nn.ConstantPad2d((1, 0, 0, 1), 9)(weft.tensor([[[1, 2]]]))
    tensor([[[9, 1, 2],
             [9, 9, 9]]])
    """


class ConstantPad3d(_ConstantPadNd, dims=3):
    """[n, c, d, h, w] with entries of a number around it.

    >>> weft.nn.ConstantPad3d(1, 9)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """[n, c, l] with zeros around it.

    >>> weft.nn.ZeroPad1d(1)(weft.tensor([[1, 2, 3]]))
    tensor([[0, 1, 2, 3, 0]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """[n, c, h, w] with zeros around it.

    >>> weft.nn.ZeroPad2d((1, 0, 0, 1))(weft.tensor([[[1, 2]]]))
    tensor([[[0, 1, 2],
             [0, 0, 0]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """[n, c, d, h, w] with zeros around it.

    >>> weft.nn.ZeroPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """


class _ReflectionPadNd(_Pad, mode="reflect"):
    """What such layers have in common."""


class ReflectionPad1d(_ReflectionPadNd, dims=1):
    """[n, c, l] mirrored at its ends.

    >>> weft.nn.ReflectionPad1d((2, 1))(weft.tensor([[1, 2, 3]]))
    tensor([[3, 2, 1, 2, 3, 2]])
    """


class ReflectionPad2d(_ReflectionPadNd, dims=2):
    """[n, c, h, w] mirrored at its edges.

    >>> weft.nn.ReflectionPad2d((1, 1, 0, 0))(weft.tensor([[[1, 2, 3]]]))
    tensor([[[2, 1, 2, 3, 2]]])
    """


class ReflectionPad3d(_ReflectionPadNd, dims=3):
    """[n, c, d, h, w] mirrored at its faces.

    >>> weft.nn.ReflectionPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """


class _ReplicationPadNd(_Pad, mode="replicate"):
    """What such layers have in common."""


class ReplicationPad1d(_ReplicationPadNd, dims=1):
    """[n, c, l] with its ends repeated.

    >>> weft.nn.ReplicationPad1d((2, 1))(weft.tensor([[1, 2, 3]]))
    tensor([[1, 1, 1, 2, 3, 3]])
    """


class ReplicationPad2d(_ReplicationPadNd, dims=2):
    """[n, c, h, w] with its edges repeated.

    >>> weft.nn.ReplicationPad2d((1, 1, 0, 0))(weft.tensor([[[1, 2, 3]]]))
    tensor([[[1, 1, 2, 3, 3]]])
    """


class ReplicationPad3d(_ReplicationPadNd, dims=3):
    """[n, c, d, h, w] with its faces repeated.

    >>> weft.nn.ReplicationPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """


class _CircularPadNd(_Pad, mode="circular"):
    """What such layers have in common."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self._dims + 1} or {self._dims + 2} dims, got "
                f"{input.dim()}"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd, dims=1):
    """[n, c, l] gone round.

    `padding` is a number, or one for the left and one for the right. Without n there is one
    dimension less. ValueError for other dims, else as weft.nn.functional.pad.
    Any dtype.

    >>> weft.nn.CircularPad1d((1, 0))(weft.tensor([[1, 2, 3]]))
    tensor([[3, 1, 2, 3]])
    """


class CircularPad2d(_CircularPadNd, dims=2):
    """[n, c, h, w] gone round.

    `padding` is a number, or four: left, right, top, bottom. Without n there is one dimension less.
    ValueError for other dims, else as weft.nn.functional.pad.
    Any dtype.

    >>> weft.nn.CircularPad2d((1, 1, 0, 0))(weft.tensor([[[1, 2, 3]]]))
    tensor([[[3, 1, 2, 3, 1]]])
    """


class CircularPad3d(_CircularPadNd, dims=3):
    """[n, c, d, h, w] gone round.

    `padding` is a number, or six, the last dimension's first. Without n there is one dimension
    less. ValueError for other dims, else as weft.nn.functional.pad.
    Any dtype.

    >>> weft.nn.CircularPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """
