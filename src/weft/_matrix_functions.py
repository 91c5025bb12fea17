"""Matrix functions made of products and solutions: matrix_exp, vander, tensorinv, tensorsolve."""

from __future__ import annotations

import math
from typing import Any

import weft
from weft import Tensor
from weft._decides import decides
from weft._out import takes_out

# Numerator of the Pade approximant of order 13 to exp (Higham, 2005): the denominator has the same
# coefficients with alternating signs.
_PADE = [
    math.factorial(26 - j) * math.factorial(13)
    / (math.factorial(26) * math.factorial(j) * math.factorial(13 - j))
    for j in range(14)
]  # fmt: skip
_PADE_NORM = 5.371920351148152  # up to this 1-norm its error is below that of float64


@decides
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices [*, n, n], floating or complex.

    Scaling and squaring with a Pade approximant (Higham, SIAM J. Matrix Anal. Appl. 26, 2005).

    >>> matrix_exp(weft.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    if input.dim() < 2 or input.size(-1) != input.size(-2):
        raise RuntimeError(f"matrix_exp: expected square matrices, got {tuple(input.shape)}")
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"matrix_exp: expected a floating or complex dtype, got {input.dtype}")
    if input.numel() == 0:
        return input.clone()
    wide = weft.complex128 if input.is_complex() else weft.float64
    if input.dtype != wide:  # the quotient below costs digits
        return matrix_exp(input.to(wide)).to(input.dtype)
    norms = input.detach().abs().sum(-2).amax(-1)
    # Each matrix is halved as often as it needs; all are squared together, those done kept.
    halvings = (norms / _PADE_NORM).log2().ceil().nan_to_num(0, 0, 0).clamp(0, 1100)
    scaled = input * (0.5**halvings).to(input.dtype)[..., None, None]
    result = _pade_exp(scaled)
    for done in range(int(halvings.max().item())):
        squared = result @ result
        result = weft.where((halvings > done)[..., None, None], squared, result)
    return result


def _pade_exp(a: Tensor) -> Tensor:
    """exp of matrices of a small norm: (even - odd)^-1 (even + odd)."""
    one = weft.eye(a.size(-1), dtype=a.dtype).expand(a.shape)
    two = a @ a
    four = two @ two
    six = four @ two
    c = _PADE
    odd = six @ (six * c[13] + four * c[11] + two * c[9])
    odd = a @ (odd + six * c[7] + four * c[5] + two * c[3] + one * c[1])
    even = six @ (six * c[12] + four * c[10] + two * c[8])
    even = even + six * c[6] + four * c[4] + two * c[2] + one * c[0]
    return weft.linalg.solve(even - odd, even + odd)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde matrices: for x [*, n] the powers 0 to N - 1 (default n) of each, [*, n, N].

    >>> vander(weft.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    x = x.reshape(1) if x.dim() == 0 else x
    count = x.size(-1) if N is None else N
    if count <= 1 and N is not None:
        raise RuntimeError(f"vander: expected N above 1, got {N}")
    return powers(x, count)


def powers(x: Tensor, count: int) -> Tensor:
    """The powers 0 to count - 1 of each element, along a new last dimension."""
    x = x.to(weft.int64) if not (x.is_floating_point() or x.is_complex()) else x
    column = x.unsqueeze(-1)
    rest = column.expand([*x.shape, max(count - 1, 0)]).cumprod(-1)
    return weft.cat([weft.ones_like(column), rest], -1)[..., :count]


@takes_out
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The tensor B with tensordot(B, tensordot(A, X)) = X: A as a matrix, inverted.

    The first `ind` sizes of A have the product of the others; they come last in B.

    >>> tensorinv(weft.eye(4).reshape(2, 2, 4)).shape
    torch.Size([4, 2, 2])
    """
    if ind < 1:
        raise RuntimeError(f"tensorinv: expected ind above 0, got {ind}")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(
            f"tensorinv: expected equal products of sizes, got {tuple(rows)} and {tuple(columns)}"
        )
    matrix = A.reshape(math.prod(rows), -1) if A.numel() else A.reshape(0, 0)
    return weft.linalg.inv(matrix).reshape(*columns, *rows)


@takes_out
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(A, X, X.dim()) = B; `dims` of A are moved to its end first.

    >>> tensorsolve(weft.eye(4).reshape(2, 2, 4), weft.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    if dims is not None:
        A = A.movedim(list(dims), list(range(A.dim() - len(dims), A.dim())))
    shape = A.shape[B.dim() :]
    if math.prod(shape) != B.numel():
        raise RuntimeError(
            f"tensorsolve: expected a system with as many equations as unknowns, got {B.numel()} "
            f"and {math.prod(shape)}"
        )
    matrix = A.reshape(B.numel(), B.numel())
    return weft.linalg.solve(matrix, B.reshape(-1)).reshape(shape)
