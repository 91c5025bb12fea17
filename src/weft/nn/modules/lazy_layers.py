"""Layers that take the number of their input's features or channels from the first input."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn.modules._layer import _tell
from weft.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm
from weft.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
    _ConvTransposeNd,
)
from weft.nn.modules.instancenorm import (
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _InstanceNorm,
)
from weft.nn.modules.lazy import LazyModuleMixin as _LazyModuleMixin
from weft.nn.modules.linear import Linear
from weft.nn.parameter import UninitializedBuffer, UninitializedParameter


class _Lazy(_LazyModuleMixin):
    """What lazy layers share: parameters that wait until an input tells the number `_counted`."""

    _counted: str
    weight: Any
    bias: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__ and not cls.__name__.startswith("_"):
            cls.cls_to_become = layer = cls.__bases__[-1]
            _tell(cls, f"Shapes, dtypes and errors are those of {layer.__name__}.")

    def _count(self, input: Tensor) -> int:
        """The number, of the first input."""
        raise NotImplementedError

    def _shapes(self) -> dict[str, Any]:
        """The shapes of what waits, once there is the number."""
        raise NotImplementedError

    def _wait_for_input(self, bias: bool, device: Any, dtype: Any) -> None:
        """Puts uninitialized parameters in the places of those of an empty layer."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """As the layer without Lazy; does nothing before there are parameters."""
        if not self.has_uninitialized_params() and getattr(self, self._counted) != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters, and running statistics, for inputs like this one."""
        waiting = self.has_uninitialized_params()
        if waiting or getattr(self, self._counted) == 0:  # they may come from a state_dict
            setattr(self, self._counted, self._count(input))
        if waiting:
            for name, shape in self._shapes().items():
                if getattr(self, name) is not None:
                    getattr(self, name).materialize(shape)
            self.reset_parameters()


class LazyLinear(_Lazy, Linear):
    """Linear with in_features of the first input's last size.

    >>> layer = weft.nn.LazyLinear(4)
    >>> layer(weft.ones(2, 3)).shape, layer
    (torch.Size([2, 4]), Linear(in_features=3, out_features=4, bias=True))
    """

    _counted = "in_features"

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.out_features = out_features
        self._wait_for_input(bias, device, dtype)

    def _count(self, input: Tensor) -> int:
        return (input if self.has_uninitialized_params() else self.weight).shape[-1]

    def _shapes(self) -> dict[str, Any]:
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConvNd(_Lazy, _ConvNd):
    """What lazy convolutions share, transposed ones too."""

    _counted = "in_channels"

    def _shapes(self) -> dict[str, Any]:
        return {"weight": self._weight_shape(), "bias": (self.out_channels,)}

    def _count(self, input: Tensor) -> int:
        name, dims = type(self).__name__, self._dims
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"{name}: expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input, got "
                f"size {tuple(input.shape)}"
            )
        channels = input.shape[-dims - 1]
        if channels % self.groups:
            raise ValueError(
                f"{name}: expected in_channels that groups divide, got {channels} for "
                f"{self.groups} groups"
            )
        return channels


class _LazyConv(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (stride, padding, dilation, groups, False, padding_mode, device, dtype)
        super().__init__(0, 0, kernel_size, *options)
        self.out_channels = out_channels
        self._wait_for_input(bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d with in_channels of the first input.

    >>> weft.nn.LazyConv1d(4, 3)(weft.ones(2, 5, 8)).shape
    torch.Size([2, 4, 6])
    """


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d with in_channels of the first input.

    >>> weft.nn.LazyConv2d(4, 3, padding=1)(weft.ones(2, 5, 8, 8)).shape
    torch.Size([2, 4, 8, 8])
    """


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d with in_channels of the first input.

    >>> weft.nn.LazyConv3d(4, 2)(weft.ones(1, 5, 3, 3, 3)).shape
    torch.Size([1, 4, 2, 2, 2])
    """


class _LazyConvTranspose(_LazyConvNd, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (output_padding, groups, False, dilation, padding_mode, device, dtype)
        super().__init__(0, 0, kernel_size, stride, padding, *options)
        self.out_channels = out_channels
        self._wait_for_input(bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d with in_channels of the first input.

    >>> weft.nn.LazyConvTranspose1d(4, 2, stride=2)(weft.ones(1, 3, 5)).shape
    torch.Size([1, 4, 10])
    """


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d with in_channels of the first input.

    >>> weft.nn.LazyConvTranspose2d(4, 2, stride=2)(weft.ones(1, 3, 5, 5)).shape
    torch.Size([1, 4, 10, 10])
    """


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d with in_channels of the first input.

    >>> weft.nn.LazyConvTranspose3d(4, 2)(weft.ones(1, 3, 2, 2, 2)).shape
    torch.Size([1, 4, 3, 3, 3])
    """


class _LazyNorm(_Lazy, _BatchNorm):
    """What lazy normalisations share."""

    _counted = "num_features"
    running_mean: Any
    running_var: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self._wait_for_input(bias, device, dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _C.tensor(0, dtype=_C.int64, device=device)

    def _count(self, input: Tensor) -> int:
        self._check_input_dim(input)
        alone = isinstance(self, _InstanceNorm) and input.dim() == min(self._input_dims)
        return input.shape[0 if alone else 1]

    def _shapes(self) -> dict[str, Any]:
        named = ("weight", "bias", "running_mean", "running_var")
        return dict.fromkeys(named, (self.num_features,))


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d with num_features of the first input.

    >>> norm = weft.nn.LazyBatchNorm1d()
    >>> norm(weft.ones(2, 3)).shape, norm.running_mean
    (torch.Size([2, 3]), tensor([0.1000, 0.1000, 0.1000]))
    """


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d with num_features of the first input.

    >>> weft.nn.LazyBatchNorm2d()(weft.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d with num_features of the first input.

    >>> weft.nn.LazyBatchNorm3d()(weft.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """


class _LazyInstanceNorm(_LazyNorm, _InstanceNorm):
    """What lazy instance normalisations share."""


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """InstanceNorm1d with num_features of the first input; learns and tracks unless told not to.

    >>> weft.nn.LazyInstanceNorm1d()(weft.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """InstanceNorm2d with num_features of the first input; learns and tracks unless told not to.

    >>> weft.nn.LazyInstanceNorm2d()(weft.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """InstanceNorm3d with num_features of the first input; learns and tracks unless told not to.

    >>> weft.nn.LazyInstanceNorm3d()(weft.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """
