"""Discrete Fourier transforms: `torch.fft`.

Three operators do the work and carry the gradients: complex to complex over any dimensions, real to
half a spectrum and back along one (csrc/ops/fft.cpp).
"""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import casting_takes_out, factory_takes_out, takes_out
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.data_dependent import data_dependent
from weft._runtime.exports import list_own as _list_own
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.torch_function import declare as _declare
from weft._tensor.aliases import numpy_names

_aten = _C._aten


def _complex(x: Tensor, dims: list[int], inverse: bool, scale: float) -> Tensor:
    """scale * the transform (or the unscaled inverse) over `dims`."""
    return _aten._fft(x, dims, 1 if inverse else -1, scale)


# ---- arguments ----


def _floating(function: str, x: Tensor) -> Tensor:
    if x.dtype in (_C.float16, _C.bfloat16, _C.complex32):
        name = str(x.dtype).partition(".")[2]
        raise RuntimeError(f"{function}: expected a dtype of at least 32 bits, got {name}")
    whole = not (x.is_floating_point() or x.is_complex())
    return x.to(_C.get_default_dtype()) if whole else x


def _as_complex(x: Tensor) -> Tensor:
    if x.is_complex():
        return x
    return x.to(_C.complex128 if x.dtype == _C.float64 else _C.complex64)


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
    return _C.constant_pad_nd(x, widths)


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


def _size(function: str, n: int | None) -> list[int] | None:
    """The size of a transform along one dimension, as sizes of several."""
    if n is not None and n < 1:
        raise RuntimeError(f"{function}: expected n of at least 1, got {n}")
    return None if n is None else [n]


def _dims_and_sizes(
    function: str, x: Tensor, s: Any, dim: Any
) -> tuple[list[int], list[int | None]]:
    """The dimensions, from 0, and the sizes asked for (None: as they are)."""
    dim, s = ([each] if isinstance(each, int) else each for each in (dim, s))
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


def _entries(function: str, x: Tensor, count: int) -> int:
    """The entries that a transform mixes. RuntimeError where there are none."""
    if count < 1:
        raise RuntimeError(f"{function}: expected at least 1 entry, got shape {tuple(x.shape)}")
    return count


def _fitted(x: Tensor, dims: list[int], sizes: list[int | None]) -> Tensor:
    """Cut or filled to the sizes that are asked for."""
    for d, n in zip(dims, sizes):
        x = x if n is None else _resized(x, d, n)
    return x


@data_dependent
def _transform(
    function: str, input: Tensor, s: Any, dim: Any, norm: str | None, inverse: bool
) -> Tensor:
    x = _as_complex(_floating(function, input))
    dims, sizes = _dims_and_sizes(function, x, s, dim)
    x = _fitted(x, dims, sizes)
    count = _entries(function, x, math.prod(x.size(d) for d in dims))
    return _complex(x, dims, inverse, _scale(function, norm, count, inverse))


