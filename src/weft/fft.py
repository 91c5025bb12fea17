"""Discrete Fourier transforms: `torch.fft`.

Three operators do the work and carry the gradients: complex to complex over any dimensions, real to
half a spectrum and back along one (csrc/ops/fft.cpp).
"""

from __future__ import annotations

import math
from typing import Any

import weft
from weft import Tensor
from weft._aliases import numpy_names
from weft._decides import decides
from weft._out import factory_takes_out, takes_out

_aten = weft._C._aten


def _complex(x: Tensor, dims: list[int], inverse: bool, scale: float) -> Tensor:
    """scale * the transform (or the unscaled inverse) over `dims`."""
    return _aten._fft(x, dims, 1 if inverse else -1, scale)


# ---- arguments ----


def _floating(function: str, x: Tensor) -> Tensor:
    if x.dtype in (weft.float16, weft.bfloat16):
        name = str(x.dtype).partition(".")[2]
        raise RuntimeError(f"{function}: expected a dtype of at least 32 bits, got {name}")
    whole = not (x.is_floating_point() or x.is_complex())
    return x.to(weft.get_default_dtype()) if whole else x


def _as_complex(x: Tensor) -> Tensor:
    if x.is_complex():
        return x
    return x.to(weft.complex128 if x.dtype == weft.float64 else weft.complex64)


def _real(function: str, x: Tensor) -> Tensor:
    if x.is_complex():
        raise RuntimeError(f"{function}: expected a real tensor, got {x.dtype}")
    return _floating(function, x)


def _resized(x: Tensor, dim: int, size: int) -> Tensor:
    """Cut or filled with zeros at the end of a dimension."""
    if x.size(dim) == size:
        return x
    widths = [0] * (2 * (x.dim() - dim))
    widths[-1] = size - x.size(dim)
    return weft.constant_pad_nd(x, widths)


def _scale(function: str, norm: str | None, count: int, inverse: bool) -> float:
    if norm is not None and norm not in ("backward", "ortho", "forward"):
        raise RuntimeError(f"{function}: expected norm backward, ortho or forward, got {norm!r}")
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if inverse == (norm is None or norm == "backward") else 1.0


def _swapped(norm: str | None) -> str | None:
    """What scales the inverse as norm scales the transform."""
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


def _dims_and_sizes(
    function: str, x: Tensor, s: Any, dim: Any
) -> tuple[list[int], list[int | None]]:
    """The dimensions, from 0, and the sizes asked for (None: as they are)."""
    if isinstance(dim, int):
        dim = [dim]
    if dim is None:
        count = x.dim() if s is None else len(s)
        if count > x.dim():
            raise RuntimeError(f"{function}: expected at most {x.dim()} sizes, got {count}")
        dims = list(range(x.dim() - count, x.dim()))
    else:
        for d in dim:
            if not -x.dim() <= d < x.dim():
                raise IndexError(
                    f"{function}: expected dim in [{-x.dim()}, {x.dim() - 1}], got {d}"
                )
        dims = [d % x.dim() for d in dim]
    if any(dims.count(d) > 1 for d in dims):
        raise RuntimeError(f"{function}: expected different dims, got {tuple(dims)}")
    sizes: list[int | None] = [None] * len(dims)
    if s is not None:
        if len(s) != len(dims):
            raise RuntimeError(f"{function}: expected {len(dims)} sizes, got {tuple(s)}")
        sizes = [None if n is None or n == -1 else int(n) for n in s]
        if any(n is not None and n < 1 for n in sizes):
            raise RuntimeError(f"{function}: expected sizes of at least 1, got {tuple(s)}")
    return dims, sizes


@decides
def _transform(
    function: str, input: Tensor, s: Any, dim: Any, norm: str | None, inverse: bool
) -> Tensor:
    x = _as_complex(_floating(function, input))
    dims, sizes = _dims_and_sizes(function, x, s, dim)
    for d, n in zip(dims, sizes):
        x = x if n is None else _resized(x, d, n)
    count = math.prod(x.size(d) for d in dims)
    if count == 0:
        raise RuntimeError(f"{function}: expected at least 1 entry, got shape {tuple(x.shape)}")
    return _complex(x, dims, inverse, _scale(function, norm, count, inverse))


