"""Functions of matrices made of products and solutions: matrix_exp, einsum, norms, distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import casting_takes_out
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.data_dependent import data_dependent
from weft._runtime.samples import whole
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten

_INVERSE_FACTORIALS = [1 / math.factorial(k) for k in range(17)]

# 1-norms up to which the Taylor polynomials of degree d = 4, 8, 12 and 16 leave out less than half
# a rounding: norm**(d + 1) / (d + 1)! * (d + 2) / (d + 2 - norm) at most, of exp(-norm) or more.
_TAYLOR_NORMS = [0.0697, 0.525, 1.275, 2.171]
_TAYLOR_NORMS_OF_FLOAT64 = [0.00167, 0.0693, 0.3269, 0.7873]


@data_dependent
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices [*, n, n], floating or complex.

    Scaling and squaring of a Taylor polynomial, in double precision (Higham, Functions of Matrices,
    SIAM 2008, chapter 10). Raises RuntimeError for matrices that are not square, and for other
    dtypes.

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
    wide = _C.complex128 if input.is_complex() else _C.float64
    bounds = _TAYLOR_NORMS_OF_FLOAT64 if input.dtype == wide else _TAYLOR_NORMS
    norms = input.detach().to(wide).abs().sum(-2).amax(-1)
    largest = float(whole(norms).max())
    blocks = 1 + sum([int(not largest <= bound) for bound in bounds[:3]])  # NaN: all
    # Each matrix is halved as often as it needs; all are squared together, those done kept.
    halvings = (norms / bounds[3]).log2().ceil().nan_to_num(0, 0, 0).clamp(0, 1100)
    result = _taylor_exp(input.to(wide) * (0.5**halvings).to(wide)[..., None, None], blocks)
    for done in range(int(whole(halvings).max().item())):
        squared = result @ result
        result = _C.where((halvings > done)[..., None, None], squared, result)
    return result.to(input.dtype)


def _taylor_exp(a: Tensor, blocks: int) -> Tensor:
    """The Taylor polynomial of exp of degree 4 * blocks, by blocks of four powers (Paterson and
    Stockmeyer, SIAM J. Comput. 2, 1973)."""
    two = a @ a
    powers = [_C.eye(a.size(-1), dtype=a.dtype, device=a.device), a, two, two @ a]
    four = two @ two
    result = four * _INVERSE_FACTORIALS[4 * blocks]
    for block in range(blocks - 1, -1, -1):
        c = _INVERSE_FACTORIALS[4 * block : 4 * block + 4]
        low, high = powers[0] * c[0] + powers[1] * c[1], powers[2] * c[2] + powers[3] * c[3]
        result = result + (low + high)
        result = result @ four if block > 0 else result
    return result


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde matrices: for x [*, n] the powers 0 to N - 1 (default n) of each, [*, n, N].

    Integers stay integers.

    >>> vander(weft.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    x = x.reshape(1) if x.dim() == 0 else x
    count = x.size(-1) if N is None else N
    if x.dtype in (_C.bool, _C.float16, _C.bfloat16):
        raise RuntimeError(f"vander: expected no bools and no 16 bits, got {x.dtype}")
    if count <= 1 and N is not None:
        raise RuntimeError(f"vander: expected N above 1, got {N}")
    return powers(x, count)


def powers(x: Tensor, count: int) -> Tensor:
    """The powers 0 to count - 1 of each element, along a new last dimension.

    >>> powers(weft.tensor([2.0, 3.0]), 3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    x = x.to(_C.int64) if not (x.is_floating_point() or x.is_complex()) else x
    column = x.unsqueeze(-1)
    rest = column.expand([*x.shape, max(count - 1, 0)]).cumprod(-1)
    return _C.cat([_C.ones_like(column), rest], -1)[..., :count]


@casting_takes_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The tensor B with tensordot(B, tensordot(input, X)) = X: input as a matrix, inverted.

    The first `ind` sizes of input have the product of the others; they come last in B. Floating and
    complex dtypes. Raises RuntimeError for other sizes, LinAlgError where the matrix is singular.

    >>> tensorinv(weft.eye(4).reshape(2, 2, 4)).shape
    torch.Size([4, 2, 2])
    """
    if ind < 1:
        raise RuntimeError(f"tensorinv: expected ind above 0, got {ind}")
    rows, columns = input.shape[:ind], input.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(
            f"tensorinv: expected equal products of sizes, got {tuple(rows)} and {tuple(columns)}"
        )
    matrix = input.reshape(math.prod(rows), -1) if input.numel() else input.reshape(0, 0)
    return _aten.linalg_inv(matrix).reshape(*columns, *rows)


@casting_takes_out
def tensorsolve(input: Tensor, other: Tensor, dims: _OptionalInts = None) -> Tensor:
    """X with tensordot(input, X, X.dim()) = other; `dims` of input are moved to its end first.

    Floating and complex dtypes. Raises RuntimeError for sizes that do not fit, LinAlgError where
    the matrix is singular.

    >>> tensorsolve(weft.eye(4).reshape(2, 2, 4), weft.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    if dims is not None:
        input = input.movedim(list(dims), list(range(input.dim() - len(dims), input.dim())))
    shape = input.shape[other.dim() :]
    if math.prod(shape) != other.numel():
        raise RuntimeError(
            f"tensorsolve: expected a system with as many equations as unknowns, got "
            f"{other.numel()} and {math.prod(shape)}"
        )
    matrix = input.reshape(other.numel(), other.numel())
    return _aten.linalg_solve(matrix, other.reshape(-1)).reshape(shape)


_DISTANCE_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _DISTANCE_MODES[0]) -> Tensor:
    """The p-norm distances between the rows of x1 (..., m, k) and those of x2 (..., n, k).

    compute_mode is one of PyTorch's names of ways to compute them; every one means the exact way.

    Leading dimensions broadcast; the result is (..., m, n). One floating dtype. Raises RuntimeError
    for shapes that do not fit, NotImplementedError for 16 bits where PyTorch has none: for p other
    than 2, and unless there are more than 25 rows or compute_mode is "use_mm_for_euclid_dist".

    >>> weft.cdist(weft.tensor([[0.0, 0.0]]), weft.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _DISTANCE_MODES:
        raise ValueError(
            f"cdist: expected compute_mode among {', '.join(_DISTANCE_MODES)}, got {compute_mode!r}"
        )
    if p < 0:
        raise RuntimeError(f"cdist: expected p >= 0, got {p}")
    number = _DISTANCE_MODES.index(compute_mode)
    return _aten.cdist(x1, x2, p, number or None)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """A product for each group, as layers of experts have them; offs, int32, says where groups end.

    - [g, m, k] and [g, k, n] without offs: [g, m, n].
    - [m, k], whose rows are in groups, and [g, k, n]: [m, n]; rows of no group give 0.
    - [g, m, k] and [k, n], whose columns are in groups: [m, n].
    - [m, k] and [k, n] with k in groups: [g, m, n].

    Raises RuntimeError for other shapes and for offs that do not fit, NotImplementedError for a
    bias. Floating dtypes.

    >>> x, experts = weft.ones(3, 2), weft.stack([weft.eye(2), 2 * weft.eye(2)])
    >>> weft.nn.functional.grouped_mm(x, experts, offs=weft.tensor([1, 3], dtype=weft.int32))
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    if bias is not None:
        raise NotImplementedError("grouped_mm: expected no bias, got one")
    result = _grouped(mat_a, mat_b, offs)
    return result if out_dtype is None else result.to(out_dtype)


def _grouped(a: Tensor, b: Tensor, offs: Tensor | None) -> Tensor:
    if (offs is None) != (a.dim() == b.dim() == 3) or not {a.dim(), b.dim()} <= {2, 3}:
        raise RuntimeError(
            "grouped_mm: expected 2 or 3 dims, and offs where one has 2, got shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    if offs is None:
        return a.bmm(b)
    if offs.dtype != _C.int32:
        raise RuntimeError(f"grouped_mm: expected offs of int32, got {offs.dtype}")
    ends = offs.tolist()
    parts = list(zip([0, *ends[:-1]], ends))
    experts = None if a.dim() == b.dim() else max(a, b, key=Tensor.dim).size(0)
    length = b.size(1) if a.dim() == 3 else a.size(-2 if b.dim() == 3 else -1)
    rises = [0, *ends, length] == sorted([0, *ends, length])
    if not ends or not rises or experts not in (None, len(ends)):
        raise RuntimeError(
            f"grouped_mm: expected rising offs, one for each group, up to {length}, got {ends}"
        )
    if experts is None:
        return _C.stack([a[:, i:j].mm(b[i:j]) for i, j in parts])
    if a.dim() == 2:
        products = [a[i:j].mm(expert) for (i, j), expert in zip(parts, b)]
        return _C.cat([*products, a.new_zeros(length - ends[-1], b.size(2))])
    products = [expert.mm(b[:, i:j]) for (i, j), expert in zip(parts, a)]
    return _C.cat([*products, b.new_zeros(a.size(1), length - ends[-1])], 1)


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Tensor:
    """nn.functional.grouped_mm."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Products summed over the last `dims` dimensions of a and first of b, or over two lists.

    The result has the dimensions of a that are left, then those of b. Raises RuntimeError for sizes
    that differ. Both are of one dtype.

    >>> weft.tensordot(weft.ones(2, 3, 4), weft.ones(3, 4, 5)).shape
    torch.Size([2, 5])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: expected dims in [0, {min(a.dim(), b.dim())}], got {dims}"
            )
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    result = _aten.tensordot(a, b, left, right)
    return result if out is None else _aten.alias_copy(result, out=out)


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Einstein's summation: "ij,jk->ik" is the product of two matrices.

    Letters name dimensions; those missing on the right are summed; "..." stands for leading
    dimensions that are broadcast. Also einsum(a, [0, 1], b, [1, 2], [0, 2]).

    Raises RuntimeError for an equation that does not fit the operands. They are of one dtype.

    >>> weft.einsum("ij,j->i", weft.tensor([[1.0, 2.0], [3.0, 4.0]]), weft.tensor([1.0, -1.0]))
    tensor([-1., -1.])
    """
    text, *tensors = _with_equation(equation, *operands)
    if not tensors:
        raise ValueError("einsum: expected at least one operand, got none")
    return _aten.einsum(text, tensors)


def _with_equation(equation: Any, *operands: Any) -> list[Any]:
    """The arguments of einsum as classes are shown them: the equation, then each operand."""
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    alone = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    return [equation, *(operands[0] if alone else operands)]


vars(einsum)["_weft_shown"] = _with_equation


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of einsum(a, [0, 1], b, [1, 2], [0, 2]), and its operands."""

    def text(labels: Sequence[Any]) -> str:
        names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        for label in labels:
            if label is not Ellipsis and not 0 <= label < len(names):
                raise ValueError(f"einsum: expected labels in [0, {len(names)}), got {label}")
        return "".join("..." if label is Ellipsis else names[label] for label in labels)

    pairs = len(arguments) // 2
    left = ",".join(text(arguments[2 * i + 1]) for i in range(pairs))
    right = f"->{text(arguments[-1])}" if len(arguments) % 2 else ""
    return left + right, tuple(arguments[2 * i] for i in range(pairs))


_declare(globals(), ("cdist", "einsum", "grouped_mm", "tensordot"))
