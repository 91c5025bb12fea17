"""Layers: products, convolutions, pools, norms, resampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft._runtime.public import weft
from weft.onnx._elements import common
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping

# Products -----------------------------------------------------------------------------------------


mapping("mm", "bmm", "matmul", "mv", "dot")(lambda g, a, b: g.op("MatMul", *common(g, a, b)))
mapping("inner")(
    lambda g, a, b: (
        _tensordot(g, a, b, [-1], [-1]) if a.rank and b.rank else g.call("mul.Tensor", a, b)
    )
)
mapping("linalg_det")(lambda g, x: g.op("Det", x))


@mapping("cross", "linalg_cross")
def _cross(g: Any, a: Symbol, b: Symbol, dim: Any = -1) -> Any:
    x, y = common(g, a, b)
    dim = next(i for i, n in enumerate(x.shape) if n == 3) if dim is None else dim
    (a, b), (c, d) = (
        [g.call("roll", each, [shift], [dim]) for shift in (-1, -2)] for each in (x, y)
    )
    return a * d - b * c


@mapping("linear")
def _linear(g: Any, x: Symbol, weight: Symbol, bias: Any = None) -> Any:
    if x.sizes is not None and len(x.sizes) == 2 and x.dtype == weft.float32:
        return g.op("Gemm", x, weight, bias, transB=1)
    turned = g.call("t", weight) if weight.rank == 2 else weight
    made = g.op("MatMul", x, turned)
    return made if bias is None else g.op("Add", made, bias)


@mapping("addmm")
def _addmm(g: Any, x: Symbol, a: Symbol, b: Symbol, beta: Any = 1, alpha: Any = 1) -> Any:
    if x.is_floating_point():
        return g.op("Gemm", a, b, x, alpha=alpha, beta=beta)
    return _baddbmm(g, x, a, b, beta, alpha)


@mapping("baddbmm")
def _baddbmm(g: Any, x: Symbol, a: Symbol, b: Symbol, beta: Any = 1, alpha: Any = 1) -> Any:
    made = g.op("MatMul", a, b)
    return (made if alpha == 1 else made * alpha) + (x if beta == 1 else x * beta)


@mapping("einsum")
def _einsum(g: Any, equation: str, tensors: Any, path: Any = None) -> Any:
    return g.op("Einsum", *common(g, *tensors), equation=equation)


@mapping("tensordot")
def _tensordot(g: Any, a: Symbol, b: Symbol, dims_a: Any, dims_b: Any) -> Any:
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(a.rank)]
    right = [next(letters) for _ in range(b.rank)]
    for i, j in zip(g.dims(a, dims_a) if dims_a else [], g.dims(b, dims_b) if dims_b else []):
        right[j] = left[i]
    shared = set(left) & set(right)
    rest = [each for each in (*left, *right) if each not in shared]
    return _einsum(g, f"{''.join(left)},{''.join(right)}->{''.join(rest)}", [a, b])


@mapping("_attention")
def _attention(
    g: Any, query: Symbol, key: Symbol, value: Symbol, mask: Any, is_causal: bool, scale: float
) -> Any:
    """Products and a softmax: engines find attention in them."""
    scores = g.call("matmul", query, g.call("transpose.int", key, -2, -1))
    scores = g.call("mul.Scalar", scores, scale)
    if is_causal:
        seen = g.call("tril", g.call("ones_like", scores, weft.bool))
        scores = g.call("masked_fill", scores, g.op("Not", seen), -math.inf)
    if mask is None:
        return g.call("matmul", g.call("softmax.int", scores, -1), value)
    if mask.dtype == weft.bool:
        scores = g.call("masked_fill", scores, g.op("Not", mask), -math.inf)
    else:
        scores = g.call("add.Tensor", scores, mask, 1)
    blind = g.call("all.dim", g.call("eq.Scalar", scores, -math.inf), -1, True)
    weights = g.call("masked_fill", g.call("softmax.int", scores, -1), blind, 0)
    return g.call("matmul", weights, value)


# Convolutions -------------------------------------------------------------------------------------


def _conv(g: Any, x: Symbol, weight: Symbol, bias: Any, stride: Any, pads: Any, **rest: Any) -> Any:
    """Conv. `pads`: at both ends, or at the beginnings and then at the ends."""
    options = _window(weight.shape[2:], stride, pads)
    return _of_samples(g, "Conv", weight.rank, x, weight, bias, **options, **rest)


def _window(kernel: Any, stride: Any, pads: Any) -> dict[str, Any]:
    """The attributes of what goes over windows."""
    both = list(pads) if len(pads) == 2 * len(kernel) else [*pads, *pads]
    return {"kernel_shape": list(kernel), "strides": list(stride or kernel), "pads": both}


def _of_samples(g: Any, kind: str, rank: int, x: Symbol, *inputs: Any, **attributes: Any) -> Any:
    """An operator of several samples at once, of one too."""
    if x.rank != rank - 1:
        return g.op(kind, x, *inputs, **attributes)
    made = g.op(kind, g.unsqueeze(x, 0), *inputs, **attributes)
    several = isinstance(made, (list, tuple))
    return tuple(g.squeeze(each, 0) for each in made) if several else g.squeeze(made, 0)


@mapping("conv2d", "conv1d", "conv2d.padding", "conv1d.padding")
def _conv_nd(
    g: Any, x: Symbol, w: Symbol, b: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    pads = _pads_of(padding, w.shape[2:], dilation) if isinstance(padding, str) else padding
    return _conv(g, x, w, b, stride, pads, dilations=list(dilation), group=groups)


def _pads_of(rule: str, kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """At the beginnings and at the ends; "same" has the odd one at the end. Engines refuse ONNX's
    own rule for dilated kernels."""
    both = [(size - 1) * step if rule == "same" else 0 for size, step in zip(kernel, dilation)]
    return [*(pad // 2 for pad in both), *(pad - pad // 2 for pad in both)]


@mapping("weft.nn._window_functions.conv3d")
def _conv3d(
    g: Any, x: Symbol, w: Symbol, b: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    stride, dilation = _each(stride, 3), _each(dilation, 3)
    pads = padding if isinstance(padding, str) else _each(padding, 3)
    return _conv_nd(g, x, w, b, stride, pads, dilation, groups)


@mapping("conv_transpose2d.input")
def _conv_transpose(
    g: Any, x: Symbol, w: Symbol, b: Any, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any,
) -> Any:  # fmt: skip
    return _of_samples(
        g, "ConvTranspose", w.rank, x, w, b, **_window(w.shape[2:], stride, padding),
        output_padding=list(output_padding), dilations=list(dilation), group=groups,
    )  # fmt: skip


def _each(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


# Pools --------------------------------------------------------------------------------------------


mapping("max_pool2d")(lambda g, *args: _max_pooled(g, *args, outputs=1))


@mapping("max_pool2d_with_indices")
def _max_pool_with_indices(
    g: Any, x: Symbol, size: Any, stride: Any, pad: Any, dilation: Any, ceil: bool
) -> Any:
    values, indices = _max_pooled(g, x, size, stride, pad, dilation, ceil, outputs=2)
    # ONNX numbers the elements of the whole tensor, PyTorch those of one plane.
    height, width = x.shape[-2:]
    return values, g.op("Mod", indices, g.symbol(height * width))


def _max_pooled(
    g: Any, x: Symbol, size: Any, stride: Any, pad: Any, dilation: Any, ceil: bool, *, outputs: int
) -> Any:
    options = {"dilations": list(dilation), "ceil_mode": ceil, "outputs": outputs}
    return _of_samples(g, "MaxPool", 4, x, **_window(size, stride, pad), **options)


@mapping("avg_pool2d")
def _avg_pool(
    g: Any, x: Symbol, size: Any, stride: Any, pad: Any, ceil: bool, counts_pad: bool, divisor: Any
) -> Any:
    if divisor is not None and (ceil or (any(pad) and not counts_pad)):
        raise ValueError(f"avg_pool2d: expected divisor_override without them, got {divisor}")
    options = {"ceil_mode": ceil, "count_include_pad": counts_pad}
    made = _of_samples(g, "AveragePool", 4, x, **_window(size, stride, pad), **options)
    return made if divisor is None else made * (math.prod(size) / divisor)


@mapping("adaptive_avg_pool2d")
def _adaptive_avg_pool(g: Any, x: Symbol, out: Any) -> Any:
    if list(out) == [1, 1]:
        return _of_samples(g, "GlobalAveragePool", 4, x)
    for axis, count in zip((x.rank - 2, x.rank - 1), out):
        size = x.size(axis)
        if isinstance(size, Symbol):
            raise ValueError(f"adaptive_avg_pool2d: expected known sizes, got {x}")
        x = g.call("transpose.int", x, axis, -1)
        x = g.op("MatMul", x, g.constant(_windows(size, count, x.dtype)))
        x = g.call("transpose.int", x, axis, -1)
    return x


def _windows(size: int, count: int, dtype: Any) -> Any:
    """The matrix that averages `size` elements in `count` windows."""
    made = weft.zeros(size, count, dtype=dtype)
    for i in range(count):
        first, end = i * size // count, -(-(i + 1) * size // count)
        made[first:end, i] = 1 / (end - first)
    return made


# Norms --------------------------------------------------------------------------------------------


@mapping("batch_norm")
def _batch_norm(
    g: Any, x: Symbol, weight: Any, bias: Any, mean: Any, var: Any, training: Any, momentum: float,
    eps: float, cudnn: Any = True,
) -> Any:  # fmt: skip
    channels = x.size(1)
    known = not isinstance(channels, Symbol)
    weight = g.constant(weft.ones(channels, dtype=x.dtype)) if weight is None and known else weight
    bias = g.constant(weft.zeros(channels, dtype=x.dtype)) if bias is None and known else bias
    if training or mean is None:
        return _batch_norm_of_batch(g, x, weight, bias, eps)
    return g.op("BatchNormalization", x, weight, bias, mean, var, epsilon=eps)


def _batch_norm_of_batch(g: Any, x: Symbol, weight: Symbol, bias: Symbol, eps: float) -> Any:
    """By the statistics of the batch."""
    dims = [d for d in range(x.rank) if d != 1]
    across = [1, -1, *[1] * (x.rank - 2)]
    made = _normed(g, x, dims, eps)
    return made * g.reshape(weight, across) + g.reshape(bias, across)


def _normed(g: Any, x: Symbol, dims: list[int], eps: float) -> Symbol:
    mean = g.call("mean.dim", x, dims, True)
    gap = x - mean
    var = g.call("mean.dim", gap * gap, dims, True)
    return gap / g.op("Sqrt", var + eps)


@mapping("layer_norm")
def _layer_norm(
    g: Any, x: Symbol, sizes: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn: Any = True,
) -> Any:  # fmt: skip
    known = not any(isinstance(each, Symbol) for each in sizes)
    if weight is None and not known:
        return _normed(g, x, list(range(x.rank - len(sizes), x.rank)), eps)
    weight = g.constant(weft.ones(*sizes, dtype=x.dtype)) if weight is None else weight
    made = g.op("LayerNormalization", x, weight, bias, axis=-len(sizes), epsilon=eps)
    return g.sized(made, x.shape)


@mapping("group_norm")
def _group_norm(
    g: Any, x: Symbol, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn: Any = True,
) -> Any:  # fmt: skip
    one, zero = (g.constant(weft.full((groups,), each, dtype=x.dtype)) for each in (1.0, 0.0))
    rows = g.reshape(x, [x.size(0), groups, -1])
    made = g.reshape(g.op("InstanceNormalization", rows, one, zero, epsilon=eps), x.shape)
    across = [-1, *[1] * (x.rank - 2)]
    made = made if weight is None else made * g.reshape(weight, across)
    return made if bias is None else made + g.reshape(bias, across)


# Losses -------------------------------------------------------------------------------------------

_REDUCTIONS = ("none", "mean", "sum")


@mapping("nll_loss", "nll_loss_nd", "nll_loss2d")
def _nll_loss(
    g: Any, x: Symbol, target: Symbol, weight: Any = None, reduction: int = 1, ignored: int = -100
) -> Any:
    single = x.rank == 1
    x, target = (g.unsqueeze(x, 0), g.unsqueeze(target, 0)) if single else (x, target)
    kind = _REDUCTIONS[reduction]
    made = g.op(
        "NegativeLogLikelihoodLoss", x, target, weight, reduction=kind, ignore_index=ignored
    )
    return g.squeeze(made, 0) if single and kind == "none" else made


# Distances --------------------------------------------------------------------------------------


@mapping("_distances")
def _distances(g: Any, x: Symbol, y: Symbol, p: float) -> Any:
    difference = g.call("unsqueeze", x, -2) - g.call("unsqueeze", y, -3)
    return g.call("linalg_vector_norm", difference, p, [-1])


# Resampling ---------------------------------------------------------------------------------------


@mapping("_resample")
def _resample(g: Any, x: Symbol, dim: int, index: Symbol, weight: Symbol) -> Any:
    """Sums of elements along a dimension at [out, taps] places, by their weights."""
    dim = g.dim(x, dim)
    taken = g.op("Gather", x, index, axis=dim)
    weight = g.cast(weight, x.dtype)
    shape = [*weight.shape, *[1] * (x.rank - dim - 1)]
    return g.call("sum.dim_IntList", taken * g.reshape(weight, shape), [dim + 1])


@mapping("grid_sampler", "grid_sampler_2d")
def _grid_sampler(
    g: Any, x: Symbol, grid: Symbol, mode: int, padding: int, align_corners: bool
) -> Any:
    names = ["bilinear", "nearest", "bicubic"] if g.opset < 20 else ["linear", "nearest", "cubic"]
    if x.rank == 5 and g.opset < 20:
        raise ValueError(
            f"grid_sample: expected an opset of at least 20 for volumes, got {g.opset}"
        )
    return g.op(
        "GridSample", x, grid, mode=names[mode], align_corners=int(align_corners),
        padding_mode=["zeros", "border", "reflection"][padding],
    )  # fmt: skip


_MODES = {
    "nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
    "trilinear": "linear", "bicubic": "cubic",
}  # fmt: skip


@mapping("weft.nn._resampling_functions.interpolate")
def _interpolate(
    g: Any, x: Symbol, size: Any = None, scale: Any = None, mode: str = "nearest",
    align_corners: Any = None, recompute: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    spatial = x.rank - 2
    if mode == "area":
        if spatial != 2 or size is None:
            raise ValueError(f"interpolate: expected sizes of images for area, got {size}, {scale}")
        return g.call("adaptive_avg_pool2d", x, _each(size, 2))
    if mode not in _MODES or (antialias and g.opset < 18):
        raise ValueError(f"interpolate: expected a mode of opset {g.opset}, got {mode!r}")
    sizes = scales = None
    if size is not None:
        sizes = g.op("Concat", g.ints(x.shape[:2]), g.ints(_each(size, spatial)), axis=0)
    else:
        factors = _each(scale, spatial)
        if any(isinstance(each, Symbol) for each in factors):
            raise ValueError(f"interpolate: expected known scales, got {scale}")
        scales = g.constant(weft.tensor([1.0, 1.0, *map(float, factors)]))
    transform = "align_corners" if align_corners else "half_pixel"
    if _MODES[mode] == "linear" and not align_corners:
        transform = "pytorch_half_pixel"
    if mode == "nearest":
        transform = "asymmetric"
    return g.op(
        "Resize", x, None, scales, sizes, mode=_MODES[mode],
        coordinate_transformation_mode=transform,
        nearest_mode="round_prefer_ceil" if mode == "nearest-exact" else "floor",
        cubic_coeff_a=-0.5 if antialias and mode == "bicubic" else -0.75,
        antialias=1 if antialias else None,
    )  # fmt: skip