@decides
def _real_transform(function: str, input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    x = _real(function, input)
    dims, sizes = _dims_and_sizes(function, x, s, dim)
    if not dims:
        raise RuntimeError(f"{function}: expected at least 1 dim, got none")
    for d, n in zip(dims, sizes):
        x = x if n is None else _resized(x, d, n)
    count = math.prod(x.size(d) for d in dims)
    if count == 0:
        raise RuntimeError(f"{function}: expected at least 1 entry, got shape {tuple(x.shape)}")
    scale = _scale(function, norm, count, False)
    half = _aten._fft_half(x, dims[-1], scale)
    return _complex(half, dims[:-1], False, 1.0) if len(dims) > 1 else half


@decides
def _real_inverse(function: str, input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    x = _as_complex(_floating(function, input))
    dims, sizes = _dims_and_sizes(function, x, s, dim)
    if not dims:
        raise RuntimeError(f"{function}: expected at least 1 dim, got none")
    given = sizes[-1]
    last = 2 * (x.size(dims[-1]) - 1) if given is None else given
    if last < 1:
        raise RuntimeError(f"{function}: expected at least 1 entry, got shape {tuple(x.shape)}")
    for d, n in zip(dims[:-1], sizes):
        x = x if n is None else _resized(x, d, n)
    x = _resized(x, dims[-1], last // 2 + 1)
    count = last * math.prod(x.size(d) for d in dims[:-1])
    if count == 0:
        raise RuntimeError(f"{function}: expected at least 1 entry, got shape {tuple(x.shape)}")
    scale = _scale(function, norm, count, True)
    if len(dims) > 1:
        x = _complex(x, dims[:-1], True, 1.0)
    return _aten._fft_real(x, dims[-1], last, scale)


# ---- one dimension ----


@numpy_names
@takes_out
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform along `dim`, cut or filled with zeros to n entries."""
    return _transform("fft", input, None if n is None else [n], dim, norm, False)


@numpy_names
@takes_out
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft."""
    return _transform("ifft", input, None if n is None else [n], dim, norm, True)


@numpy_names
@takes_out
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n // 2 + 1 entries of the transform of a real tensor."""
    return _real_transform("rfft", input, None if n is None else [n], dim, norm)


@numpy_names
@takes_out
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of rfft: n real numbers (2 * (entries - 1) by default)."""
    return _real_inverse("irfft", input, None if n is None else [n], dim, norm)


@numpy_names
@takes_out
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The (real) transform of a signal given by the first half of a Hermitian one."""
    return hfftn(input, None if n is None else [n], [dim], norm)


@numpy_names
@takes_out
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of hfft."""
    return ihfftn(input, None if n is None else [n], [dim], norm)


# ---- several ----


@numpy_names
@takes_out
def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The transform over `dim` (None: the last len(s), or all)."""
    return _transform("fftn", input, s, dim, norm, False)


@numpy_names
@takes_out
def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of fftn."""
    return _transform("ifftn", input, s, dim, norm, True)


@numpy_names
@takes_out
def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """fftn of a real tensor, half of it along the last dimension."""
    return _real_transform("rfftn", input, s, dim, norm)


@numpy_names
@takes_out
def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn."""
    return _real_inverse("irfftn", input, s, dim, norm)


@numpy_names
@takes_out
def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The (real) transform of a signal given by half of a Hermitian one along the last dim."""
    x = _as_complex(_floating("hfftn", input)).conj()
    return _real_inverse("hfftn", x, s, dim, _swapped(norm))


@numpy_names
@takes_out
def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of hfftn."""
    return _real_transform("ihfftn", input, s, dim, _swapped(norm)).conj()


@numpy_names
@takes_out
def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """fftn over two dimensions."""
    return fftn(input, s, dim, norm)


@numpy_names
@takes_out
def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ifftn over two dimensions."""
    return ifftn(input, s, dim, norm)


@numpy_names
@takes_out
def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """rfftn over two dimensions."""
    return rfftn(input, s, dim, norm)


@numpy_names
@takes_out
def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """irfftn over two dimensions."""
    return irfftn(input, s, dim, norm)


@numpy_names
@takes_out
def hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """hfftn over two dimensions."""
    return hfftn(input, s, dim, norm)


@numpy_names
@takes_out
def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ihfftn over two dimensions."""
    return ihfftn(input, s, dim, norm)


# ---- frequencies ----


@factory_takes_out
def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The frequencies of fft's n entries for samples d apart: 0, 1, ..., -1 over n * d."""
    whole = weft.arange(n, dtype=weft.float64, device=device)
    places = weft.where(whole < (n + 1) // 2, whole, whole - n)
    return _frequencies(places, n, d, dtype, requires_grad)


@factory_takes_out
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The frequencies of rfft's entries for n samples d apart."""
    places = weft.arange(n // 2 + 1, dtype=weft.float64, device=device)
    return _frequencies(places, n, d, dtype, requires_grad)


def _frequencies(places: Tensor, n: int, d: float, dtype: Any, requires_grad: bool) -> Tensor:
    kind = weft.get_default_dtype() if dtype is None else dtype
    result = (places * (1.0 / (n * d))).to(kind)
    return result.requires_grad_() if requires_grad else result


@numpy_names
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequency 0 in the middle of each dimension of `dim` (None: all)."""
    dims, _ = _dims_and_sizes("fftshift", input, None, dim)
    return input.roll([input.size(d) // 2 for d in dims], dims)


@numpy_names
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of fftshift."""
    dims, _ = _dims_and_sizes("ifftshift", input, None, dim)
    return input.roll([-(input.size(d) // 2) for d in dims], dims)
