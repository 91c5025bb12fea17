"""Parametrizations: weights by length and direction, of spectral norm 1, and orthogonal ones."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, TypeVar

from weft import _C, linalg
from weft._C import Tensor
from weft._functions import matrices
from weft._functions.norms import _weight_norm, norm_except_dim
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import no_grad
from weft.nn import functional as F
from weft.nn.modules.module import Module
from weft.nn.utils import parametrize
from weft.nn.utils.spectral_norm import as_matrix, default_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def _tensor_of(name: str, module: Module, tensor_name: str) -> Tensor:
    value = getattr(module, tensor_name, None)
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{name}: expected a parameter or buffer of {type(module).__name__}, got the name "
            f"{tensor_name!r}"
        )
    return value


# Length and direction ---------------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Parametrizes a tensor by its length (original0) and its direction (original1).

    dim: each slice along it has its own length; None: one length for all. State dicts of
    nn.utils.weight_norm can be loaded. Gives the module.

    >>> layer = weft.nn.utils.parametrizations.weight_norm(weft.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([3, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def accept_old_names(state_dict: Any, prefix: str, *_: Any) -> None:
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for index, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{index}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(accept_old_names)
    return module


# Spectral norm ----------------------------------------------------------------------------------


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        dims = weight.ndim
        if not -dims <= dim < dims:
            raise IndexError(f"spectral_norm: expected dim in [{-dims}, {dims}), got {dim}")
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: expected n_power_iterations above 0, got {n_power_iterations}"
            )
        self.dim = dim % dims
        self.eps = eps
        if dims > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            u, v = (matrix.new_empty(size).normal_(0, 1) for size in matrix.shape)
            self.register_buffer("_u", self._unit(u))
            self.register_buffer("_v", self._unit(v))
            self._power_method(matrix, 15)

    def _unit(self, x: Tensor) -> Tensor:
        return F.normalize(x.detach(), dim=0, eps=self.eps)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        """Turns u and v, in place, towards the first singular vectors of the matrix."""
        with no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(self._unit(_C.mv(matrix, self._v)))
                self._v.copy_(self._unit(_C.mv(matrix.H, self._u)))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: a later call changes u and v, which backward of this one needs.
        u, v = self._u.clone(), self._v.clone()
        return weight / _C.vdot(u, _C.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Parametrizes a tensor as itself divided by its largest singular value; gives the module.

    The tensor counts as a matrix whose rows are its slices along `dim` (None: 0, for transposed
    convolutions 1). Each reading in training mode improves the estimate by n_power_iterations.

    ValueError for a name without a tensor and for no iterations, IndexError for a wrong dim.

    >>> layer = weft.nn.utils.parametrizations.spectral_norm(weft.nn.Linear(3, 3), eps=1e-6)
    >>> for _ in range(50):
    ...     weight = layer.weight
    >>> round(weft.linalg.matrix_norm(weight, 2).item(), 2)
    1.0
    """
    weight = _tensor_of("spectral_norm", module, name)
    norm = _SpectralNorm(weight, n_power_iterations, default_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, norm)


