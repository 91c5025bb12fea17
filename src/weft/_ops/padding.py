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
)


_GRID = "int mode, int padding, bool align_corners, int[] order) -> Tensor"

op(
    f"_sample_grid(Tensor self, Tensor grid, {_GRID}",
    doc="Images (n, c, h, w) at the places of a grid (n, h', w', 2), or with a depth more; the "
    "weights of the pixels differentiated order[i] times by the i-th coordinate.",
    grad={
        "self": "_spread_on_grid(grad, grid, self.shape, mode, padding, align_corners, order)",
        "grid": "_grid_gradient(grad, self, grid, mode, padding, align_corners, order)",
    },
    shape="[self[0], self[1], *grid[1:-1]]",
    result="self",
)
backward_op(
    f"_spread_on_grid(Tensor grad_output, Tensor grid, int[] input_size, {_GRID}",
    doc="The transpose of _sample_grid: each gradient shared out over the pixels it came from.",
    grad={
        "grad_output": "_sample_grid(grad, grid, mode, padding, align_corners, order)",
        "grid": "_grid_gradient(grad_output, grad, grid, mode, padding, align_corners, order)",
    },
    shape="input_size",
    result="grad_output",
)
backward_op(
    f"_grid_gradient(Tensor grad_output, Tensor self, Tensor grid, {_GRID}",
    doc="The gradient of _sample_grid for the grid.",
    tags=("composite",),
    shape="grid",
    result="grid",
)


for _form in ("", "_2d", "_3d"):
    op(
        f"grid_sampler{_form}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
        "bool align_corners) -> Tensor",
        doc="nn.functional.grid_sample with modes by their places: bilinear, nearest, bicubic; "
        "zeros, border, reflection.",
        compose="_sample_grid(input, grid, interpolation_mode, padding_mode, align_corners, "
        "[0, 0, 0])",
        variants="f",
        shape="[input[0], input[1], *grid[1:-1]]",
        result="input",
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
    turned = parts.permute([0, 1, 4, 2, 5, 3]).clone(memory_format=0)  # never a view of self
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
    turned = parts.permute([0, 1, 3, 5, 2, 4]).clone(memory_format=0)
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
    laid = self.contiguous() if self.dim() == 3 else self  # images keep their layout
    parts = laid.reshape([self.size(0), groups, self.size(1) // groups, rest])
    shuffled = parts.transpose(1, 2).reshape(self.shape)
    # One group, and groups of one channel, stay in place, as a view.
    return shuffled.clone() if groups == 1 or groups == self.size(1) else shuffled