@data_dependent
def _real_transform(function: str, input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    x = _real(function, input)
    dims, sizes = _dims_and_sizes(function, x, s, dim)
    if not dims:
        raise RuntimeError(f"{function}: expected at least 1 dim, got none")
    x = _fitted(x, dims, sizes)
    count = _entries(function, x, math.prod(x.size(d) for d in dims))
    half = _aten._fft_half(x, dims[-1], _scale(function, norm, count, False))
    return _complex(half, dims[:-1], False, 1.0) if len(dims) > 1 else half


@data_dependent
def _real_inverse(function: str, input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    x = _as_complex(_floating(function, input))
    dims, sizes = _dims_and_sizes(function, x, s, dim)
    if not dims:
        raise RuntimeError(f"{function}: expected at least 1 dim, got none")
    given = sizes[-1]
    last = _entries(function, x, 2 * (x.size(dims[-1]) - 1) if given is None else given)
    x = _resized(_fitted(x, dims[:-1], sizes), dims[-1], last // 2 + 1)
    count = _entries(function, x, last * math.prod(x.size(d) for d in dims[:-1]))
    scale = _scale(function, norm, count, True)
    if len(dims) > 1:
        x = _complex(x, dims[:-1], True, 1.0)
    return _aten._fft_real(x, dims[-1], last, scale)


def _to_complex(function: Any) -> Any:
    """A transform takes `out=` and NumPy's names, and under autocast computes in float32."""
    return _full_precision(numpy_names(takes_out(function)))


def _to_real(function: Any) -> Any:
    """The same of one whose result is converted to `out`."""
    return _full_precision(numpy_names(casting_takes_out(function)))


# ---- one dimension ----


@_to_complex
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform along `dim`, cut or filled with zeros to n entries.

    `input` is real or complex, of any shape; integers become the default dtype. The result is
    complex, with n entries along `dim`. norm "forward" divides it by n, "ortho" by sqrt(n), and
    "backward", the default, leaves the division to the inverse. Raises RuntimeError for float16,
    bfloat16, another norm and n < 1, IndexError for a dimension that is not there.

    >>> weft.fft.fft(weft.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _transform("fft", input, _size("fft", n), dim, norm, False)


@_to_complex
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft.

    Shapes, dtypes, norms and errors are those of fft; "backward" divides by n here.

    >>> weft.fft.ifft(weft.fft.fft(weft.tensor([1.0, 2.0, 3.0]))).real
    tensor([1., 2., 3.])
    """
    return _transform("ifft", input, _size("ifft", n), dim, norm, True)


@_to_complex
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n // 2 + 1 entries of the transform of a real tensor.

    The others are their conjugates. `input` has n entries along `dim` after being cut or filled.
    Raises RuntimeError for complex tensors, otherwise as fft.

    >>> weft.fft.rfft(weft.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _real_transform("rfft", input, _size("rfft", n), dim, norm)


@_to_real
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of rfft: n real numbers (2 * (entries - 1) by default).

    `input` is half a spectrum, as rfft gives it; the result is real. Give n where it is odd. Raises
    as fft. Its dtype is that of the parts, of integers the default one.

    >>> half = weft.fft.rfft(weft.tensor([1.0, 2.0, 3.0]))
    >>> weft.fft.irfft(half, n=3)
    tensor([1., 2., 3.])
    """
    return _real_inverse("irfft", input, _size("irfft", n), dim, norm)


@_to_real
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The (real) transform of a signal given by the first half of a Hermitian one.

    `input` has n // 2 + 1 entries along `dim` (n: 2 * (entries - 1) by default); the result is
    real, with n entries. Raises as fft. Dtypes are those of irfft.

    >>> weft.fft.hfft(weft.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    return hfftn(input, _size("hfft", n), [dim], norm)


@_to_complex
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of hfft.

    `input` is real, with n entries along `dim`; the result has the first n // 2 + 1. Raises
    RuntimeError for complex tensors, otherwise as fft.

    >>> weft.fft.ihfft(weft.tensor([8.0, -2.0, 0.0, -2.0])).real
    tensor([1., 2., 3.])
    """
    return ihfftn(input, _size("ihfft", n), [dim], norm)


# ---- several ----


@_to_complex
def fftn(
    input: Tensor, s: _OptionalInts = None, dim: _OptionalInts = None, norm: str | None = None
) -> Tensor:
    """The transform over `dim` (None: the last len(s), or all).

    `s` are the sizes that these dimensions are cut or filled to; -1 keeps one as it is. Dtypes,
    norms and errors are those of fft; RuntimeError for repeated dimensions, or an `s` of another
    length.

    >>> weft.fft.fftn(weft.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return _transform("fftn", input, s, dim, norm, False)


@_to_complex
def ifftn(
    input: Tensor, s: _OptionalInts = None, dim: _OptionalInts = None, norm: str | None = None
) -> Tensor:
    """The inverse of fftn.

    Arguments and errors are those of fftn. So are dtypes.

    >>> weft.fft.ifftn(weft.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _transform("ifftn", input, s, dim, norm, True)


@_to_complex
def rfftn(
    input: Tensor, s: _OptionalInts = None, dim: _OptionalInts = None, norm: str | None = None
) -> Tensor:
    """fftn of a real tensor, half of it along the last dimension.

    The last of `dim` keeps n // 2 + 1 of its n entries. Raises RuntimeError for complex tensors and
    for no dimension, otherwise as fftn.

    >>> weft.fft.rfftn(weft.ones(2, 4)).shape
    torch.Size([2, 3])
    """
    return _real_transform("rfftn", input, s, dim, norm)


@_to_real
def irfftn(
    input: Tensor, s: _OptionalInts = None, dim: _OptionalInts = None, norm: str | None = None
) -> Tensor:
    """The inverse of rfftn.

    The last of `dim` gets s[-1] entries, 2 * (entries - 1) by default; the result is real. Raises
    as fftn, and for no dimension. Dtypes are those of irfft.

    >>> weft.fft.irfftn(weft.fft.rfftn(weft.tensor([[1.0, 2.0], [3.0, 4.0]])))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _real_inverse("irfftn", input, s, dim, norm)


@numpy_names
@casting_takes_out
def hfftn(
    input: Tensor, s: _OptionalInts = None, dim: _OptionalInts = None, norm: str | None = None
) -> Tensor:
    """The (real) transform of a signal given by half of a Hermitian one along the last dim.

    Sizes and errors are those of irfftn. So are dtypes.

    >>> weft.fft.hfftn(weft.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10., -2.],
            [-4.,  0.]])
    """
    x = _as_complex(_floating("hfftn", input)).conj()
    return _real_inverse("hfftn", x, s, dim, _swapped(norm))


@numpy_names
@takes_out
def ihfftn(
    input: Tensor, s: _OptionalInts = None, dim: _OptionalInts = None, norm: str | None = None
) -> Tensor:
    """The inverse of hfftn.

    Sizes and errors are those of rfftn. So are dtypes.

    >>> weft.fft.ihfftn(weft.tensor([[1.0, 2.0], [3.0, 4.0]])).real
    tensor([[ 2.5000, -0.5000],
            [-1.0000,  0.0000]])
    """
    return _real_transform("ihfftn", input, s, dim, _swapped(norm)).conj()


def _over_two(name: str, example: str) -> Any:
    """`name` over two dimensions."""
    several = globals()[f"{name}n"]

    def two(
        input: Tensor,
        s: _OptionalInts = None,
        dim: _OptionalInts = (-2, -1),
        norm: str | None = None,
    ) -> Tensor:
        return several(input, s, dim, norm)

    two.__name__ = two.__qualname__ = f"{name}2"
    told = f"{name}n over two dimensions.\n\nArguments, dtypes and errors are those of {name}n."
    two.__doc__ = f"{told}\n{example}"
    if name in ("hfft", "ihfft"):  # without full precision, as in PyTorch
        return numpy_names(casting_takes_out(two) if name == "hfft" else takes_out(two))
    return _to_real(two) if name == "irfft" else _to_complex(two)


fft2 = _over_two(
    "fft",
    """
>>> weft.fft.fft2(weft.tensor([[1.0, 2.0], [3.0, 4.0]])).real
tensor([[10., -2.],
        [-4.,  0.]])
""",
)
ifft2 = _over_two(
    "ifft",
    """
>>> weft.fft.ifft2(weft.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
tensor([[1., 2.],
        [3., 4.]])
""",
)
rfft2 = _over_two(
    "rfft",
    """
>>> weft.fft.rfft2(weft.ones(3, 2, 4)).shape
torch.Size([3, 2, 3])
""",
)
irfft2 = _over_two(
    "irfft",
    """
>>> weft.fft.irfft2(weft.ones(3, 2, 4)).shape
torch.Size([3, 2, 6])
""",
)
hfft2 = _over_two(
    "hfft",
    """
>>> weft.fft.hfft2(weft.ones(3, 2, 4)).shape
torch.Size([3, 2, 6])
""",
)
ihfft2 = _over_two(
    "ihfft",
    """
>>> weft.fft.ihfft2(weft.ones(3, 2, 4)).shape
torch.Size([3, 2, 3])
""",
)


# ---- frequencies ----


@factory_takes_out
def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The frequencies of fft's n entries for samples d apart: 0, 1, ..., -1 over n * d.

    Shape [n], of the default dtype unless `dtype` says another. Raises RuntimeError for a dtype
    that is neither floating nor complex.

    >>> weft.fft.fftfreq(5, d=0.5)
    tensor([ 0.0000,  0.4000,  0.8000, -0.8000, -0.4000])
    """
    whole = _C.arange(n, dtype=_C.float64, device=device)
    positions = _C.where(whole < (n + 1) // 2, whole, whole - n)
    return _frequencies(positions, n, d, dtype, requires_grad)


@factory_takes_out
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The frequencies of rfft's entries for n samples d apart.

    Shape [n // 2 + 1], of the default dtype unless `dtype` says another. Raises RuntimeError for a
    dtype that is neither floating nor complex.

    >>> weft.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    positions = _C.arange(n // 2 + 1, dtype=_C.float64, device=device)
    return _frequencies(positions, n, d, dtype, requires_grad)


def _frequencies(positions: Tensor, n: int, d: float, dtype: Any, requires_grad: bool) -> Tensor:
    kind = _C.get_default_dtype() if dtype is None else dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"fftfreq: expected a floating or complex dtype, got {kind}")
    result = (positions * (1.0 / (n * d) if n * d else math.inf)).to(kind)
    return result.requires_grad_() if requires_grad else result


@numpy_names
def fftshift(input: Tensor, dim: _OptionalInts = None) -> Tensor:
    """The frequency 0 in the middle of each dimension of `dim` (None: all).

    A copy of the same shape and dtype. Raises IndexError for a dimension that is not there.

    >>> weft.fft.fftshift(weft.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    dims, _ = _dims_and_sizes("fftshift", input, None, dim)
    return input.roll([input.size(d) // 2 for d in dims], dims)


@numpy_names
def ifftshift(input: Tensor, dim: _OptionalInts = None) -> Tensor:
    """The inverse of fftshift.

    A copy of the same shape and dtype. Raises IndexError for a dimension that is not there.

    >>> weft.fft.ifftshift(weft.tensor([-2.0, -1.0, 0.0, 1.0]))
    tensor([ 0.,  1., -2., -1.])
    """
    dims, _ = _dims_and_sizes("ifftshift", input, None, dim)
    return input.roll([-(input.size(d) // 2) for d in dims], dims)


_declare(globals())
_list_own(globals())