# Orthogonal -------------------------------------------------------------------------------------


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Any matrix to an orthogonal one: by its skew-symmetric part, or its columns as reflectors."""

    base: Tensor | None

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("orthogonal: expected a real tensor for 'householder', got complex")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        x = X.mT if wide else X
        if self.orthogonal_map == _OrthMaps.householder:
            q = _product_of_reflectors(x)
        else:
            q = self._of_skew(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _of_skew(self, x: Tensor) -> Tensor:
        """The exponential or the Cayley transform of tril(x) - tril(x)^H, its first columns."""
        n, k = x.shape[-2:]
        lower = F.pad(x.tril(), (0, n - k))
        skew = lower - lower.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            return matrices.matrix_exp(skew)[..., :k]
        eye = _C.eye(n, dtype=x.dtype, device=x.device)
        return linalg.solve(eye - 0.5 * skew, eye + 0.5 * skew)[..., :k]

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"orthogonal: expected a tensor of shape {tuple(self.shape)}, got {tuple(Q.shape)}"
            )
        wide = Q.size(-2) < Q.size(-1)
        with no_grad():
            q = Q.mT if wide else Q
            if not hasattr(self, "base"):
                return self._inverse(q, wide)
            self.base = _full_orthogonal(q)
            inverse = _C.zeros_like(Q)
            inverse.diagonal(dim1=-2, dim2=-1).fill_(-1)
            return inverse

    def _inverse(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError(
                f"orthogonal: expected use_trivialization=True to assign through "
                f"{self.orthogonal_map.name!r}, got False"
            )
        reflectors = _reflectors(q)
        return reflectors.mT if wide else reflectors


def _product_of_reflectors(x: Tensor) -> Tensor:
    """The first columns of the product of I - 2 v v^T / |v|^2, v: the columns of x below a unit
    diagonal. The signs of the columns are those of the diagonal of x.

    With the compact form of Schreiber and Van Loan (1989): I - V T V^T, where the inverse of T is
    the upper triangle of V^T V with half of its diagonal.
    """
    k = x.size(-1)
    eye = _C.eye(x.size(-2), k, dtype=x.dtype, device=x.device)
    v = x.tril(-1) + eye
    gram = v.mT @ v
    inverse_t = gram.triu(1) + _C.diag_embed(gram.diagonal(dim1=-2, dim2=-1) / 2)
    top = v[..., :k, :].mT
    q = eye - v @ linalg.solve_triangular(inverse_t, top, upper=True)
    return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _reflectors(q: Tensor) -> Tensor:
    """What _product_of_reflectors makes `q`, which is orthogonal, of."""
    rest, made = q.clone(), _C.zeros_like(q)
    for column in range(q.size(-1)):
        x = rest[..., column:, column]
        sign = _C.where(x[..., :1] < 0, 1.0, -1.0).to(q.dtype)  # of the first entry's opposite
        v = x.clone()
        v[..., :1] -= sign * linalg.vector_norm(x, dim=-1, keepdim=True)
        v = v / v[..., :1]
        made[..., column:, column] = v
        made[..., column, column] = sign[..., 0]
        scale = 2 / (v * v).sum(-1, keepdim=True).unsqueeze(-1)
        below = rest[..., column:, column:]
        below -= scale * v.unsqueeze(-1) * (v.unsqueeze(-2) @ below)
    return made + rest.triu(1)  # which the map does not read


def _full_orthogonal(q: Tensor) -> Tensor:
    """`q`, [*, n, k], with random further columns, made a square orthogonal matrix."""
    n, k = q.shape[-2:]
    if n == k and _is_orthogonal(q):
        return q.clone()
    if n != k:
        more = _C.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
        q = _C.cat([q, more], dim=-1)
    made, upper = linalg.qr(q)
    return made * upper.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Tensor) -> bool:
    eye = _C.eye(q.size(-1), dtype=q.dtype, device=q.device)
    return _C.allclose(q.mH @ q, eye, atol=10.0 * q.size(-2) * finfo(q.dtype).eps)


def orthogonal(
    module: M,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> M:
    """Parametrizes a matrix, or a batch of them, as one with orthonormal columns or rows.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; None: matrix_exp for square and complex
    matrices, householder for others. use_trivialization: the matrix is a fixed orthogonal one
    times that of the parameter, so that any value can be assigned. Gives the module.

    ValueError for a name without a tensor, fewer than two dimensions, and other maps.

    >>> layer = weft.nn.utils.parametrizations.orthogonal(weft.nn.Linear(3, 2))
    >>> weft.allclose(layer.weight @ layer.weight.mT, weft.eye(2), atol=1e-5)
    True
    """
    weight = _tensor_of("orthogonal", module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"orthogonal: expected a matrix or batch of matrices, got {weight.ndim} dimensions"
        )
    if orthogonal_map is None:
        by_exp = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if by_exp else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            "orthogonal: expected orthogonal_map 'matrix_exp', 'cayley' or 'householder', got "
            f"{orthogonal_map!r}"
        )
    known = _OrthMaps[orthogonal_map]
    made = _Orthogonal(weight, known, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
