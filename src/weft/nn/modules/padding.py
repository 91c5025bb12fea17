"""Padding layers, one for each way and number of dimensions."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module


class _Pad(Module):
    """Holds the widths: one number for all sides, or two for each dimension, the last first."""

    _mode: str
    _dims: int
    value: float | None = None

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


class _ConstantPad(_Pad):
    """Pads with a number."""

    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """[n, c, l] with entries of a number around it.

    `padding` is that of CircularPad1d, for any number of dimensions.

    >>> weft.nn.ConstantPad1d(1, 9)(weft.tensor([[1, 2, 3]]))
    tensor([[9, 1, 2, 3, 9]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """[n, c, h, w] with entries of a number around it.

    `padding` is that of CircularPad2d, for at least two dimensions.

    >>> weft.nn.ConstantPad2d((1, 0, 0, 1), 9)(weft.tensor([[[1, 2]]]))
    tensor([[[9, 1, 2],
             [9, 9, 9]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """[n, c, d, h, w] with entries of a number around it.

    `padding` is that of CircularPad3d, for at least three dimensions.

    >>> weft.nn.ConstantPad3d(1, 9)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """[n, c, l] with zeros around it.

    `padding` is that of CircularPad1d, for any number of dimensions.

    >>> weft.nn.ZeroPad1d(1)(weft.tensor([[1, 2, 3]]))
    tensor([[0, 1, 2, 3, 0]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """[n, c, h, w] with zeros around it.

    `padding` is that of CircularPad2d, for at least two dimensions.

    >>> weft.nn.ZeroPad2d((1, 0, 0, 1))(weft.tensor([[[1, 2]]]))
    tensor([[[0, 1, 2],
             [0, 0, 0]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """[n, c, d, h, w] with zeros around it.

    `padding` is that of CircularPad3d, for at least three dimensions.

    >>> weft.nn.ZeroPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """


class ReflectionPad1d(_Pad):
    """[n, c, l] mirrored at its ends.

    `padding` and errors are those of CircularPad1d.

    >>> weft.nn.ReflectionPad1d((2, 1))(weft.tensor([[1, 2, 3]]))
    tensor([[3, 2, 1, 2, 3, 2]])
    """

    _mode, _dims = "reflect", 1


class ReflectionPad2d(_Pad):
    """[n, c, h, w] mirrored at its edges.

    `padding` and errors are those of CircularPad2d.

    >>> weft.nn.ReflectionPad2d((1, 1, 0, 0))(weft.tensor([[[1, 2, 3]]]))
    tensor([[[2, 1, 2, 3, 2]]])
    """

    _mode, _dims = "reflect", 2


class ReflectionPad3d(_Pad):
    """[n, c, d, h, w] mirrored at its faces.

    `padding` and errors are those of CircularPad3d.

    >>> weft.nn.ReflectionPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _mode, _dims = "reflect", 3


class ReplicationPad1d(_Pad):
    """[n, c, l] with its ends repeated.

    `padding` and errors are those of CircularPad1d.

    >>> weft.nn.ReplicationPad1d((2, 1))(weft.tensor([[1, 2, 3]]))
    tensor([[1, 1, 1, 2, 3, 3]])
    """

    _mode, _dims = "replicate", 1


class ReplicationPad2d(_Pad):
    """[n, c, h, w] with its edges repeated.

    `padding` and errors are those of CircularPad2d.

    >>> weft.nn.ReplicationPad2d((1, 1, 0, 0))(weft.tensor([[[1, 2, 3]]]))
    tensor([[[1, 1, 2, 3, 3]]])
    """

    _mode, _dims = "replicate", 2


class ReplicationPad3d(_Pad):
    """[n, c, d, h, w] with its faces repeated.

    `padding` and errors are those of CircularPad3d.

    >>> weft.nn.ReplicationPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _mode, _dims = "replicate", 3


class CircularPad1d(_Pad):
    """[n, c, l] gone round.

    `padding` is a number, or one for the left and one for the right. Without n there is one
    dimension less. Raises as weft.nn.functional.pad.

    >>> weft.nn.CircularPad1d((1, 0))(weft.tensor([[1, 2, 3]]))
    tensor([[3, 1, 2, 3]])
    """

    _mode, _dims = "circular", 1


class CircularPad2d(_Pad):
    """[n, c, h, w] gone round.

    `padding` is a number, or four: left, right, top, bottom. Without n there is one dimension less.
    Raises as weft.nn.functional.pad.

    >>> weft.nn.CircularPad2d((1, 1, 0, 0))(weft.tensor([[[1, 2, 3]]]))
    tensor([[[3, 1, 2, 3, 1]]])
    """

    _mode, _dims = "circular", 2


class CircularPad3d(_Pad):
    """[n, c, d, h, w] gone round.

    `padding` is a number, or six, the last dimension's first. Without n there is one dimension
    less. Raises as weft.nn.functional.pad.

    >>> weft.nn.CircularPad3d(1)(weft.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _mode, _dims = "circular", 3
