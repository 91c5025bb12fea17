"""The stateless functions of neural networks: thin wrappers of table operators.

Names, argument order and defaults are PyTorch's. What PyTorch exposes as a plain operator is the
operator itself here, without a Python frame around it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.matrices import grouped_mm as grouped_mm
from weft._functions.out import casting_takes_out as _casting_takes_out
from weft._functions.out import takes_out as _takes_out
from weft._functions.padding import *  # noqa: F403
from weft._runtime import lazy as _lazy
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.torch_function import declare as _declare
from weft.nn import _reduction as _Reduction  # noqa: F401  (libraries find it here)
from weft.nn._activation_functions import *  # noqa: F403
from weft.nn._adaptive_pooling_functions import *  # noqa: F403
from weft.nn._adaptive_pooling_functions import _wanted
from weft.nn._alignment_functions import *  # noqa: F403
from weft.nn._attention_functions import *  # noqa: F403
from weft.nn._dropout_functions import *  # noqa: F403
from weft.nn._embedding_functions import *  # noqa: F403
from weft.nn._fractional_pooling_functions import *  # noqa: F403
from weft.nn._loss_functions import *  # noqa: F403
from weft.nn._margin_functions import *  # noqa: F403
from weft.nn._norm_functions import *  # noqa: F403
from weft.nn._pooling_functions import *  # noqa: F403
from weft.nn._resampling_functions import *  # noqa: F403
from weft.nn._unpooling_functions import *  # noqa: F403
from weft.nn._window_functions import *  # noqa: F403

_nn = _C._nn
_PARTS = (
    "_canonical_mask",
    "_in_projection",
    "_in_projection_packed",
    "_mha_shape_check",
    "_none_or_dtype",
)
__getattr__ = _lazy.names("weft.nn.functional", dict.fromkeys(_PARTS, "weft.nn._attention_parts"))


def _find(name: str) -> Any:
    """The operator `name`, whether its row puts it into weft or only under nn.functional."""
    return getattr(_nn, name, None) or getattr(_C, name)


linear = _find("linear")
conv1d = _find("conv1d")
conv2d = _find("conv2d")
conv_transpose2d = _find("conv_transpose2d")
softplus = _find("softplus")
gelu = _find("gelu")
one_hot = _find("one_hot")
pixel_shuffle = _find("pixel_shuffle")
pixel_unshuffle = _find("pixel_unshuffle")
channel_shuffle = native_channel_shuffle = _find("channel_shuffle")
relu_ = _find("relu_")
elu_ = _find("elu_")
hardtanh_ = _find("hardtanh_")
leaky_relu_ = _find("leaky_relu_")
_relu = _find("relu")
_silu, _silu_ = _find("silu"), _find("silu_")
_leaky_relu = _find("leaky_relu")
_softmax = _find("softmax")
_log_softmax = _find("log_softmax")
_dropout = _find("dropout")
_layer_norm = _find("layer_norm")
_batch_norm = _find("batch_norm")
_avg_pool2d = _find("avg_pool2d")
_max_pool2d = _find("max_pool2d")
_max_pool2d_with_indices = _find("max_pool2d_with_indices")
_adaptive_avg_pool2d = _find("adaptive_avg_pool2d")

# Activations ----------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0), element by element; NaN stays NaN.

    Any shape and dtype; inplace writes into `input`. RuntimeError for bools and complex numbers.

    >>> weft.nn.functional.relu(weft.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else _relu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input); floating dtypes.

    Any shape; integers raise RuntimeError. inplace writes into `input`.

    >>> weft.nn.functional.silu(weft.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _silu_(input) if inplace else _silu(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where positive, otherwise negative_slope * input; floating dtypes.

    Any shape; other dtypes raise RuntimeError. inplace writes into `input`.

    >>> weft.nn.functional.leaky_relu(weft.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    if inplace:
        return leaky_relu_(input, negative_slope)
    return _leaky_relu(input, negative_slope)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent, element by element.

    Any shape; integers become the default dtype.

    >>> weft.nn.functional.tanh(weft.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)), element by element.

    Any shape; integers become the default dtype.

    >>> weft.nn.functional.sigmoid(weft.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """
    return input.sigmoid()


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """exp(input) / sum(exp(input)) along `dim`; `dtype` converts first.

    Without `dim`: along the first dimension of 0-, 1- and 3-d input, else the second, with a
    UserWarning.

    The result has the shape of `input`. Raises IndexError for a dimension that is not there,
    RuntimeError for integers without `dtype`.

    >>> weft.nn.functional.softmax(weft.tensor([[0.0, 0.0], [1.0, 3.0]]), 1)
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return _softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """softmax of -input.

    Arguments and errors are those of softmax. Floating dtypes.

    >>> weft.nn.functional.softmin(weft.tensor([1.0, 3.0]), 0)
    tensor([0.8808, 0.1192])
    """
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return _softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """log(softmax(input)) along `dim`, computed without overflow; `dim` as in softmax.

    Arguments and errors are those of softmax. Floating dtypes.

    >>> weft.nn.functional.log_softmax(weft.tensor([1.0, 3.0]), 0)
    tensor([-2.1269, -0.1269])
    """
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return _log_softmax(input, dim, dtype)


def _softmax_dim(function: str, dims: int, stacklevel: int) -> int:
    """The dimension that PyTorch takes where none is given."""
    warnings.warn(
        f"Implicit dimension choice for {function} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if dims in (0, 1, 3) else 1


# Layers ---------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last len(normalized_shape) dimensions to mean 0 and variance 1.

    weight and bias have the shape normalized_shape and act after that. Floating dtypes; the result
    has the shape of `input`. Raises RuntimeError where `input` ends otherwise.

    >>> weft.nn.functional.layer_norm(weft.tensor([[1.0, 3.0], [2.0, 6.0]]), [2], eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel (dimension 1) over all other dimensions.

    In training the statistics are those of the batch and the running ones move towards them.

    `input` is [n, c] or [n, c, ...], and so is the result; the others are [c] or None. Raises
    ValueError for a negative eps, and in training for 0, a single value a channel, or one of the
    running statistics without the other; RuntimeError
    without running statistics otherwise. All are of one dtype.

    >>> mean, var = weft.zeros(1), weft.ones(1)
    >>> weft.nn.functional.batch_norm(weft.tensor([[1.0], [3.0]]), mean, var, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean
    tensor([0.2000])
    """
    if training and input.numel() and input.numel() == input.size(1):
        raise ValueError(
            "batch_norm: expected more than 1 value per channel when training, "
            f"got input size {input.size()}"
        )
    if eps < 0 or (training and eps == 0):
        wanted = "eps > 0 when training" if training else "eps >= 0"
        raise ValueError(f"batch_norm: expected {wanted}, got {eps}")
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("batch_norm: expected both running statistics or none, got one")
    return _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


