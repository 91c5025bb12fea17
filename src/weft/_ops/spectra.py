"""Discrete Fourier transforms: the linear maps that weft.fft arranges."""

from __future__ import annotations

from weft._ops.table import backward_op, op

op(
    "_fft(Tensor self, int[] dim, int sign, float scale) -> Tensor",
    doc="scale times the transform over `dim` (sign -1), or its unscaled inverse (1).",
    native="fft_complex",
    grad={"self": "_fft(grad, dim, -sign, scale)"},
    like="self",
)
op(
    "_fft_half(Tensor self, int dim, float scale) -> Tensor",
    doc="scale times the first half of the transform of real numbers along `dim`.",
    native="fft_half",
    grad={"self": "_fft_half_backward(grad, dim, self.size(dim), scale)"},
    shape="halved(self, dim)",
)
op(
    "_fft_real(Tensor self, int dim, int n, float scale) -> Tensor",
    doc="scale times the unscaled inverse of the half spectrum of n real numbers along `dim`.",
    native="fft_real",
    grad={"self": "_fft_real_backward(grad, dim, scale)"},
    shape="resized(self, dim, n)",
    result="real",
)
backward_op(
    "_fft_half_backward(Tensor grad, int dim, int n, float scale) -> Tensor",
    doc="The gradient of _fft_half for n real numbers.",
    native="fft_half_backward",
    tags=("composite",),
)
backward_op(
    "_fft_real_backward(Tensor grad, int dim, float scale) -> Tensor",
    doc="The gradient of _fft_real.",
    native="fft_real_backward",
    tags=("composite",),
)
