"""Images made larger, smaller, or rearranged: padding, resampling along a dimension, pixels."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_op, body_of, op, ops

op(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    doc="self with pad[0] entries of `value` before and pad[1] after the last dimension, pad[2] "
    "and pad[3] around the one before it, and so on; negative numbers cut off.",
    grad={"self": "grad.constant_pad_nd(negated(pad), 0)"},
    tags=("by_channels",),
    variants="f",
    shape="padded(self, pad)",
    result="self",
)
op(
    "_resample(Tensor self, int dim, Tensor index, Tensor weight) -> Tensor",
    doc="Entry i along `dim` is the sum over t of weight[i, t] times the entry index[i, t].",
    constants=("index", "weight"),
    grad={"self": "_resample_backward(grad, dim, self.size(dim), index, weight)"},
    tags=("by_channels",),
    variants="",
    shape="resized(self, dim, index[0])",
    result="self",
)
backward_op(
    "_resample_backward(Tensor grad_output, int dim, int size, Tensor index, Tensor weight)"
    " -> Tensor",
    doc="The transpose of _resample: each gradient shared out over the entries it came from.",
    constants=("index", "weight"),
    grad={"grad_output": "_resample(grad, dim, index, weight)"},
    shape="resized(grad_output, dim, size)",
    result="grad_output",
)


op(
    "_gather_taps(Tensor self, Tensor index, Tensor weight) -> Tensor",
    doc="Entry (n, c, r) is the sum over t of weight[n, t, r] times self[n, c, index[n, t, r]], "
    "which is 0 at a place of -1.",
    constants=("index",),
    grad={
        "self": "_scatter_taps(grad, index, weight, self.size(2))",
        "weight": "_dot_taps(grad, self, index)",
    },
    variants="",
    shape="resized(self, 2, index[2])",
    result="self",
)
backward_op(
    "_scatter_taps(Tensor grad_output, Tensor index, Tensor weight, int size) -> Tensor",
    doc="The transpose of _gather_taps: each gradient shared out over the entries it came from.",
    constants=("index",),
    grad={
        "grad_output": "_gather_taps(grad, index, weight)",
        "weight": "_dot_taps(grad_output, grad, index)",
    },
    shape="resized(grad_output, 2, size)",
    result="grad_output",
)
backward_op(
    "_dot_taps(Tensor grad_output, Tensor self, Tensor index) -> Tensor",
    doc="Entry (n, t, r) is the sum over c of grad_output[n, c, r] times self[n, c, index[n, t, "
    "r]].",
    constants=("index",),
    grad={
        "grad_output": "_gather_taps(self, index, grad)",
        "self": "_scatter_taps(grad_output, index, grad, self.size(2))",
    },
    shape="index",
    result="grad_output",
)


@body_of("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", variants="f")
def _pixel_shuffle(self: Any, upscale_factor: Any) -> Any:
    """(*, C r^2, H, W) as (*, C, H r, W r): channels become pixels."""
    ops.check(self.dim() >= 3, "pixel_shuffle: expected at least 3 dims, got shape ", self.shape)
    ops.check(
        upscale_factor > 0, "pixel_shuffle: expected upscale_factor > 0, got ", upscale_factor
    )
    ops.check(
        self.size(-3) % upscale_factor == 0
        and self.size(-3) // upscale_factor % upscale_factor == 0,
        "pixel_shuffle: expected channels divisible by the square of ", upscale_factor,
        ", got shape ", self.shape,
    )  # fmt: skip
    lead = self.shape[:-3]
    c, h, w = self.size(-3) // upscale_factor // upscale_factor, self.size(-2), self.size(-1)
    parts = self.reshape([ops.product(lead), c, upscale_factor, upscale_factor, h, w])
    turned = parts.permute([0, 1, 4, 2, 5, 3])
    return turned.reshape(lead + [c, h * upscale_factor, w * upscale_factor])


@body_of("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", variants="f")
def _pixel_unshuffle(self: Any, downscale_factor: Any) -> Any:
    """(*, C, H r, W r) as (*, C r^2, H, W): pixels become channels."""
    ops.check(self.dim() >= 3, "pixel_unshuffle: expected at least 3 dims, got shape ", self.shape)
    ops.check(
        downscale_factor > 0, "pixel_unshuffle: expected downscale_factor > 0, got ",
        downscale_factor,
    )  # fmt: skip
    ops.check(
        self.size(-2) % downscale_factor == 0 and self.size(-1) % downscale_factor == 0,
        "pixel_unshuffle: expected H and W divisible by ", downscale_factor, ", got shape ",
        self.shape,
    )  # fmt: skip
    lead = self.shape[:-3]
    c, h, w = self.size(-3), self.size(-2) // downscale_factor, self.size(-1) // downscale_factor
    parts = self.reshape([ops.product(lead), c, h, downscale_factor, w, downscale_factor])
    turned = parts.permute([0, 1, 3, 5, 2, 4])
    return turned.reshape(lead + [c * downscale_factor * downscale_factor, h, w])


@body_of("channel_shuffle(Tensor self, int groups) -> Tensor", variants="f")
def _channel_shuffle(self: Any, groups: Any) -> Any:
    """The channels (dimension 1) of the groups, taken in turn."""
    ops.check(self.dim() > 2, "channel_shuffle: expected at least 3 dims, got shape ", self.shape)
    ops.check(
        groups > 0 and self.size(1) % groups == 0,
        "channel_shuffle: expected channels divisible by groups, got shape ", self.shape,
        " and groups ", groups,
    )  # fmt: skip
    rest = ops.product(self.shape[2:])
    parts = self.reshape([self.size(0), groups, self.size(1) // groups, rest])
    return parts.transpose(1, 2).reshape(self.shape)
