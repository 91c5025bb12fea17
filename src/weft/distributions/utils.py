"""Parameters of distributions: broadcasting, and probabilities from logits and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import broadcast_tensors
from weft._runtime.exports import list_own as _list_own
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import enable_grad
from weft.nn import functional as F

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape. Numbers take the dtype of the first tensor, or the default one.

    ValueError for a value that is neither.
    """
    for value in values:
        if not isinstance(value, Tensor | int | float):
            name = type(value).__name__
            raise ValueError(f"broadcast_all: expected tensors and numbers, got {name}")
    first = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = _C.get_default_dtype() if first is None else first.dtype
    tensors = [v if isinstance(v, Tensor) else _C.tensor(v, dtype=dtype) for v in values]
    return tuple(broadcast_tensors(*tensors))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Numbers of N(0, 1): libraries draw the noise of their own distributions by it."""
    return _C.randn(shape, dtype=dtype, device=device)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the precision of their dtype."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: of each (is_binary), or of the last dimension together."""
    return _C.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities, the other way."""
    clamped = clamp_probs(probs)
    return _C.log(clamped) - _C.log1p(-clamped) if is_binary else _C.log(clamped)


def _sum_rightmost(value: Tensor, count: int) -> Tensor:
    """The sum over the last `count` dimensions."""
    return value.reshape(*value.shape[: value.dim() - count], -1).sum(-1) if count > 0 else value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of square matrices up to a diagonal, row by row, as vectors.

    ValueError for a diagonal outside of the matrices.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: expected -{n} <= diag < {n}, got {diag}")
    row, column = _C.tril_indices(n, n, diag)
    return mat[..., row, column]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Vectors as lower triangular matrices, row by row up to a diagonal.

    ValueError for a length that fills no square matrix.
    """
    count = vec.shape[-1]
    n = 0
    while _elements(n + 1, diag) <= count:
        n += 1
    if _elements(n, diag) != count:
        raise ValueError(
            f"vec_to_tril_matrix: expected as many elements as a triangle has, got {count}"
        )
    row, column = _C.tril_indices(n, n, diag)
    cells = vec.new_zeros(*vec.shape[:-1], n * n)
    return cells.index_copy(-1, row * n + column, vec).reshape(*vec.shape[:-1], n, n)


def _elements(n: int, diag: int) -> int:
    """How many elements a square matrix has up to a diagonal."""
    inside, outside = max(n + diag, 0), max(n - diag - 1, 0)
    return inside * (inside + 1) // 2 if diag < 0 else n * n - outside * (outside + 1) // 2


class lazy_property:
    """A property that is computed when it is first asked for, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():  # it is kept: a later use may need the gradient
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


_list_own(vars())