@_takes_out
def avg_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _OptionalInts = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of kernel_size, one every `stride` (None: kernel_size) entries.

    The divisor is the size of the window, with count_include_pad=False what of it lies on the
    input, or divisor_override. (N, C, H, W) or (C, H, W) gives the same number of dimensions.

    Raises RuntimeError for other numbers of dimensions, and for a kernel larger than the padded
    input. The dtype, floating or int64, is that of the input.

    >>> weft.nn.functional.avg_pool2d(weft.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    stride = () if stride is None else stride
    return _avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of input [n, c, h, w]; with return_indices also where it lies.

    A window begins every `stride` (None: kernel_size) entries, its own are `dilation` apart;
    ceil_mode counts windows that end outside. [c, h, w] gives three dimensions. Indices are int64,
    i * w + j. Raises RuntimeError for a kernel larger than the padded input. The dtype is that of
    the input, real.

    >>> weft.nn.functional.max_pool2d(weft.arange(16).reshape(1, 4, 4), 2)
    tensor([[[ 5,  7],
             [13, 15]]])
    """
    stride = () if stride is None else stride
    if return_indices:
        return _max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool2d, and where the maxima lie.

    Arguments, dtypes and errors are those of max_pool2d.

    >>> weft.nn.functional.max_pool2d_with_indices(weft.arange(4).reshape(1, 2, 2), 2)
    (tensor([[[3]]]), tensor([[[3]]]))
    """
    step = () if stride is None else stride
    return _max_pool2d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages input [n, c, h, w] over windows so that the result is [n, c, *output_size].

    None in output_size keeps that size.

    [c, h, w] gives three dimensions. Raises RuntimeError for other numbers of them, ValueError for
    fewer than sizes that are given one by one. The dtype, floating, is that of the input.

    >>> weft.nn.functional.adaptive_avg_pool2d(weft.arange(16.0).reshape(1, 4, 4), (1, 2))
    tensor([[[6.5000, 8.5000]]])
    """
    return _adaptive_avg_pool2d(input, _wanted("adaptive_avg_pool2d", input, output_size, 2))


@_casting_takes_out
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """input divided by its p-norm along `dim` (at least eps); written to `out` where it is given.

    The result has the shape and dtype of `input`. Raises RuntimeError for integers.

    >>> weft.nn.functional.normalize(weft.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps)
    return input / norm if out is None else _C.div(input, norm, out=out)


_declare(
    globals(), ("avg_pool2d", "channel_shuffle", "conv_transpose2d", "gelu", "one_hot", "softplus")
)
