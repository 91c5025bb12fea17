"""Transforms whose values are vectors, matrices or several parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from weft import _C, linalg
from weft._C import Size, Tensor
from weft._tensor.limits import finfo
from weft.distributions import constraints
from weft.distributions.transforms.elementwise import _clipped_sigmoid
from weft.distributions.transforms.transform import Shape, Transform
from weft.distributions.utils import _sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix
from weft.nn import functional as F


class ReshapeTransform(Transform):
    """Values of one shape as values of another with as many elements."""

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                "ReshapeTransform: expected shapes with as many elements, got "
                f"{tuple(in_shape)} and {tuple(out_shape)}"
            )

    domain = property(
        lambda self: constraints.independent(constraints.real, len(self.in_shape)),
        doc="Values of in_shape.",
    )
    codomain = property(
        lambda self: constraints.independent(constraints.real, len(self.out_shape)),
        doc="Values of out_shape.",
    )

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Shape) -> Shape:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _exchanged(shape: Shape, old: Size, new: Size) -> Size:
        cut = len(shape) - len(old)
        if cut < 0 or tuple(shape[cut:]) != tuple(old):
            raise ValueError(
                f"ReshapeTransform: expected a shape that ends in {tuple(old)}, got {tuple(shape)}"
            )
        return Size((*shape[:cut], *new))


class _OfType(Transform):
    """A transform without parameters. Instances of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)


class SoftmaxTransform(_OfType):
    """y = softmax(x) of vectors. Not a bijection: the inverse is one x of many."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return F.softmax(x, dim=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Shape:
        return _checked(self, shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(_OfType):
    """Vectors of n numbers as vectors of n + 1 probabilities: each number breaks a piece off what
    is left of a stick of length 1."""

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    @staticmethod
    def _shift(x: Tensor) -> Tensor:
        """Logarithms of the pieces still to come: x = 0 then gives equal probabilities."""
        return _C.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()

    def _call(self, x: Tensor) -> Tensor:
        broken = _clipped_sigmoid(x - self._shift(x))
        left = (1 - broken).cumprod(-1)
        return F.pad(broken, [0, 1], value=1.0) * F.pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        left = (1 - pieces.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return pieces.log() - left.log() + self._shift(pieces)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - self._shift(x)
        return (F.logsigmoid(shifted) - shifted + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        return (*_checked(self, shape, 1)[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*_checked(self, shape, 1)[:-1], shape[-1] - 1)


class LowerCholeskyTransform(_OfType):
    """Square matrices as lower triangular ones whose diagonal is positive."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfType):
    """Square matrices as positive definite ones, by their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of d * (d - 1) / 2 numbers as Cholesky factors of correlation matrices of size d.

    Row by row, tanh of a number is the share that an element takes of the length that is left
    (Lewandowski, Kurowicka, Joe, 2009: canonical partial correlations).
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = finfo(x.dtype).eps
        share = vec_to_tril_matrix(x.clamp(min=eps - 1, max=1 - eps), diag=-1)
        left = (1 - share**2).sqrt().cumprod(-1)
        share = share + _C.eye(share.shape[-1], dtype=x.dtype)
        return share * F.pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1.0)
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_tanh = 2 * (math.log(2) - x - F.softplus(-2 * x)).sum(-1)
        return 0.5 * left.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Shape) -> Shape:
        count = _checked(self, shape, 1)[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError(
                f"CorrCholeskyTransform: expected d * (d - 1) / 2 numbers, got {count}"
            )
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Shape) -> Shape:
        rows, size = _checked(self, shape, 2)[-2:]
        if rows != size:
            raise ValueError(f"CorrCholeskyTransform: expected square matrices, got {tuple(shape)}")
        return (*shape[:-2], size * (size - 1) // 2)


def _checked(transform: Transform, shape: Shape, least: int) -> Shape:
    if len(shape) < least:
        raise ValueError(
            f"{type(transform).__name__}: expected at least {least} dimensions, got {len(shape)}"
        )
    return shape


class _Parts(Transform):
    """Transforms of parts of a tensor along a dimension."""

    def __init__(self, tseq: Iterable[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [each.with_cache(cache_size) for each in tseq], dim
        if not all(isinstance(each, Transform) for each in self.transforms):
            raise AssertionError(f"{type(self).__name__}: expected transforms, got {tseq!r}")

    bijective = property(lambda self: all(t.bijective for t in self.transforms), doc="All are.")

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._joined([t(part) for t, part in zip(self.transforms, self._split(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._joined([t.inv(part) for t, part in zip(self.transforms, self._split(y))])

    def _joined(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _terms(self, x: Tensor, y: Tensor) -> list[Tensor]:
        both = zip(self.transforms, self._split(x), self._split(y))
        return [t.log_abs_det_jacobian(before, after) for t, before, after in both]


class CatTransform(_Parts):
    """Transforms of parts of `lengths` along `dim`, concatenated."""

    def __init__(
        self, tseq: Iterable[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"CatTransform: expected {len(self.transforms)} lengths, got {len(self.lengths)}"
            )

    event_dim = property(
        lambda self: max(t.event_dim for t in self.transforms), doc="The largest of the parts."
    )
    length = property(lambda self: sum(self.lengths), doc="The sum of the lengths.")
    domain = property(lambda self: self._constraint("domain"), doc="Of the parts.")
    codomain = property(lambda self: self._constraint("codomain"), doc="Of the parts.")

    def _constraint(self, end: str) -> constraints.Constraint:
        parts = [getattr(t, end) for t in self.transforms]
        return constraints.cat(parts, self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = self._cache_size == cache_size
        return self if same else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        return value.split(self.lengths, self.dim)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return _C.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        more = [self.event_dim - t.event_dim for t in self.transforms]
        terms = [_sum_rightmost(term, m) for term, m in zip(self._terms(x, y), more)]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return _C.cat(terms, dim) if dim < 0 else sum(terms)  # type: ignore[return-value]


class StackTransform(_Parts):
    """Transforms of the slices along `dim`."""

    def __init__(self, tseq: Iterable[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    domain = property(lambda self: self._constraint("domain"), doc="Of the parts.")
    codomain = property(lambda self: self._constraint("codomain"), doc="Of the parts.")

    def _constraint(self, end: str) -> constraints.Constraint:
        return constraints.stack([getattr(t, end) for t in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = self._cache_size == cache_size
        return self if same else StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        if value.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: expected {len(self.transforms)} slices, "
                f"got {value.shape[self.dim]}"
            )
        return value.unbind(self.dim)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return _C.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _C.stack(self._terms(x, y), self.dim)
